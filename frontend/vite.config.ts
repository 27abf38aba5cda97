/// <reference types="vitest/config" />
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** KaTeX lists each font in three formats. Every browser that can show this page uses the first, so the others are removed. */
function removeOldFontFormats(): Plugin {
  return {
    name: "remove-old-font-formats",
    enforce: "pre",
    transform(code, id) {
      if (!id.includes("katex") || !id.endsWith(".css")) return null;
      return code.replace(/,url\([^)]*\.(?:woff|ttf)\) ?format\("[a-z]+"\)/g, "");
    },
  };
}

/** Tells `theme.js` the files of the languages, which are named after their content. */
function nameLanguageFiles(): Plugin {
  return {
    name: "name-language-files",
    transformIndexHtml: {
      order: "post",
      handler(html, { bundle }) {
        const files = Object.values(bundle ?? {}).filter((file) => file.type === "chunk" && /src\/words\/(en|de)\.ts$/.test(file.facadeModuleId ?? ""));
        const attributes = files.map((file) => ` data-${(file as { name: string }).name}="./${file.fileName}"`).join("");
        return html.replace('<script src="./theme.js"', (tag) => tag + attributes);
      },
    },
  };
}

// Every address of the page has one path segment, so relative paths work under any base path.
export default defineConfig({
  base: "./",
  plugins: [removeOldFontFormats(), nameLanguageFiles(), react()],
  build: {
    outDir: "../src/palaver/web/static",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy forbids fonts from data: URLs
    modulePreload: { polyfill: false },
    target: "es2023",
    rolldownOptions: {
      output: {
        // Code for every visit is one file; code for one panel is loaded with that panel. What several panels share is one file,
        // because small ones take more in headers than in code.
        codeSplitting: {
          groups: [
            { name: "page", tags: ["$initial"], priority: 2 },
            { name: "panels", test: /src\/(panels\/shared|api\/budgets|format|ui|markdown\/language)/, priority: 1 },
            { name: "Markdown", test: /src\/markdown\/(Markdown|DiagramBlock|UserText)\.tsx/, priority: 1 },
          ],
        },
      },
    },
  },
  worker: { format: "es" },
  server: { proxy: { "/api": "http://127.0.0.1:8765" } },
  test: {
    environment: "happy-dom",
    isolate: false, // a new DOM for every file would take most of the time; see freshPage.ts
    setupFiles: ["src/testing/freshPage.ts"],
    include: ["src/**/*.test.ts"],
    testTimeout: 60_000, // only something that hangs takes longer, also on a busy machine
    css: { include: /tokens\.css/ }, // a test reads the colors
  },
});
