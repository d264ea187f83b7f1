import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";
import { lexerOnly } from "./build/lexer.ts";
import { licences } from "./build/licences.ts";
import { preloadFont } from "./build/preload.ts";

const BROWSERS = ["chrome125", "firefox128", "safari17.5"];
// What most screens need is one file: many small ones compress badly, and each is a request.
const FIRST =
  /\/src\/(App|screens\/index)|\/src\/lib\/(server|gate|vote)\/|\/src\/lib\/components\/(?!KeysHelp)|\/src\/lib\/(?!notices)[\w.]+\.ts$|\/home\/outcomes|\/text\/(CallText|Pieces|names|spell|words)/;

export default defineConfig({
  plugins: [lexerOnly(), svelte(), licences(), preloadFont("inter-latin-wght")],
  // Absolute, because the page is served at many addresses.
  base: "/",
  build: {
    outDir: process.env.ACCORD_PAGE_OUT ?? "dist",
    emptyOutDir: true,
    target: BROWSERS,
    cssTarget: BROWSERS,
    modulePreload: { polyfill: false },
    // A `data:` address would need an exception in the page's policy.
    assetsInlineLimit: 0,
    sourcemap: false,
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: "first", test: FIRST },
            { name: "icons", test: /\/lucide\//, minShareCount: 2 },
          ],
        },
      },
    },
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.ts", "build/**/*.test.ts"],
  },
  resolve: process.env.VITEST ? { conditions: ["browser"] } : {},
});
