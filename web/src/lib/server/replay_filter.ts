import type { ReceivedEnvelope } from "./types";

const REMEMBERED = 4096;

/** Tells what is new from what a reconnection sends again. */
export class ReplayFilter {
  lastSeq = 0;
  lastId: string | undefined;
  readonly #seen = new Set<string>();

  isNew(message: ReceivedEnvelope): boolean {
    const seq = message.seq ?? 0;
    if (seq > 0) {
      if (seq <= this.lastSeq) return false;
      this.lastSeq = seq;
      this.lastId = message.id;
      // A rejoin sends shared context again, then without a `seq`.
      if (message.type === "context.add") this.#remember(message.id);
      return true;
    }
    if (this.#seen.has(message.id)) return false;
    this.#remember(message.id);
    return true;
  }

  #remember(id: string): void {
    this.#seen.add(id);
    if (this.#seen.size <= REMEMBERED) return;
    const oldest = this.#seen.values().next().value;
    if (oldest !== undefined) this.#seen.delete(oldest);
  }
}
