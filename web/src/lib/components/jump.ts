/** What can be jumped to, and which of it a few letters mean. */

export interface Target {
  label: string;
  group: "Waits for you" | "Sessions" | "Go to" | "Commands" | "People" | "Code";
  keys?: string;
  run: () => void;
}

const MOST = 12;

/** How well the letters fit: all of them in order, best at the beginning of a word; 0 for not at all. */
export function closeness(label: string, typed: string): number {
  const [text, wanted] = [label.toLowerCase(), typed.trim().toLowerCase()];
  if (!wanted) return 1;
  const at = text.indexOf(wanted);
  if (at === 0) return 4;
  if (at > 0) return /\W/.test(text[at - 1] ?? "") ? 3 : 2;
  let place = -1;
  for (const letter of wanted) {
    place = text.indexOf(letter, place + 1);
    if (place < 0) return 0;
  }
  return 1;
}

/** The best targets; in the order given where they fit alike. */
export function found(targets: readonly Target[], typed: string): Target[] {
  return targets
    .map((target) => ({ target, near: closeness(target.label, typed) }))
    .filter((each) => each.near > 0)
    .sort((a, b) => b.near - a.near)
    .slice(0, MOST)
    .map((each) => each.target);
}
