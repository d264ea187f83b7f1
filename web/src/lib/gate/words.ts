/** What a gate says about itself: state, what a yes does, who is needed; in plain words. */

import type { GateCard, GateRule, Lack, OpenProposal } from "../server/types";
import { shownNames } from "../text/names";
import { oneLine } from "../text/spell";
import { clock, list, moment } from "../text/words";

export type NameOf = (id: string) => string;

/** Names by id; the reader is "you". */
export function namesIn(gate: Pick<GateCard, "people">, me: string): NameOf {
  const people = Object.entries(gate.people).map(([id, name]) => ({ id, name }));
  const names = shownNames(people);
  return (id) => (id === me ? "you" : (names.get(id) ?? oneLine(id, 40)));
}

export type Tone = "wait" | "plain" | "no";

/** State in words, and whether a person is needed. */
export function stateOf(
  gate: GateCard,
  me: string,
  nameOf: NameOf,
): { words: string; tone: Tone; mine: boolean } {
  if (gate.action?.held) return { words: "Held by the rules", tone: "plain", mine: false };
  if (gate.unmeetable.length) return { words: "Cannot be met", tone: "no", mine: false };
  if (gate.may_approve && !gate.my_vote && gate.waits_for.includes(me))
    return { words: "Waits for you", tone: "wait", mine: true };
  const others = gate.waits_for
    .filter((id) => id !== me)
    .slice(0, 3)
    .map(nameOf);
  return {
    words: others.length ? `Waits for ${list(others, "or")}` : "Waits",
    tone: "plain",
    mine: false,
  };
}

function describeLack({ rule, missing }: Lack, nameOf: NameOf): string {
  const count = missing === 1 ? "one" : String(missing);
  switch (rule.type) {
    case "label":
      return `${count} with the label ${oneLine(rule.label, 40)}`;
    case "role":
      return `${count} ${missing === 1 ? rule.role : `${rule.role}s`}`;
    case "specific":
      return list(rule.participants.map(nameOf));
    default:
      return `${count} more`;
  }
}

/** The sentence that matters most: what this person's yes would do. */
export function yesSentence(gate: GateCard, me: string, nameOf: NameOf): string {
  if (gate.action?.held) return `${gate.action.held.why} ${gate.action.held.until}`.trim();
  if (gate.unmeetable.length) return sentence(gate.unmeetable.join("; "));
  if (gate.my_vote) {
    const mine = gate.votes.find((vote) => vote.by === me);
    return mine ? `You said yes at ${clock(mine.at)}.` : "You said yes.";
  }
  if (gate.after_my_yes === null)
    return gate.may_reject ? "You may say no; your yes would not count here." : "";
  if (gate.after_my_yes.length === 0) return "Your yes is enough.";
  return `Your yes, then ${list(gate.after_my_yes.map((lack) => describeLack(lack, nameOf)))}.`;
}

function sentence(words: string): string {
  return words
    ? `${words.charAt(0).toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? "" : "."}`
    : "";
}

/** What a rule asks for, in two or three words. */
export function ruleLabel({ rule, count, approved }: GateRule, alone: boolean): string {
  const left = count - approved.length;
  switch (rule.type) {
    case "label":
      return capital(oneLine(rule.label, 24));
    case "role":
      return count === 1 ? capital(rule.role) : `${count} ${rule.role}s`;
    case "specific":
      return "Named";
    case "all":
      return "Everyone";
    case "majority":
      return "Majority";
    default:
      if (alone) return count === 1 ? "Anyone" : `Any ${count}`;
      return left === 1 ? "One more" : left > 1 ? `${left} more` : "Another";
  }
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

export const RISKS: Record<OpenProposal["risk_level"], string> = {
  low: "Low risk",
  medium: "Medium risk",
  high: "High risk",
  critical: "Critical risk",
};

/** Three lines: approved, rejected, nobody answers. */
export function whatHappensNext(
  gate: GateCard,
  agent: string,
  now: number,
): { kind: "yes" | "no" | "time"; lead: string; text: string }[] {
  const tool = gate.action !== null;
  return [
    {
      kind: "yes",
      lead: gate.after_my_yes?.length === 0 ? "You approve:" : "Enough approve:",
      text: tool
        ? `${agent} gets a grant for exactly this call. It can be used once, within the hour.`
        : `${agent} may go on.`,
    },
    { kind: "no", lead: "Anyone rejects:", text: `it is over, and ${agent} is told why.` },
    {
      kind: "time",
      lead: "No answer:",
      text: gate.expires_at
        ? `at ${moment(gate.expires_at, now)} it counts as no.`
        : "it waits, without a time limit.",
    },
  ];
}

/** How candidates of a rule are joined: all who are left are needed, or some of them. */
export function howManyOf(missing: number, candidates: number): { lead: string; joiner: string } {
  const all = missing > 1 && candidates <= missing;
  return { lead: missing > 1 && !all ? `${missing} of` : "", joiner: all ? "and" : "or" };
}
