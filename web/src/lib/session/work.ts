import type { Facts } from "./facts";

/** Who works now, and what all answers cost; kept up to date without reading the whole session. */
export class Work {
  names: string[] = [];
  tokens = 0;
  /** Streams that have not ended, by whom. */
  readonly #speaking = new Map<string, string>();
  readonly #tokens = new Map<string, number>();

  /** After these items changed; null if others came or went. */
  update(facts: Pick<Facts, "items" | "ending">, changed: readonly string[] | null): void {
    if (!changed) {
      this.tokens = 0;
      this.#tokens.clear();
      this.#speaking.clear();
    }
    const items = changed ? changed.map((id) => facts.items.get(id)) : facts.items.values();
    for (const item of items) {
      if (item?.kind !== "answer" && item?.kind !== "thinking") continue;
      this.tokens += item.tokens - (this.#tokens.get(item.id) ?? 0);
      this.#tokens.set(item.id, item.tokens);
      if (facts.ending(item)) this.#speaking.delete(item.id);
      else this.#speaking.set(item.id, item.by);
    }
    this.names = [...new Set(this.#speaking.values())].sort();
  }
}
