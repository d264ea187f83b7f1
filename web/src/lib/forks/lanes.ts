/** The tree of forks as lanes: the trunk in the middle, forks by turns above and below it. */

import type { ForkSummary } from "../server/types";
import type { Facts } from "../session/facts";
import { MAIN, partingOf } from "./sides";

export interface Lane {
  id: string;
  /** Rows from the trunk: negative above it. */
  row: number;
  from: number;
  to: number;
  /** Where it left its parent, and where it came back; in columns. */
  parent: string | null;
  into: string | null;
  points: number[];
}

export interface Lanes {
  lanes: Lane[];
  columns: number;
  above: number;
  below: number;
}

/** So many of the newest prompts have a point each. */
const MOST_POINTS = 24;

export function lanesOf(facts: Facts, forks: readonly ForkSummary[]): Lanes {
  const prompts = [...facts.items.values()]
    .filter((item) => item.kind === "prompt")
    .sort((a, b) => a.seq - b.seq)
    .slice(-MOST_POINTS);
  const partings = new Map(forks.map((fork) => [fork.id, partingOf(facts, fork, true)]));
  const marks = new Set(prompts.map((prompt) => prompt.seq));
  const floor = prompts[0]?.seq ?? 0;
  for (const { seq } of partings.values())
    if (Number.isFinite(seq)) marks.add(Math.max(floor, seq));
  const order = [...marks].sort((a, b) => a - b);
  const column = (seq: number) => {
    const at = order.findIndex((each) => each >= seq);
    return at < 0 ? order.length : at;
  };
  const columns = order.length + 1;
  const points = (id: string) =>
    prompts.filter((prompt) => (prompt.fork ?? MAIN) === id).map((prompt) => column(prompt.seq));
  const lanes: Lane[] = [
    { id: MAIN, row: 0, from: 0, to: columns, parent: null, into: null, points: points(MAIN) },
  ];
  let [above, below] = [0, 0];
  const byAge = [...forks].sort((a, b) => Date.parse(a.created_at) - Date.parse(b.created_at));
  byAge.forEach((fork, at) => {
    const row = at % 2 === 0 ? -++above : ++below;
    const parting = partings.get(fork.id);
    lanes.push({
      id: fork.id,
      row,
      from: parting && Number.isFinite(parting.seq) ? column(Math.max(floor, parting.seq)) : 0,
      to: columns,
      parent: fork.parent ?? MAIN,
      into: fork.merged ? (fork.into ?? MAIN) : null,
      points: points(fork.id),
    });
  });
  return { lanes, columns, above, below };
}
