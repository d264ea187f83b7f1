/**
 * Whether something has stood still for a while, so that a click that was meant for what was there
 * before does not hit it. Scrolling moves everything and counts as standing still.
 */

const STEADY_MS = 600;
const SAMPLE_MS = 120;
/** On the element while it stands still, for those who test the page. */
const MARK = "data-steady";

export class Steady {
  #element: HTMLElement | undefined;
  #place = "";
  #since = 0;

  constructor(readonly now: () => number = () => performance.now()) {}

  get isSteady(): boolean {
    this.look();
    return this.now() - this.#since >= STEADY_MS;
  }

  /** Watch an element; returns how to stop. */
  watch(element: HTMLElement): () => void {
    this.#element = element;
    this.#place = "";
    this.look();
    const timer = setInterval(() => element.toggleAttribute(MARK, this.isSteady), SAMPLE_MS);
    return () => clearInterval(timer);
  }

  /** Something else is here now, such as another question on the same buttons. */
  restart(): void {
    this.#since = this.now();
    this.#element?.removeAttribute(MARK);
  }

  look(): void {
    if (!this.#element) return;
    const place = placeOf(this.#element);
    if (place === this.#place) return;
    this.#place = place;
    this.#since = this.now();
  }
}

function placeOf(element: HTMLElement): string {
  let top = 0;
  let left = 0;
  for (let at: HTMLElement | null = element; at; at = at.offsetParent as HTMLElement | null) {
    top += at.offsetTop;
    left += at.offsetLeft;
  }
  return `${top} ${left} ${element.offsetWidth} ${element.offsetHeight}`;
}
