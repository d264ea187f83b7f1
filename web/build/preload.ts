import type { Plugin } from "vite";

/** Has the browser fetch the font of the interface before it has read the style sheet. */
export function preloadFont(name: string): Plugin {
  return {
    name: "preload-font",
    apply: "build",
    transformIndexHtml: {
      order: "post",
      handler(_html, { bundle }) {
        const file = Object.keys(bundle ?? {}).find((each) => each.includes(name));
        if (!file) throw new Error(`No file of the page is called ${name}`);
        const attrs = { rel: "preload", href: `/${file}`, as: "font", type: "font/woff2" };
        return [{ tag: "link", attrs: { ...attrs, crossorigin: true }, injectTo: "head" }];
      },
    },
  };
}
