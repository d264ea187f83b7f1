/// <reference types="node" />
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Plugin } from "vite";

/** Writes the licences of every package whose code or fonts end up in the page. */
export function licences(): Plugin {
  return {
    name: "licences",
    apply: "build",
    generateBundle(_options, bundle) {
      const files = new Set<string>();
      for (const output of Object.values(bundle)) {
        const sources = output.type === "chunk" ? output.moduleIds : output.originalFileNames;
        for (const source of sources) files.add(source);
      }
      const packages = new Map<string, string>();
      for (const file of files) {
        const folder = packageFolder(file);
        if (folder) packages.set(folder, licenceOf(folder));
      }
      const parts = [...packages.values()].sort();
      this.emitFile({
        type: "asset",
        fileName: "licences.txt",
        source: `Accord's page contains these packages.\n\n${parts.join("\n")}`,
      });
    },
  };
}

/** The folder of the package that a file belongs to, as far as it is one from the registry. */
export function packageFolder(file: string): string | undefined {
  const path = file.replaceAll("\\", "/").replace(/^\0/, "").replace(/\?.*$/, "");
  const at = path.lastIndexOf("node_modules/");
  if (at < 0) return undefined;
  const start = at + "node_modules/".length;
  const words = path.slice(start).split("/");
  const name = words[0]?.startsWith("@") ? words.slice(0, 2).join("/") : words[0];
  return path.slice(0, start) + name;
}

function licenceOf(folder: string): string {
  const about = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const file = readdirSync(folder).find((name) => /^licen[cs]e(\.|$)/i.test(name));
  if (!file) throw new Error(`${about.name} has no licence file in ${dirname(folder)}`);
  const text = existsSync(join(folder, file)) ? readFileSync(join(folder, file), "utf8") : "";
  return `${about.name} ${about.version}, ${about.license}\n\n${text.trim()}\n`;
}
