import boundaries from "eslint-plugin-boundaries";
import hooks from "eslint-plugin-react-hooks";
import { defineConfig, globalIgnores } from "eslint/config";
import typescript from "typescript-eslint";

/**
 * The layers of `src/`, from the bottom up. A folder may import from the layers below its own and from nowhere else: not from
 * the layers above, and not from its neighbors in the same layer. `README.md` describes the folders.
 */
const LAYERS = [
  ["lib"],
  ["words"],
  ["format"],
  ["ui"],
  ["layout"],
  ["api", "markdown"],
  ["outbox"],
  ["live"],
  ["agent", "imports", "sessions", "temporary"],
  ["composer", "notifications", "panels/shared"],
  ["panels/forms"],
  ["conversation", "home", "palette", "panels/*", "sidebar", "sign-in"],
  ["shell"],
];

const layerPolicies = LAYERS.flatMap((folders, layer) =>
  folders.map((folder) => ({
    from: { element: { type: folder } },
    allow: { to: { element: { types: { anyOf: LAYERS.slice(0, layer).flat() } } } },
  })),
);

export default defineConfig([
  globalIgnores(["node_modules", "src/api/schema.ts"]),
  {
    files: ["**/*.{ts,tsx}"],
    extends: [typescript.configs.strictTypeChecked, typescript.configs.stylisticTypeChecked, hooks.configs.flat.recommended],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": "off", // `onClick={() => act()}` reads well
      "react-hooks/incompatible-library": "off", // no compiler memoizes the virtual lists
      "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: { attributes: false } }],
    },
  },
  {
    files: ["src/**/*.{ts,tsx}"],
    plugins: { boundaries },
    settings: {
      "import/resolver": { node: { extensions: [".ts", ".tsx"] } },
      "boundaries/elements": [...LAYERS.flat(), "styles", "testing"].map((folder) => ({ type: folder, pattern: `src/${folder}` })),
      "boundaries/files": [{ category: "test", pattern: "**/*.test.ts" }],
    },
    rules: {
      "boundaries/no-unknown-files": "error", // a new folder has to be added to a layer
      "boundaries/dependencies": [
        "error",
        {
          default: "disallow",
          policies: [
            ...layerPolicies,
            { from: { element: { type: "shell" } }, allow: { to: { element: { type: "styles" } } } },
            { from: { element: { type: "testing" } }, allow: { to: { element: { types: { anyOf: ["api", "words"] } } } } },
            { from: { file: { categories: "test" } }, allow: { to: { element: { type: "testing" } } } },
          ],
        },
      ],
    },
  },
]);
