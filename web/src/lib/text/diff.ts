/** Changes of text, line by line, with the words that changed inside a line. */

// The whole package has more kinds of comparison than the page needs.
import { diffArrays } from "diff/lib/diff/array.js";

/** A change of a file: both texts, or a patch as its author wrote it. */
export type FileChange = { path: string } & ({ before: string; after: string } | { patch: string });

export type Sign = "+" | "-" | " ";
export interface Word {
  text: string;
  changed: boolean;
}
export interface DiffLine {
  sign: Sign;
  words: Word[];
  old: number | null;
  new: number | null;
}

export function linesOf(change: FileChange): DiffLine[] {
  return "patch" in change ? patchLines(change.patch) : diffLines(change.before, change.after);
}

/** Longer texts are compared as a whole: all removed, all added. */
const MAX_LINES = 4000;
const MAX_WORD_LINE = 400;

export function diffLines(before: string, after: string): DiffLine[] {
  const [old, fresh] = [split(before), split(after)];
  if (old.length + fresh.length > MAX_LINES) {
    return [
      ...old.map((text, at) => line("-", text, at + 1, null)),
      ...fresh.map((text, at) => line("+", text, null, at + 1)),
    ];
  }
  const result: DiffLine[] = [];
  let [oldAt, newAt] = [1, 1];
  const parts = diffArrays(old, fresh);
  parts.forEach((part, place) => {
    const texts = part.value;
    if (!part.added && !part.removed) {
      for (const text of texts) result.push(line(" ", text, oldAt++, newAt++));
      return;
    }
    const other = part.removed ? parts[place + 1] : parts[place - 1];
    const pair = other && (part.removed ? other.added : other.removed) ? other.value : null;
    texts.forEach((text, at) => {
      const match = pair?.[at];
      const words =
        match === undefined
          ? plain(text)
          : part.removed
            ? changedWords(text, match, true)
            : changedWords(match, text, false);
      result.push(
        part.removed
          ? { sign: "-", words, old: oldAt++, new: null }
          : { sign: "+", words, old: null, new: newAt++ },
      );
    });
  });
  return result;
}

/** A patch as its author wrote it, with line numbers where it has hunk heads. */
export function patchLines(patch: string): DiffLine[] {
  let [oldAt, newAt]: [number | null, number | null] = [null, null];
  return split(patch).map((text) => {
    const head = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(text);
    if (head) {
      [oldAt, newAt] = [Number(head[1]), Number(head[2])];
      return line(" ", text, null, null);
    }
    if (text.startsWith("+") && !text.startsWith("+++ "))
      return line("+", text.slice(1), null, newAt === null ? null : newAt++);
    if (text.startsWith("-") && !text.startsWith("--- "))
      return line("-", text.slice(1), oldAt === null ? null : oldAt++, null);
    if (text.startsWith(" "))
      return line(
        " ",
        text.slice(1),
        oldAt === null ? null : oldAt++,
        newAt === null ? null : newAt++,
      );
    return line(" ", text, null, null);
  });
}

export function counts(lines: readonly DiffLine[]): { added: number; removed: number } {
  let [added, removed] = [0, 0];
  for (const each of lines) {
    if (each.sign === "+") added++;
    if (each.sign === "-") removed++;
  }
  return { added, removed };
}

function split(text: string): string[] {
  const all = text.split("\n");
  if (all[all.length - 1] === "") all.pop();
  return all;
}

function line(sign: Sign, text: string, old: number | null, fresh: number | null): DiffLine {
  return { sign, words: plain(text), old, new: fresh };
}

function plain(text: string): Word[] {
  return text ? [{ text, changed: false }] : [];
}

/** Words, runs of spaces, and each other sign for itself. */
function tokens(text: string): string[] {
  return text.match(/[\p{L}\p{N}_]+|\s+|[\s\S]/gu) ?? [];
}

function changedWords(before: string, after: string, removed: boolean): Word[] {
  if (before.length > MAX_WORD_LINE || after.length > MAX_WORD_LINE)
    return plain(removed ? before : after);
  const parts = diffArrays(tokens(before), tokens(after)).map(({ added, removed, value }) => ({
    added,
    removed,
    value: value.join(""),
  }));
  const kept = parts
    .filter((part) => !part.added && !part.removed)
    .reduce((sum, part) => sum + part.value.length, 0);
  // Lines that have little in common are marked as a whole, not word by word.
  if (kept * 2 < Math.max(before.length, after.length)) return plain(removed ? before : after);
  return parts
    .filter((part) => (removed ? !part.added : !part.removed))
    .map((part) => ({ text: part.value, changed: Boolean(part.added || part.removed) }));
}
