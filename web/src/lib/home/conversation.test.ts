import { expect, it } from "vitest";
import type { ReceivedEnvelope, TurnsPage } from "../server/types";
import { wordsBefore } from "./conversation";

function page(...messages: object[]): TurnsPage {
  const all = messages.map((each) => ({
    v: 1,
    ts: "",
    session: "s",
    ...each,
  })) as ReceivedEnvelope[];
  return { messages: all, first: 1, last: 9, last_id: null, has_more: false };
}

it("is what people and the agent said, up to the proposal", () => {
  const said = wordsBefore(
    page(
      { id: "1", sender: "maya", type: "prompt.submit", payload: { content: "Limit it." } },
      { id: "2", sender: "claude", type: "response.chunk", ref: "r", payload: { text: "I add " } },
      {
        id: "3",
        sender: "claude",
        type: "response.chunk",
        ref: "r",
        payload: { text: "a table." },
      },
      { id: "4", sender: "priya", type: "prompt.amend", payload: { amendment: "Count all." } },
      { id: "p", sender: "claude", type: "tool.propose", payload: {} },
      { id: "5", sender: "maya", type: "prompt.submit", payload: { content: "Later." } },
    ),
    "p",
  );
  expect(said.map((each) => [each.by, each.text])).toEqual([
    ["maya", "Limit it."],
    ["claude", "I add a table."],
    ["priya", "Count all."],
  ]);
});
