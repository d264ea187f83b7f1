/**
 * Text that arrives in pieces, each with its place. New pieces come in order and without a gap (a connection resumes where
 * it ended), older ones as whole stretches before them; repeats change nothing.
 */

interface Part {
  from: number;
  to: number;
  text: string;
}

/** What a stream may hold in memory; the server has the rest. */
const MOST = 160 << 10;
const KEPT = 96 << 10;
/** Appending makes a tree of strings; so often it is made flat, or it takes five times the memory. */
const FLATTEN_EVERY = 64;

export class GrowingText {
  #parts: Part[] = [];
  #appended = 0;
  /** Counts changes other than by appending at the end. */
  rebuilt = 0;
  /** How many characters at the beginning were let go. */
  folded = 0;
  #foldedTo = 0;

  /** A piece that covers the messages `from` to `to`; false if it is here already. */
  add(from: number, to: number, text: string): boolean {
    const parts = this.#parts;
    const last = parts[parts.length - 1];
    if (to <= this.#foldedTo) return false;
    if (last === undefined || from > last.to) {
      // The common case. Neighbours grow together, so that a long stream is one part.
      if (last) {
        last.to = to;
        last.text += text;
        if (++this.#appended % FLATTEN_EVERY === 0) last.text.charCodeAt(last.text.length >> 1);
        if (last.text.length > MOST) this.#fold(last);
      } else parts.push({ from, to, text });
      return true;
    }
    if (parts.some((part) => part.from <= from && to <= part.to)) return false;
    // A folded piece that covers single ones takes their place.
    const kept = parts.filter((part) => part.from < from || part.to > to);
    kept.push({ from, to, text });
    kept.sort((a, b) => a.from - b.from);
    this.#parts = kept;
    this.rebuilt++;
    return true;
  }

  #fold(part: Part): void {
    const cut = part.text.length - KEPT;
    const line = part.text.indexOf("\n\n", cut);
    const at = line > 0 && line < cut + KEPT / 2 ? line + 2 : cut;
    this.folded += at;
    this.#foldedTo = part.from;
    // A copy, because a slice would keep the whole text alive.
    part.text = part.text.slice(at).split("").join("");
    this.rebuilt++;
  }

  get text(): string {
    const parts = this.#parts;
    return parts.length === 1 ? (parts[0]?.text ?? "") : parts.map((part) => part.text).join("");
  }
}
