/** Waiting times between attempts to connect: doubling, with a random part, at most a bound. */

const FIRST_MS = 500;
const LONGEST_MS = 20_000;
/** A connection that held this long starts the times anew. */
const STABLE_MS = 10_000;

export class Backoff {
  #next = FIRST_MS;
  #since = 0;

  constructor(
    readonly now: () => number = () => performance.now(),
    readonly random: () => number = Math.random,
  ) {}

  connected(): void {
    this.#since = this.now();
  }

  /** How long to wait now. */
  wait(): number {
    if (this.#since && this.now() - this.#since > STABLE_MS) this.#next = FIRST_MS;
    this.#since = 0;
    const ms = this.#next * (0.75 + this.random() / 2);
    this.#next = Math.min(this.#next * 2, LONGEST_MS);
    return ms;
  }
}
