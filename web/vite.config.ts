import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";
import { lexerOnly } from "./build/lexer.ts";
import { licences } from "./build/licences.ts";
import { preloadFont } from "./build/preload.ts";

const BROWSERS = ["chrome125", "firefox128", "safari17.5"];
// What most screens need is one file: many small ones compress badly, and each is a request.
const FIRST =
  /\/src\/(App|screens\/index)|\/src\/lib\/(server|gate|vote)\/|\/src\/lib\/components\/(?!KeysHelp|TabBar|Palette|jump|QrCode)|\/src\/lib\/(?!notices|reminders|sound|worker_notices)[\w.]+\.ts$|\/home\/outcomes|\/text\/(CallText|EndMark|Pieces|names|spell|words)/;
const MARKDOWN = /\/node_modules\/marked\/|\/text\/(markdown|Markdown|BlockView|Inlines|links)/;
const SESSION =
  /\/src\/lib\/session\/(?!Composer|ReplayBar|RoomPanel|room_draft|shared_draft|text_merge)|\/text\/(OutputText|ansi\.ts)|\/node_modules\/virtua\//;

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
        // Every file names those that it loads: shorter names are fewer bytes that do not compress.
        chunkFileNames: "assets/[name]-[hash:6].js",
        assetFileNames: "assets/[name]-[hash:6][extname]",
        codeSplitting: {
          groups: [
            { name: "first", test: FIRST, priority: 3 },
            { name: "icons", test: /\/lucide\//, minShareCount: 2, priority: 2 },
            { name: "markdown", test: MARKDOWN, priority: 1 },
            { name: "session", test: SESSION },
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
