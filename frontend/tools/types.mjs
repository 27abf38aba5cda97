// Generates src/api/schema.ts from the API's own description: node tools/types.mjs openapi.json
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import openapiTypes, { astToString } from "openapi-typescript";

const description = JSON.parse(await readFile(process.argv[2], "utf8"));
const schemasOnly = { openapi: description.openapi, info: description.info, paths: {}, components: { schemas: description.components.schemas } };
const types = astToString(await openapiTypes(schemasOnly, { defaultNonNullable: false }));
const digest = createHash("sha256").update(JSON.stringify(sortKeys(description.components.schemas))).digest("hex");
const heading = `// Generated from the API's description by tools/types.mjs; do not edit. Schemas: ${digest}\n`;
await writeFile(new URL("../src/api/schema.ts", import.meta.url), heading + types);

function sortKeys(value) {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sortKeys(value[key])]));
}
