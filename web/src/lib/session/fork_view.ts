import type { ForkSummary } from "../server/types";
import { type ForkView, TRUNK } from "./rows";

/**
 * A fork shows what it grew from, up to the record that created it: clocks of senders differ, the
 * order of the server does not. Of a parent whose fork has not been read yet, nothing is shown.
 */
export function viewOf(
  fork: string | null,
  forks: readonly Pick<ForkSummary, "id" | "parent">[],
  begins: ReadonlyMap<string, number>,
): ForkView {
  const view = new Map<string | null, number>();
  let at = fork;
  let until = Infinity;
  while (at !== null && !view.has(at)) {
    const id = at;
    view.set(id, until);
    const known = forks.find((each) => each.id === id);
    if (!known) return TRUNK;
    until = Math.min(until, begins.get(id) ?? -1);
    at = known.parent;
  }
  if (at === null) view.set(null, until);
  return view;
}
