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

// Every address of the page has one path segment, so relative paths work under any base path.
export default defineConfig({
  base: "./",
  plugins: [removeOldFontFormats(), react()],
  build: {
    outDir: "../src/palaver/web/static",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy forbids fonts from data: URLs
    modulePreload: { polyfill: false },
    target: "es2023",
    rolldownOptions: {
      output: {
        // Code for every visit is one file; code for one panel is loaded with that panel.
        codeSplitting: {
          groups: [
            { name: "page", tags: ["$initial"], priority: 2 },
            { name: "panels", test: /src\/panels\/shared/, priority: 1 },
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
    css: { include: /tokens\.css/ }, // a test reads the colors
  },
});
