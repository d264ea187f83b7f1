/** Three-way merging of text: by line, by word where both changed the same lines, by letter where both typed into one word. Nothing is lost. */

import { diffArrays } from "diff/lib/diff/array.js";

interface Change {
  start: number;
  end: number;
  put: string[];
}

/** What turns `base` into `other`, in order. */
function changes(base: readonly string[], other: readonly string[]): Change[] {
  const result: Change[] = [];
  let at = 0;
  let open: Change | null = null;
  for (const part of diffArrays([...base], [...other])) {
    if (!part.added && !part.removed) {
      at += part.value.length;
      open = null;
      continue;
    }
    if (!open) {
      open = { start: at, end: at, put: [] };
      result.push(open);
    }
    if (part.removed) {
      at += part.value.length;
      open.end = at;
    } else open.put.push(...part.value);
  }
  return result;
}

type Resolve = (base: string[], ours: string[], theirs: string[]) => string[];

/** Whether `other` is `base` with more in it, such as a word into which somebody typed. */
function onlyAdds(base: readonly string[], other: readonly string[]): boolean {
  return changes(base, other).every((change) => change.start === change.end);
}

function mergeTokens(base: string[], ours: string[], theirs: string[], resolve: Resolve): string[] {
  const [left, right] = [changes(base, ours), changes(base, theirs)];
  const result: string[] = [];
  let at = 0;
  while (left.length || right.length) {
    const start = Math.min(left[0]?.start ?? Infinity, right[0]?.start ?? Infinity);
    let end = start;
    const [mine, yours]: [Change[], Change[]] = [[], []];
    // Changes that touch belong together.
    for (let grew = true; grew; ) {
      grew = false;
      for (const [queue, taken] of [
        [left, mine],
        [right, yours],
      ] as const)
        while (
          queue[0] &&
          queue[0].start <= end &&
          (queue[0].start < end || queue[0].start === start || taken.length === 0)
        ) {
          const change = queue.shift() as Change;
          taken.push(change);
          end = Math.max(end, change.end);
          grew = true;
        }
    }
    result.push(...base.slice(at, start));
    const [ourPart, theirPart] = [
      applied(base, start, end, mine),
      applied(base, start, end, yours),
    ];
    if (!yours.length) result.push(...ourPart);
    else if (!mine.length || equal(ourPart, theirPart)) result.push(...theirPart);
    else result.push(...resolve(base.slice(start, end), ourPart, theirPart));
    at = end;
  }
  return [...result, ...base.slice(at)];
}

function applied(
  base: readonly string[],
  start: number,
  end: number,
  done: readonly Change[],
): string[] {
  const result: string[] = [];
  let at = start;
  for (const change of done) {
    result.push(...base.slice(at, change.start), ...change.put);
    at = change.end;
  }
  return [...result, ...base.slice(at, end)];
}

function equal(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((each, at) => each === b[at]);
}

function lines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function words(text: string): string[] {
  return text.match(/\s|[^\s]+/g) ?? [];
}

/** Both changed the same words: what they typed into them is put together by letters, or both versions stay, ours first. */
function keepBoth(base: string[], ours: string[], theirs: string[]): string[] {
  if (equal(base, ours)) return theirs;
  if (equal(base, theirs)) return ours;
  const [mine, yours] = [ours.join(""), theirs.join("")];
  // One went on where the other stopped, such as two states of one word being typed.
  if (yours.startsWith(mine)) return theirs;
  if (mine.startsWith(yours)) return ours;
  const [old, first, second] = [[...base.join("")], [...mine], [...yours]];
  if (base.length && onlyAdds(old, first) && onlyAdds(old, second))
    return mergeTokens(old, first, second, (_, mineHere, yoursHere) => [...mineHere, ...yoursHere]);
  const gap = mine && yours && !/\s$/.test(mine) && !/^\s/.test(yours) ? [" "] : [];
  return [...ours, ...gap, ...theirs];
}

function mergeWords(base: string[], ours: string[], theirs: string[]): string[] {
  return mergeTokens(words(base.join("")), words(ours.join("")), words(theirs.join("")), keepBoth);
}

/** `base` with the changes of both; ours come first where both added something in one place. */
export function merge3(base: string, ours: string, theirs: string): string {
  if (base === theirs || ours === theirs) return ours;
  if (base === ours) return theirs;
  return mergeTokens(lines(base), lines(ours), lines(theirs), mergeWords).join("");
}

/** Where a place in `before` is in `after`, by what both begin and end with. */
export function movedPlace(before: string, after: string, place: number): number {
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && before[head] === after[head]) head++;
  if (place <= head) return place;
  let tail = 0;
  while (tail < most - head && before[before.length - 1 - tail] === after[after.length - 1 - tail])
    tail++;
  if (place >= before.length - tail) return after.length - (before.length - place);
  return Math.min(place, after.length - tail);
}

/** The end of the last place at which the two differ. */
export function lastChange(before: string, after: string): number {
  let tail = 0;
  while (
    tail < Math.min(before.length, after.length) &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  )
    tail++;
  return after.length - tail;
}
