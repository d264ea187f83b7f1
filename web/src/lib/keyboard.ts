import { preferences } from "./preferences.svelte";

/** One command by key. `mod` is ⌘ on a Mac and Ctrl elsewhere; `g h` is one key after the other. */
export interface Binding {
  keys: string;
  /** What it does, for the list of all keys. */
  label: string;
  group: string;
  run: () => void;
  /** Works while somebody writes, too. */
  inFields?: boolean;
}

/** The first key of a sequence counts for this long. */
const SEQUENCE_MS = 1200;

export function isTextField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || target.matches("input, textarea, select");
}

/** `a`, `shift+s`, `mod+enter`, `?`; empty for a modifier alone. */
export function nameOf(event: KeyboardEvent): string {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (["Shift", "Control", "Alt", "Meta", "Dead", "Process"].includes(key) || event.altKey)
    return "";
  const words = [];
  if (event.metaKey || event.ctrlKey) words.push("mod");
  // The shift in `?` is part of the letter.
  if (event.shiftKey && (key.length > 1 || /[a-z]/.test(key))) words.push("shift");
  return [...words, key.toLowerCase()].join("+");
}

class Keyboard {
  #layers: Binding[][] = [];
  #first = "";
  #firstAt = 0;

  constructor() {
    if (typeof document === "undefined") return;
    document.addEventListener("keydown", (event) => this.press(event));
  }

  /** Add bindings; later ones come first. Returns how to remove them. */
  register(bindings: Binding[]): () => void {
    this.#layers.unshift(bindings);
    return () => {
      this.#layers = this.#layers.filter((each) => each !== bindings);
    };
  }

  get all(): Binding[] {
    return this.#layers.flat();
  }

  press(event: KeyboardEvent): void {
    const name = nameOf(event);
    if (!name || event.repeat || event.defaultPrevented || event.isComposing) return;
    const writing = isTextField(event.target);
    const isLetter = name.length === 1;
    if (isLetter && (writing || !preferences.letterKeys)) return;
    // A dialog has the keyboard to itself.
    if (document.querySelector("dialog[open]")) return;
    const found = this.#find(name, writing);
    if (!found) return;
    event.preventDefault();
    found.run();
  }

  #find(name: string, writing: boolean): Binding | undefined {
    const now = performance.now();
    const sequence = now - this.#firstAt < SEQUENCE_MS ? `${this.#first} ${name}` : "";
    this.#first = "";
    const usable = this.all.filter((each) => !writing || each.inFields);
    const found = usable.find((each) => each.keys === sequence || each.keys === name);
    if (!found && usable.some((each) => each.keys.startsWith(`${name} `))) {
      this.#first = name;
      this.#firstAt = now;
    }
    return found;
  }
}

export const keyboard = new Keyboard();
