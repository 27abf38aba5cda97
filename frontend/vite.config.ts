/// <reference types="vitest/config" />
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** KaTeX names each font in three formats; every browser that can show this page takes the first. */
function onlyModernFonts(): Plugin {
  return {
    name: "only-modern-fonts",
    enforce: "pre",
    transform(code, id) {
      if (!id.includes("katex") || !id.endsWith(".css")) return null;
      return code.replace(/,url\([^)]*\.(?:woff|ttf)\) ?format\("[a-z]+"\)/g, "");
    },
  };
}

// Every address of the page is one step below the place it is served from, so relative paths work under any base path.
export default defineConfig({
  base: "./",
  plugins: [onlyModernFonts(), react()],
  build: {
    outDir: "../src/palaver/web/static",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the content security policy allows no fonts from data: addresses
    modulePreload: { polyfill: false },
    target: "es2023",
    rolldownOptions: {
      output: {
        // What every visit needs comes as one file; what a page needs, with that page.
        codeSplitting: {
          groups: [
            { name: "page", tags: ["$initial"], priority: 2 },
            { name: "panels", test: /src\/panels\/(?:parts|calls)/, priority: 1 },
          ],
        },
      },
    },
  },
  server: { proxy: { "/api": "http://127.0.0.1:8765" } },
  test: { environment: "happy-dom", include: ["src/**/*.test.ts"] },
});
