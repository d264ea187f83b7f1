import type { Plugin } from "vite";

/**
 * Keeps Markdown's lexer and leaves out the renderers of HTML, which this page must never use.
 *
 * The package makes one of each when it is loaded, so a bundler cannot see that they are unused.
 */
export function lexerOnly(): Plugin {
  const whole =
    /\bvar \w+=new \w+;function \w+\(\w,\w\)\{return \w+\.parse\(.*export\{.*?(\w+) as Lexer\b.*$/s;
  return {
    name: "lexer-only",
    enforce: "pre",
    transform: {
      filter: { id: /\/marked\/lib\/marked\.esm\.js$/ },
      handler(code) {
        const [tail, lexer] = whole.exec(code) ?? [];
        if (!tail)
          throw new Error("marked changed: build/lexer.ts does not find its lexer any more");
        return { code: `${code.slice(0, -tail.length)}export{${lexer} as Lexer};`, map: null };
      },
    },
  };
}
