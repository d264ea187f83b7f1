import { describe, expect, it } from "vitest";
import type { EndedGate, GateCard } from "../server/types";
import { type GateRow, nextRows } from "./rows.svelte";

const gate = (id: string) => ({ id }) as GateCard;
const home = (ids: string[], ended: EndedGate[] = []) => ({
  gates: ids.map(gate),
  ended_gates: ended,
});
const ids = (rows: GateRow[]) => rows.map((row) => row.gate.id);

describe("rows of gates", () => {
  it("are in the server's order as long as nobody reads", () => {
    const rows = nextRows([], home(["b", "a"]), false);
    expect(ids(rows)).toEqual(["b", "a"]);
    expect(ids(nextRows(rows, home(["c", "b", "a"]), false))).toEqual(["c", "b", "a"]);
  });

  it("do not move under a reader", () => {
    const rows = nextRows([], home(["b", "a"]), false);
    expect(ids(nextRows(rows, home(["c", "b", "a"]), true))).toEqual(["b", "a", "c"]);
  });

  it("keep their place with the outcome when they are settled", () => {
    const rows = nextRows([], home(["b", "a"]), false);
    const ended = { id: "b", outcome: "approved" } as EndedGate;
    const next = nextRows(rows, home(["a"], [ended]), false);
    expect(ids(next)).toEqual(["b", "a"]);
    expect(next[0]).toMatchObject({ isOver: true, ended });
  });
});
