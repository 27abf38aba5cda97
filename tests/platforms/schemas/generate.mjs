// Writes JSON schemas of what platforms publish as TypeScript types, one file per platform, into the folder that is
// passed. The servers that stand for a platform in the tests check requests and events with them.
// `node generate.mjs <folder> [platform…]`; without names, all of them.
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createGenerator } from "ts-json-schema-generator";

const here = import.meta.dirname;
const packages = path.join(here, "node_modules");

// For each platform: the files with its types, and the type to describe (`*`: every one that is exported).
const platforms = {
  telegram: { files: `${packages}/@gramio/types/out/{params,objects}.d.ts`, type: "*" },
};

const [target, ...names] = process.argv.slice(2);
const folder = path.resolve(target);
mkdirSync(folder, { recursive: true });
for (const name of names.length > 0 ? names : Object.keys(platforms)) {
  const { files, type } = platforms[name];
  const schema = createGenerator({
    path: files,
    tsconfig: path.join(here, "tsconfig.json"),
    type,
    skipTypeCheck: true,
    jsDoc: "none",
    additionalProperties: false,
  }).createSchema(type);
  const file = path.join(folder, `${name}.json`);
  writeFileSync(`${file}.new`, JSON.stringify(schema));
  renameSync(`${file}.new`, file);
}
