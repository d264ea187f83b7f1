/** The rules' tokens as people say them; the token itself stands in the detail. */

import { list } from "../text/words";
import type { Item, ItemRuling, Measures } from "./snapshot";

export type Tone = "yes" | "no" | "info" | "plain" | "wait";

export interface Verdict {
  words: string;
  tone: Tone;
}

const STATES: Record<string, Verdict> = {
  PROBING: { words: "Trying out", tone: "info" },
  CLOSED: { words: "Done", tone: "plain" },
  EXPIRED: { words: "Ran out", tone: "plain" },
  DISCARDED: { words: "Discard", tone: "no" },
};
const VERDICTS: Record<string, Verdict> = {
  "DO NOW": { words: "Do now", tone: "yes" },
  "DO LATER": { words: "Do later", tone: "plain" },
  DISCARD: { words: "Discard", tone: "no" },
};

export function verdictOf({ state, verdict }: Pick<ItemRuling, "state" | "verdict">): Verdict {
  return STATES[state] ?? VERDICTS[verdict] ?? { words: verdict || state, tone: "plain" };
}

const BLOCKERS: Record<string, string> = {
  DUPLICATE_ID_REJECTED: "Another item of this batch has its name",
  REOPEN_BLOCKED_BUDGET: "It was opened again once, which is the limit",
  REOPEN_BLOCKED_NO_DELTA: "It is finished, and nothing new is known",
  FAIL_FAST_CUT: "Its plan lacked steps, a goal or a limit twice",
  FAIL_FAST_PLAN_SNR: "Its plan lacks steps, a goal or a limit",
  FALSIFICATION: "A trial showed that it does not work",
  MULTI_CRITICAL_DRIVER_SPLIT: "It is several decisions, and is split into them",
  CIRCULAR_DEPENDENCY: "What it waits for waits for it",
  INVALID_DELTA: "The news about it change nothing",
  PROBE_STALL_CONTEXT_MATCH: "Two trials ran under other conditions",
  CLOSE_BLOCKED_REAL_ONLY: "It is done, and no real evidence shows that it works",
  DEBT_CEILING: "Too many other assumptions are unproven",
  FRAGILITY: "A small change of a rating would turn it; try it small first",
  MISSING_SOURCE_INPUT: "What it refers to is missing",
  DEPENDENCY_BLOCK: "Something else comes first, or is in use",
  CONFIDENCE_CAP_APPLIED: "The evidence is weaker than the confidence",
  BLOCKED_EXTERNAL: "It waits for someone outside",
  EXTERNAL_DATA_REQUIRED: "It needs something from outside",
  REDESIGN_TRIGGER: "The plan does not work as it is",
  SCORE_TRIAGE: "",
};

/** What keeps an item from going on; empty if nothing does. */
export function blockerOf(item: Item, items: readonly Item[]): string {
  const first = openDependencies(item, items);
  if (item.trigger === "DEPENDENCY_BLOCK" && first.length) return `Waits for ${list(first)}`;
  const words = BLOCKERS[item.trigger];
  if (words !== undefined) return words;
  return item.ruling.allowed || item.isTerminal ? "" : item.ruling.why;
}

export function openDependencies(item: Item, items: readonly Item[]): string[] {
  return item.dependsOn.filter((id) => !items.find((each) => each.id === id)?.isTerminal);
}

/** What would change the verdict, one sentence each. */
export function changesOf(item: Item, items: readonly Item[], isDisputed: boolean): string[] {
  if (isDisputed) return ["The judges agree, or a person removes one of the judgements."];
  if (item.isTerminal) return ["Nothing. It is opened again only by new evidence."];
  const first = openDependencies(item, items);
  const told = first.map(
    (id) => `${id} is done: then the rules look at ${item.id} again by themselves.`,
  );
  const { next, allowed } = item.ruling;
  const step = item.steps.find((each) => each.output === next);
  if (step && !first.length) {
    told.push(`${allowed ? "The result of" : "First:"} “${step.text}”.`);
    if (step.stopIf) told.push(`It stops if ${step.stopIf}.`);
  }
  if (item.trigger === "CLOSE_BLOCKED_REAL_ONLY") told.push("Real evidence that it works.");
  return told.length ? told : ["News about it: what happened, or another judgement."];
}

const LEVELS: Record<string, number> = { LOW: 1, MED: 2, HIGH: 3 };
export function levelOf(word: string): number {
  return LEVELS[word] ?? 0;
}

export const CONFIDENCE: Record<string, string> = { LOW: "low", MED: "medium", HIGH: "high" };

export const AGREEMENT: Record<string, Verdict> = {
  CONVERGED: { words: "agree", tone: "yes" },
  SOFT_DIVERGENCE: { words: "differ a little", tone: "wait" },
  HARD_DIVERGENCE: { words: "differ too much: nothing runs", tone: "no" },
};

/** The four measures in words, for whoever wants to know how it was found. */
export function measuresIn({ verdicts, blockers, steps, confidence }: Measures): string {
  return [
    verdicts === "1" ? "the verdicts are the same" : "the verdicts differ",
    blockers === "1" ? "what holds it is the same" : "something else holds it",
    `${Math.round(Number(steps) * 100)} % of the steps are in both`,
    `their confidence is ${confidence} of 3 apart`,
  ].join(", ");
}

/** The first sentence: what can be done now, then what waits. */
export function summaryOf(
  items: readonly Item[],
  disputed: ReadonlySet<string>,
): { now: string; rest: string } {
  const going = items.filter((item) => item.ruling.allowed && !disputed.has(item.id));
  const tried = going.filter((item) => item.ruling.state === "PROBING").length;
  const differ = items.filter((item) => disputed.has(item.id)).length;
  const over = items.filter((item) => item.isTerminal).length;
  const ready = going.length - tried;
  const waiting = items.length - going.length - differ - over;
  const now = ready === 0 ? "Nothing" : ready === 1 ? "One thing" : `${ready} things`;
  const rest = [
    tried ? `${tried} ${tried === 1 ? "is" : "are"} being tried out` : "",
    waiting > 0 ? `${waiting} ${waiting === 1 ? "waits" : "wait"}` : "",
    differ ? `the judges differ on ${differ}` : "",
    over ? `${over} ${over === 1 ? "is" : "are"} over` : "",
  ].filter(Boolean);
  return { now: `${now} can be done now.`, rest: rest.length ? `${list(rest)}.` : "" };
}
