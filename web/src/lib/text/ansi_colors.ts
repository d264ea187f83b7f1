/** Colours in the output of programs; loaded when some output has any. */

import Anser from "anser";
import { hasColors, plainSpans, type Span, span } from "./ansi";

/* SGR sequences, which choose colours; all other sequences stay in the text and are spelled out by `pieces`. */
const ESCAPE = "\u001b";
const STYLE = new RegExp(`${ESCAPE}\\[([0-9;:]*)m`, "g");
const OTHER = new RegExp(`${ESCAPE}(?!\\[[0-9;:]*m)`, "g");
const ESCAPE_MARK = "\ue01b";

const COLORS = [
  "ansi-black",
  "ansi-red",
  "ansi-green",
  "ansi-yellow",
  "ansi-blue",
  "ansi-magenta",
  "ansi-cyan",
  "ansi-white",
];

function colorName(name: string | null | undefined): string {
  if (!name) return "";
  const base = name.replace("ansi-bright-", "ansi-");
  if (!COLORS.includes(base)) return "";
  return name.replace("ansi-", "");
}

/** The spans of one line. */
export function spans(line: string): Span[] {
  if (!hasColors(line)) return plainSpans(line);
  // A private-use letter stands for escapes that do not choose a colour, because the parser would drop them.
  const guarded = line
    .replaceAll(ESCAPE_MARK, "\ufffd")
    .replace(OTHER, ESCAPE_MARK)
    .replace(STYLE, "\u001b[$1m");
  return Anser.ansiToJson(guarded, {
    use_classes: true,
    remove_empty: true,
    json: true,
  } as never).map((chunk) => ({
    ...span(chunk.content.replaceAll(ESCAPE_MARK, "\u001b")),
    color: colorName(chunk.fg),
    bold: chunk.decorations.includes("bold"),
    dim: chunk.decorations.includes("dim"),
    underline: chunk.decorations.includes("underline"),
  }));
}
