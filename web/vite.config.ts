import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";
import { licences } from "./build/licences.ts";
import { preloadFont } from "./build/preload.ts";

const BROWSERS = ["chrome125", "firefox128", "safari17.5"];

export default defineConfig({
  plugins: [svelte(), licences(), preloadFont("inter-latin-wght")],
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
  },
  test: {
    environment: "happy-dom",
    include: ["src/**/*.test.ts", "build/**/*.test.ts"],
  },
  resolve: process.env.VITEST ? { conditions: ["browser"] } : {},
});
