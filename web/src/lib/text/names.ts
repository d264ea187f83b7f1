/** Names that people chose, beside the ids that their credentials prove. */

import { OUR_MARK, oneLine } from "./spell";

/* Letters of other alphabets that look like Latin ones, and digits that look like letters. */
const ALIKE: Record<string, string> = {
  а: "a",
  е: "e",
  о: "o",
  р: "p",
  с: "c",
  х: "x",
  у: "y",
  і: "i",
  ј: "j",
  ѕ: "s",
  ԁ: "d",
  ո: "n",
  α: "a",
  ο: "o",
  ρ: "p",
  ν: "v",
  ι: "i",
  κ: "k",
  ɑ: "a",
  ı: "i",
  ⅼ: "l",
  т: "t",
  м: "m",
  н: "h",
  к: "k",
  в: "b",
  "0": "o",
  "1": "l",
  "|": "l",
  "5": "s",
};

/** What a name looks like: equal for names that a reader could confuse. */
export function skeleton(name: string): string {
  const plain = name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[\p{M}\p{Cf}\p{Zs}\s._-]/gu, "");
  return [...plain]
    .map((letter) => ALIKE[letter] ?? letter)
    .join("")
    .replace(/rn/g, "m")
    .replace(/[il]/g, "l");
}

export interface Person {
  id: string;
  name: string;
}

const RESERVED = ["system", "accord", "you", "◆", "everyone", "nobody"].map(skeleton);

/** The names to show by id; where two look alike, or one looks like ours, with the id beside it. */
export function shownNames(people: readonly Person[]): Map<string, string> {
  const alike = new Map<string, number>();
  for (const person of people)
    for (const form of new Set([skeleton(person.name), skeleton(person.id)]))
      alike.set(form, (alike.get(form) ?? 0) + 1);
  return new Map(
    people.map((person) => {
      const name =
        oneLine(person.name.replace(OUR_MARK, " ").replace(/[()]/g, " "), 40) || person.id;
      const form = skeleton(person.name);
      const mixed = /[a-z]/i.test(person.name) && /[\u0370-\u052f]/.test(person.name);
      const doubtful = (alike.get(form) ?? 0) > 1 || RESERVED.includes(form) || mixed;
      return [
        person.id,
        doubtful && name !== person.id ? `${name} (${oneLine(person.id, 40)})` : name,
      ];
    }),
  );
}

/** Two letters for a round or square mark. */
export function initials(name: string): string {
  const words = oneLine(name, 60)
    .split(/[\s._-]+/)
    .filter((word) => /^[\p{L}\p{N}]/u.test(word));
  const letters =
    words.length > 1
      ? [words[0], words[words.length - 1]].map((word) => [...(word ?? "")][0])
      : [...(words[0] ?? "?")].slice(0, 2);
  return letters.join("").toUpperCase();
}
