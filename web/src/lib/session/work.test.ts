import { expect, it } from "vitest";
import type { Item, Stream } from "./items";
import { Work } from "./work";

function stream(id: string, by: string, tokens: number, ended = ""): Stream {
  return { kind: "answer", id, by, tokens, ended } as Stream;
}

it("follows what changed as if everything had been read again", () => {
  const items = new Map<string, Item>([["a", stream("a", "claude", 3)]]);
  const facts = { items, ending: (each: Stream) => each.ended };
  const work = new Work();
  work.update(facts, null);
  expect([work.names, work.tokens]).toEqual([["claude"], 3]);

  items.set("a", stream("a", "claude", 5, "complete"));
  items.set("b", stream("b", "codex", 2));
  work.update(facts, ["a", "b"]);

  const again = new Work();
  again.update(facts, null);
  expect([work.names, work.tokens]).toEqual([["codex"], 7]);
  expect([again.names, again.tokens]).toEqual([work.names, work.tokens]);
});
