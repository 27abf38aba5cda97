// Writes JSON schemas of the Telegram Bot API into the folder that is passed: of the parameters of every method
// (`SendMessageParams`) and of every object (`TelegramUpdate`), from the published types in `@gramio/types`.
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createGenerator } from "ts-json-schema-generator";

const folder = path.resolve(process.argv[2]);
const here = import.meta.dirname;
const types = path.join(here, "node_modules/@gramio/types/out");

const schema = createGenerator({
  path: `${types}/{params,objects}.d.ts`,
  tsconfig: path.join(here, "tsconfig.json"),
  type: "*",
  skipTypeCheck: true,
  jsDoc: "none",
  additionalProperties: false,
}).createSchema("*");

mkdirSync(folder, { recursive: true });
const file = path.join(folder, "telegram.json");
writeFileSync(`${file}.new`, JSON.stringify(schema));
renameSync(`${file}.new`, file);
