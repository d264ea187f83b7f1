import { describe, expect, it } from "vitest";
import type { GateCard } from "../server/types";
import { howManyOf, namesIn, ruleLabel, stateOf, whatHappensNext, yesSentence } from "./words";

const any = (count: number) => ({ type: "any", count }) as const;

function gate(changes: Partial<GateCard> = {}): GateCard {
  return {
    id: "g",
    session: "s",
    session_name: "Login",
    initiator: "claude",
    approvals: [],
    standing: [],
    rejections: [],
    request: {
      action_type: "tool",
      action_ref: "p",
      quorum: any(1),
      timeout_seconds: 300,
      message: "",
    },
    approvals_received: 0,
    approvals_required: 1,
    lacks: [],
    waits_for: ["maya", "jonas"],
    created_at: "2026-11-18T14:00:00Z",
    expires_at: "2026-11-18T14:05:00Z",
    action: null,
    fork: null,
    fork_name: null,
    people: { maya: "Maya", jonas: "Jonas", priya: "Priya" },
    notes: [],
    skipped: [],
    unmeetable: [],
    may_approve: true,
    may_reject: true,
    my_vote: null,
    votes: [],
    rules: [],
    after_my_yes: [],
    targets: [],
    options: [],
    presences: {},
    ...changes,
  };
}
const say = (card: GateCard, me = "maya") => yesSentence(card, me, namesIn(card, me));
const state = (card: GateCard, me = "maya") => stateOf(card, me, namesIn(card, me)).words;

describe("what a gate says", () => {
  it("says what the reader's yes does", () => {
    expect(say(gate())).toBe("Your yes is enough.");
    const label = { type: "label", label: "security", count: 1 } as const;
    expect(say(gate({ after_my_yes: [{ rule: label, missing: 1, possible: true }] }))).toBe(
      "Your yes, then one with the label security.",
    );
    expect(say(gate({ after_my_yes: [{ rule: any(3), missing: 2, possible: true }] }))).toBe(
      "Your yes, then 2 more.",
    );
    const voted = gate({
      my_vote: "approved",
      votes: [{ by: "maya", at: new Date(2026, 10, 18, 14, 11).toISOString(), comment: "" }],
    });
    expect(say(voted)).toBe("You said yes at 14:11.");
    expect(say(gate({ after_my_yes: null, may_approve: false }))).toContain(
      "your yes would not count",
    );
  });
  it("says for whom it waits", () => {
    expect(state(gate())).toBe("Waits for you");
    expect(state(gate({ my_vote: "approved", waits_for: ["priya"] }))).toBe("Waits for Priya");
    expect(state(gate({ may_approve: false }), "olga")).toBe("Waits for Maya or Jonas");
    expect(state(gate({ unmeetable: ["label security 1 needs 1 more"] }))).toBe("Cannot be met");
  });
  it("names rules in few words", () => {
    const rule = { rule: any(2), count: 2, approved: ["priya"], candidates: ["maya"] };
    expect(ruleLabel(rule, false)).toBe("One more");
    expect(ruleLabel(rule, true)).toBe("Any 2");
  });
  it("says whether one, some or all of the candidates are needed", () => {
    expect(howManyOf(1, 2)).toEqual({ lead: "", joiner: "or" });
    expect(howManyOf(2, 2)).toEqual({ lead: "", joiner: "and" });
    expect(howManyOf(2, 3)).toEqual({ lead: "2 of", joiner: "or" });
  });
  it("says what happens in each case", () => {
    const lines = whatHappensNext(gate(), "claude", Date.parse("2026-11-18T14:00:00Z"));
    expect(lines.map((line) => line.kind)).toEqual(["yes", "no", "time"]);
    expect(whatHappensNext(gate({ expires_at: null }), "claude", 0)[2]?.text).toContain(
      "without a time limit",
    );
  });
});
