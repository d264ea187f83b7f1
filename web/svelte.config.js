import { vitePreprocess } from "@sveltejs/vite-plugin-svelte";

export default {
  preprocess: vitePreprocess(),
  compilerOptions: {
    // Elements are made one by one: an HTML string would be refused by the page's own policy.
    fragments: "tree",
    runes: true,
  },
};
