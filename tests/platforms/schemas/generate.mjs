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
  discord: { files: path.join(here, "discord.ts"), type: "*" },
  // `Block` is Slack's catch-all for blocks that its types do not know: with it, every block would pass.
  slack: { files: path.join(here, "slack.ts"), type: "*", without: "Block" },
  telegram: { files: `${packages}/@gramio/types/out/{params,objects}.d.ts`, type: "*" },
  whatsapp: { files: `${packages}/@whatsapp-cloudapi/types/dist/{cloudapi,webhook}/*.d.ts`, type: "*" },
};

const [target, ...names] = process.argv.slice(2);
const folder = path.resolve(target);
mkdirSync(folder, { recursive: true });
for (const name of names.length > 0 ? names : Object.keys(platforms)) {
  const { files, type, without } = platforms[name];
  const schema = createGenerator({
    path: files,
    tsconfig: path.join(here, "tsconfig.json"),
    type,
    skipTypeCheck: true,
    jsDoc: "none",
    additionalProperties: false,
  }).createSchema(type);
  if (without) removeDefinition(schema, without);
  const file = path.join(folder, `${name}.json`);
  writeFileSync(`${file}.new`, JSON.stringify(schema));
  renameSync(`${file}.new`, file);
}

/** Removes a definition, also from every list of alternatives. */
function removeDefinition(schema, name) {
  delete schema.definitions[name];
  const visit = (node) => {
    if (Array.isArray(node.anyOf)) {
      node.anyOf = node.anyOf.filter((each) => each.$ref !== `#/definitions/${name}`);
    }
    for (const value of Object.values(node)) {
      if (value && typeof value === "object") visit(value);
    }
  };
  visit(schema);
}
