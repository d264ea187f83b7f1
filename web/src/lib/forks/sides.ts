/** What each side of a comparison did since the forks parted, from the messages alone. */

import { type Call, callOf } from "../gate/call";
import type { ForkSummary } from "../server/types";
import type { Facts, Output } from "../session/facts";
import type { Happening, Item, Prompt, Rejection, Result, Stream, Tool } from "../session/items";
import { counts, linesOf } from "../text/diff";

export const MAIN = "main";

export interface Trial {
  tool: Tool;
  call: Call;
  output: Output | undefined;
  result: Result;
}

export interface Side {
  /** `main`, or the id of a fork. */
  id: string;
  fork: ForkSummary | null;
  turns: number;
  ran: number;
  failed: number;
  tokens: number;
  added: number;
  removed: number;
  files: number;
  lastWord: Stream | null;
  /** The newest change of each file. */
  changes: NonNullable<Call["change"]>[];
  trial: Trial | null;
  objections: (Rejection & { about: Tool })[];
  reason: string;
}

const MOST_CHANGES = 3;

/** The side with this id; the trunk counts from where the other side left it. */
export function sideOf(facts: Facts, forks: readonly ForkSummary[], id: string, since = 0): Side {
  const fork = forks.find((each) => each.id === id) ?? null;
  const items = [...facts.items.values()]
    .filter((item) => (item.fork ?? MAIN) === id && item.seq > (fork ? 0 : since))
    .sort((a, b) => a.seq - b.seq);
  const tools = items.filter((item) => item.kind === "tool");
  const answers = items.filter((item): item is Stream => item.kind === "answer");
  const done = tools.filter((tool) => facts.state(tool) === "ran");
  const changes = new Map<string, NonNullable<Call["change"]>>();
  let [added, removed] = [0, 0];
  for (const tool of done) {
    const { change } = callOf(tool.name, tool.arguments);
    if (!change) continue;
    const sum = counts(linesOf(change));
    added += sum.added;
    removed += sum.removed;
    changes.delete(change.path);
    changes.set(change.path, change);
  }
  return {
    id,
    fork,
    turns: items.filter((item) => item.kind === "prompt").length,
    ran: done.length,
    failed: tools.filter((tool) => facts.state(tool) === "failed").length,
    tokens: items.reduce((sum, item) => sum + ("tokens" in item ? item.tokens : 0), 0),
    added,
    removed,
    files: changes.size,
    lastWord: answers.filter((answer) => answer.content.text.trim()).at(-1) ?? null,
    changes: [...changes.values()].slice(-MOST_CHANGES),
    trial: lastTrial(facts, tools),
    objections: tools.flatMap((about) => {
      const rejection = facts.rejection(about.id);
      return rejection && rejection.by !== "system" ? [{ ...rejection, about }] : [];
    }),
    reason: creation(facts, id)?.detail ?? "",
  };
}

/** The last command that was run, with what it printed. */
function lastTrial(facts: Facts, tools: readonly Tool[]): Trial | null {
  for (const tool of [...tools].reverse()) {
    const result = facts.results.get(tool.id);
    const call = callOf(tool.name, tool.arguments);
    if (result && call.command) return { tool, call, output: facts.outputs.get(tool.id), result };
  }
  return null;
}

function creation(facts: Facts, fork: string): Happening | undefined {
  return [...facts.items.values()].find(
    (item): item is Happening =>
      item.kind === "event" && item.fork === fork && item.words.startsWith("forked "),
  );
}

export interface Parting {
  parent: string;
  at: string;
  seq: number;
  /** The prompts of the parent before it, if they are all known. */
  turn: number;
  prompt: Prompt | null;
}

/** Where a fork left what it grew from. */
export function partingOf(facts: Facts, fork: ForkSummary, isWhole: boolean): Parting {
  const point = facts.items.get(fork.from_point);
  const begun = creation(facts, fork.id)?.seq ?? Number.POSITIVE_INFINITY;
  const seq = point?.seq ?? begun;
  const prompts = [...facts.items.values()]
    .filter(
      (item): item is Prompt =>
        item.kind === "prompt" && (item.fork ?? null) === fork.parent && item.seq <= seq,
    )
    .sort((a, b) => a.seq - b.seq);
  return {
    parent: fork.parent ?? MAIN,
    at: point?.at ?? fork.created_at,
    seq,
    turn: isWhole && fork.parent === null ? prompts.length : 0,
    prompt: prompts.at(-1) ?? null,
  };
}

/** Where a fork goes when it is merged: back to where it came from, or where that went. */
export function targetOf(forks: readonly ForkSummary[], fork: ForkSummary): string {
  let target = fork.parent;
  const seen = new Set<string>();
  while (target !== null && !seen.has(target)) {
    seen.add(target);
    const parent = forks.find((each) => each.id === target);
    if (!parent?.merged) break;
    target = parent.into;
  }
  return target ?? MAIN;
}

/** The newest message of a place that a fork can begin at. */
export function newestIn(facts: Facts, place: string): Item | undefined {
  return [...facts.items.values()]
    .filter((item) => (item.fork ?? MAIN) === place && item.seq > 0)
    .sort((a, b) => b.seq - a.seq)[0];
}

/** What was said when this fork was proposed to be merged. */
export function mergeSummary(facts: Facts, fork: string): Happening | undefined {
  return [...facts.items.values()]
    .filter(
      (item): item is Happening =>
        item.kind === "event" && item.words.startsWith(`proposes to merge ${fork} into `),
    )
    .sort((a, b) => b.seq - a.seq)[0];
}

/** The two places to compare if the address names none: the newest open forks, or one and where it came from. */
export function usualSides(forks: readonly ForkSummary[]): [string, string] {
  const byAge = (of: readonly ForkSummary[]) =>
    [...of].sort((x, y) => Date.parse(x.created_at) - Date.parse(y.created_at));
  const open = byAge(forks.filter((fork) => !fork.merged));
  const [first, second] = (open.length ? open : byAge(forks)).slice(-2);
  if (!first) return [MAIN, MAIN];
  return second ? [first.id, second.id] : [first.parent ?? MAIN, first.id];
}
