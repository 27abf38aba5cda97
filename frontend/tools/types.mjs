// Generates src/api/schema.ts from the API's own description: node tools/types.mjs openapi.json
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import openapiTypes, { astToString } from "openapi-typescript";

const { paths, components, ...description } = JSON.parse(await readFile(process.argv[2], "utf8"));
const digest = createHash("sha256").update(JSON.stringify(sortKeys({ paths, schemas: components.schemas }))).digest("hex");
const used = { ...description, paths: Object.fromEntries(listPagePaths()), components: { schemas: components.schemas } };
const types = astToString(await openapiTypes(withoutTitles(used), { defaultNonNullable: false }));
const heading = `// Generated from the API's description by tools/types.mjs; do not edit. Digest: ${digest}\n`;
await writeFile(new URL("../src/api/schema.ts", import.meta.url), heading + types);

function sortKeys(value) {
  return mapObjects(value, (entries) => entries.sort(([left], [right]) => (left < right ? -1 : 1)));
}

/** The paths that the page uses. Their errors are all the same and `http.ts` reads them. */
function* listPagePaths() {
  for (const [path, operations] of Object.entries(paths)) {
    if (!path.startsWith("/api/")) continue;
    for (const operation of Object.values(operations)) {
      operation.responses = Object.fromEntries(Object.entries(operation.responses).filter(([status]) => status.startsWith("2")));
    }
    yield [path, operations];
  }
}

/** Without the titles and summaries, which repeat the names. */
function withoutTitles(value) {
  return mapObjects(value, (entries) => entries.filter(([key, each]) => !(["title", "summary"].includes(key) && typeof each === "string")));
}

function mapObjects(value, change) {
  if (Array.isArray(value)) return value.map((each) => mapObjects(each, change));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(change(Object.entries(value)).map(([key, each]) => [key, mapObjects(each, change)]));
}
