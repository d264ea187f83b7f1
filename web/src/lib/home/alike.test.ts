import { expect, it } from "vitest";
import type { GateCard } from "../server/types";
import { alikeIn } from "./alike";

function gate(id: string, action: object = {}, more: object = {}): GateCard {
  const computed = { risk_level: "low" };
  const call = {
    category: "shell_execute",
    risk_level: "low",
    arguments_omitted: false,
    held: null,
  };
  return {
    id,
    initiator: "claude",
    may_approve: true,
    my_vote: null,
    options: [],
    action: { ...call, computed, ...action },
    ...more,
  } as unknown as GateCard;
}
const ids = (...gates: GateCard[]) => alikeIn(gates).map((each) => each.id);

it("is several mild calls of one agent and one kind", () => {
  expect(
    ids(gate("a"), gate("b", { computed: { risk_level: "medium" }, risk_level: "medium" })),
  ).toEqual(["a", "b"]);
  expect(ids(gate("a"))).toEqual([]);
  expect(ids(gate("a"), gate("b", {}, { initiator: "codex" }))).toEqual([]);
  expect(ids(gate("a"), gate("b", { category: "file_write" }))).toEqual([]);
});

it.each([
  ["only the agent says how risky it is", { computed: null }, {}],
  ["the server found it risky", { computed: { risk_level: "high" } }, {}],
  ["the agent claims more", { risk_level: "critical" }, {}],
  ["the call is not here whole", { arguments_omitted: true }, {}],
  ["the rules hold it", { held: { why: "" } }, {}],
  ["there are several ways", {}, { options: [{}] }],
  ["it is not this person's to approve", {}, { may_approve: false }],
  ["this person has voted", {}, { my_vote: { choice: "approve" } }],
])("leaves a gate out where %s", (_, action, more) => {
  expect(ids(gate("a"), gate("b"), gate("c", action, more))).toEqual(["a", "b"]);
});
