import hooks from "eslint-plugin-react-hooks";
import { defineConfig, globalIgnores } from "eslint/config";
import typescript from "typescript-eslint";

export default defineConfig([
  globalIgnores(["node_modules", "src/api/schema.ts"]),
  {
    files: ["**/*.{ts,tsx}"],
    extends: [typescript.configs.strictTypeChecked, typescript.configs.stylisticTypeChecked, hooks.configs.flat.recommended],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": "off", // `onClick={() => act()}` reads well
      "react-hooks/incompatible-library": "off", // the virtual lists are not memoised by a compiler
      "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: { attributes: false } }],
    },
  },
]);
