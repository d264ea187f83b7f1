import { describe, expect, it } from "vitest";
import type { ForkSummary } from "../server/types";
import type { Envelope } from "../session/envelope";
import { Facts } from "../session/facts";
import { lanesOf } from "./lanes";
import { partingOf, sideOf, targetOf, usualSides } from "./sides";

let count = 0;
function message(type: string, payload: object, fork?: string): Envelope {
  count++;
  const ts = `2026-11-18T14:00:${String(count).padStart(2, "0")}Z`;
  const head = { v: 1, id: `m${count}`, ts, session: "s", sender: "maya", seq: count };
  return { ...head, type, payload, ...(fork ? { fork } : {}) };
}
function prompt(fork?: string): Envelope {
  return message("prompt.submit", { content: "do", target_agent: "claude" }, fork);
}
function forkOf(id: string, from: string, more: Partial<ForkSummary> = {}): ForkSummary {
  return {
    id,
    name: id,
    parent: null,
    from_point: from,
    members: ["maya"],
    created_by: "maya",
    created_at: `2026-11-18T14:00:0${id.length}Z`,
    merged: false,
    into: null,
    conflicts: [],
    ...more,
  };
}

describe("sides of a comparison", () => {
  it("count what happened in each, and on the trunk since it was left", () => {
    count = 0;
    const facts = new Facts();
    const before = [prompt(), prompt()];
    const edit = message(
      "tool.propose",
      { tool_name: "edit", arguments: { path: "a", old: "1\n2", new: "1\n3\n4" } },
      "x",
    );
    const all = [
      ...before,
      message("fork.create", { name: "x", reason: "To see" }, "x"),
      prompt("x"),
      edit,
      message("tool.execute", { tool_proposal: edit.id, approved_by: [] }, "x"),
      message("tool.result", { tool_proposal: edit.id, success: true, duration_ms: 5 }, "x"),
      prompt(),
    ];
    for (const each of all) facts.add(each);
    const forks = [forkOf("x", before[1]?.id ?? "")];
    const parting = partingOf(facts, forks[0] as ForkSummary, true);
    expect(parting).toMatchObject({ parent: "main", turn: 2, seq: 2 });
    const side = sideOf(facts, forks, "x");
    expect(side).toMatchObject({ turns: 1, ran: 1, failed: 0, added: 2, removed: 1, files: 1 });
    expect(side.reason).toBe("To see");
    expect(sideOf(facts, forks, "main", parting.seq)).toMatchObject({ turns: 1, ran: 0 });
    const { lanes } = lanesOf(facts, forks);
    expect(lanes.map((lane) => [lane.id, lane.row, lane.from])).toEqual([
      ["main", 0, 0],
      ["x", -1, 1],
    ]);
  });

  it("are the newest open forks, or one and where it came from", () => {
    const [a, bb, ccc] = ["a", "bb", "ccc"].map((id) => forkOf(id, "")) as [
      ForkSummary,
      ForkSummary,
      ForkSummary,
    ];
    expect(usualSides([])).toEqual(["main", "main"]);
    expect(usualSides([a])).toEqual(["main", "a"]);
    expect(usualSides([a, bb, ccc])).toEqual(["bb", "ccc"]);
    expect(usualSides([a, { ...bb, merged: true }, ccc])).toEqual(["a", "ccc"]);
  });

  it("go back to where they came from, or where that went", () => {
    const outer = forkOf("outer", "", { merged: true });
    const inner = forkOf("inner", "", { parent: "outer" });
    expect(targetOf([outer, inner], inner)).toBe("main");
    expect(targetOf([{ ...outer, merged: false }, inner], inner)).toBe("outer");
  });
});
