/** Output of programs as styled spans; colours are kept, everything that moves the cursor is spelled out. */

import { type Piece, pieces } from "./spell";

export interface Span {
  pieces: Piece[];
  /** `red`, `bright-blue`, …; empty for the reader's own colour. */
  color: string;
  bold: boolean;
  dim: boolean;
  underline: boolean;
}

const ESCAPE = "\u001b";

export function hasColors(text: string): boolean {
  return text.includes(ESCAPE);
}

/** A line without colours; escapes are spelled out. */
export function plainSpans(line: string): Span[] {
  return line ? [span(line)] : [];
}

export function span(text: string): Span {
  return { pieces: pieces(text), color: "", bold: false, dim: false, underline: false };
}

/** Lines of output; a lone carriage return ends no line, it is spelled out. */
export function lines(text: string): string[] {
  const all = text.replaceAll("\r\n", "\n").split("\n");
  if (all[all.length - 1] === "") all.pop();
  return all;
}
