import { Backoff } from "./backoff";

/**
 * Whether the server is there, in words that a banner can say; and the clock by which to try again.
 */
export class Connection {
  /** `caught up` for a moment after the server came back. */
  state = $state<"connecting" | "here" | "away" | "caught up">("connecting");
  /** The time of the last thing that was heard. */
  heardAt = $state(0);
  retryAt = $state(0);
  #backoff = new Backoff();
  #retry: ReturnType<typeof setTimeout> | undefined;
  #settle: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly open: () => void) {
    if (typeof window === "undefined") return;
    window.addEventListener("online", () => this.retryNow());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.retryNow();
    });
  }

  get isHere(): boolean {
    return this.state === "here" || this.state === "caught up";
  }

  heard(): void {
    this.heardAt = Date.now();
    if (this.isHere) return;
    this.#backoff.connected();
    const returned = this.state === "away";
    this.state = returned ? "caught up" : "here";
    clearTimeout(this.#settle);
    if (returned) this.#settle = setTimeout(() => (this.state = "here"), 4000);
  }

  /** The connection is gone; `open` is called again after a while. */
  lost(): void {
    if (this.#retry) return;
    this.state = "away";
    const ms = this.#backoff.wait();
    this.retryAt = Date.now() + ms;
    this.#retry = setTimeout(() => this.#try(), ms);
  }

  /** Because the person asked, the network is back, or the page is looked at again. */
  retryNow(): void {
    if (this.#retry) this.#try();
  }

  stop(): void {
    clearTimeout(this.#retry);
    clearTimeout(this.#settle);
    this.#retry = undefined;
    this.state = "connecting";
  }

  #try(): void {
    clearTimeout(this.#retry);
    this.#retry = undefined;
    this.open();
  }
}
