/** Text of others as pieces: what is plain, and what would hide or deceive, spelled out. */

export interface Piece {
  text: string;
  /** What the piece stands for, in words; empty for plain text. */
  hidden: string;
}

const NAMES: Record<number, string> = {
  0: "null",
  7: "bell",
  8: "backspace",
  11: "vertical tab",
  12: "form feed",
  13: "carriage return",
  27: "escape",
  127: "delete",
  160: "no-break space",
  173: "soft hyphen",
  1564: "Arabic letter mark",
  6158: "Mongolian vowel separator",
  8203: "zero-width space",
  8204: "zero-width non-joiner",
  8205: "zero-width joiner",
  8206: "left-to-right mark",
  8207: "right-to-left mark",
  8232: "line separator",
  8233: "paragraph separator",
  8234: "left-to-right embedding",
  8235: "right-to-left embedding",
  8236: "end of direction",
  8237: "left-to-right override",
  8238: "right-to-left override",
  8288: "word joiner",
  8294: "left-to-right isolate",
  8295: "right-to-left isolate",
  8296: "first strong isolate",
  8297: "end of isolate",
  65279: "byte order mark",
  12644: "blank letter",
  4447: "blank letter",
  4448: "blank letter",
  10240: "blank letter",
  65440: "blank letter",
};
/* Control (C0, C1), format, line and paragraph separators, surrogates, private use, unassigned, letters without ink,
   spaces that are not the space, variation selectors, and our own mark. Line breaks and tabs are left to the caller. */
const SUSPECT =
  /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}\u115f\u1160\u2800\u3164\uffa0]|\u034f|[\u{fe00}-\u{fe0f}]|[\u{e0100}-\u{e01ef}]|[^\P{Zs} ]|\p{M}{5,}|[\u25c6\u2666\u29eb\u2b25\u2bc1]/gu;
/** The mark beside what Accord itself computed and says, and what looks like it: text of others does not show it. */
export const OUR_MARK = /[\u25c6\u2666\u29eb\u2b25\u2bc1]/gu;
const ASCII = /^[\x20-\x7e\n\t]*$/;
/** Marks that pile up over the lines above; more than this many on one letter are spelled out. */
const MAX_MARKS = 4;

export function codeOf(letter: string): string {
  return [...letter]
    .map((each) => `U+${(each.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`)
    .join(" ");
}

function nameOf(letter: string): string {
  const code = letter.codePointAt(0) ?? 0;
  if (NAMES[code]) return NAMES[code];
  if (letter.search(OUR_MARK) === 0) return "a diamond, as Accord marks its own words";
  if (code < 0x20 || (code >= 0x80 && code < 0xa0)) return "control character";
  if (code >= 0xe0000 && code < 0xe0080) return "invisible tag";
  if (/\p{M}/u.test(letter)) return "stacked marks";
  if (/\p{Zs}/u.test(letter)) return "unusual space";
  return "invisible character";
}

/** Joins emoji and letters of some scripts; next to an ASCII letter it only makes words look the same. */
function isUsefulJoiner(text: string, at: number): boolean {
  const before = text.codePointAt(at - 1) ?? 0;
  const after = text.codePointAt(at + 1) ?? 0;
  return at > 0 && before > 0x7f && after > 0x7f;
}

function isEmojiSelector(text: string, at: number): boolean {
  return at > 0 && (text.codePointAt(at - 1) ?? 0) > 0x7f;
}

/** The text in order; joining all `text` of plain pieces and all letters of the others gives it back. */
export function pieces(text: string): Piece[] {
  if (ASCII.test(text)) return text ? [{ text, hidden: "" }] : [];
  const found: Piece[] = [];
  let plain = 0;
  const take = (upTo: number) => {
    if (upTo > plain) found.push({ text: text.slice(plain, upTo), hidden: "" });
  };
  for (const match of text.matchAll(SUSPECT)) {
    let letter = match[0];
    let at = match.index;
    if (letter === "\n" || letter === "\t") continue;
    if (letter === "\r" && text[at + 1] === "\n") {
      take(at);
      found.push({ text: "CR", hidden: "carriage return" });
      plain = at + 1;
      continue;
    }
    if (letter === "\u200d" && isUsefulJoiner(text, at)) continue;
    if (letter === "\ufe0f" && isEmojiSelector(text, at)) continue;
    if (/^\p{M}{5,}$/u.test(letter) && !/\u034f|[\ufe00-\ufe0f]/u.test(letter)) {
      const kept = [...letter].slice(0, MAX_MARKS).join("");
      at += kept.length;
      letter = letter.slice(kept.length);
    }
    take(at);
    found.push({ text: codeOf(letter), hidden: nameOf(letter) });
    plain = at + letter.length;
  }
  take(text.length);
  return found;
}

/** The text with everything that hides spelled out, for places that only take a string (titles, labels). */
export function spelled(text: string): string {
  return pieces(text)
    .map((piece) => (piece.hidden ? `[${piece.text}]` : piece.text))
    .join("");
}

/** On one line, at most so long. */
export function oneLine(text: string, most = 200): string {
  const line = spelled(text.slice(0, most * 4))
    .replace(/\s+/g, " ")
    .trim();
  const letters = [...line];
  return letters.length > most ? `${letters.slice(0, most - 1).join("")}…` : line;
}

/** Whether everything in the text shows. */
export function isPlain(text: string): boolean {
  return pieces(text).every((piece) => !piece.hidden);
}
