import { describe, expect, it } from "vitest";
import { EMPTY_HOME, withSession } from "./home.svelte";
import type { GateCard, SessionHome } from "./types";

function gate(session: string, id: string, expires_at: string | null): GateCard {
  return {
    ...({} as GateCard),
    id,
    session,
    expires_at,
    created_at: "2026-01-01T00:00:00Z",
    may_approve: true,
    my_vote: null,
  };
}

function part(session: string, gates: GateCard[]): SessionHome {
  return { ...EMPTY_HOME, session, gates };
}

describe("what a session says of itself", () => {
  it("replaces what was said about it before and leaves the others", () => {
    const a = withSession(EMPTY_HOME, part("a", [gate("a", "1", "2026-01-01T02:00:00Z")]));
    const b = withSession(a, part("b", [gate("b", "2", "2026-01-01T01:00:00Z")]));
    expect(b.gates.map((each) => each.id)).toEqual(["2", "1"]);
    const done = withSession(b, part("b", []));
    expect(done.gates.map((each) => each.id)).toEqual(["1"]);
    expect(done.counts.awaiting_my_vote).toBe(1);
  });

  it("comes last if it never ends", () => {
    const home = withSession(
      EMPTY_HOME,
      part("a", [gate("a", "never", null), gate("a", "soon", "2026-01-01T01:00:00Z")]),
    );
    expect(home.gates.map((each) => each.id)).toEqual(["soon", "never"]);
  });
});
