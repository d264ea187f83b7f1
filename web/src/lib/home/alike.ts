import type { GateCard } from "../server/types";

const MILD = ["low", "medium"];

/** Whether a yes may be given with others: the server itself found the risk low or medium, and the call is here whole. */
export function mayJoin({ action, may_approve, my_vote, options }: GateCard): boolean {
  return (
    may_approve &&
    !my_vote &&
    options.length === 0 &&
    action !== null &&
    action.computed !== null &&
    MILD.includes(action.computed.risk_level) &&
    MILD.includes(action.risk_level) &&
    !action.arguments_omitted &&
    !action.held
  );
}

/** The most gates of one agent and one kind of call that may be decided together; one alone is none. */
export function alikeIn(gates: readonly GateCard[]): GateCard[] {
  const groups = new Map<string, GateCard[]>();
  for (const gate of gates.filter(mayJoin)) {
    const kind = `${gate.initiator} ${gate.action?.category}`;
    groups.set(kind, [...(groups.get(kind) ?? []), gate]);
  }
  const largest = [...groups.values()].sort((a, b) => b.length - a.length)[0] ?? [];
  return largest.length > 1 ? largest : [];
}
