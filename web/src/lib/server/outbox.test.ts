import { describe, expect, it } from "vitest";
import { messageId } from "./message_id";
import { Outbox } from "./outbox";
import { ReplayFilter } from "./replay_filter";
import type { ReceivedEnvelope } from "./types";

function message(id: string, seq: number, type = "prompt.submit"): ReceivedEnvelope {
  return {
    v: 1,
    id,
    ts: "",
    session: "s",
    sender: "a",
    type,
    payload: {},
    seq,
  } as ReceivedEnvelope;
}

describe("what was sent", () => {
  it("is done with its echo", async () => {
    const outbox = new Outbox();
    const done = outbox.add("1", "text", false);
    outbox.echoed(message("1", 7));
    expect((await done).seq).toBe(7);
    expect(outbox.texts()).toEqual([]);
  });

  it("fails with the connection, unless it may wait", async () => {
    const outbox = new Outbox();
    const vote = outbox.add("vote", "vote", false);
    void outbox.add("prompt", "prompt", true);
    outbox.lost();
    await expect(vote).rejects.toThrow("does not answer");
    expect(outbox.texts()).toEqual(["prompt"]);
  });

  it("fails with the server's sentence", async () => {
    const outbox = new Outbox();
    const vote = outbox.add("vote", "vote", false);
    const report = { code: "GATE_FAILED", message: "The gate is over", recoverable: true };
    expect(outbox.refused({ ...report, related_to: "vote" } as never)).toBe(true);
    await expect(vote).rejects.toThrow("The gate is over");
  });
});

describe("what a reconnection sends again", () => {
  it("is left out", () => {
    const filter = new ReplayFilter();
    const first = [message("1", 1), message("2", 2), message("draft", 0, "prompt.draft")];
    expect(first.map((each) => filter.isNew(each))).toEqual([true, true, true]);
    const again = [message("2", 2), message("draft", 0, "prompt.draft"), message("3", 3)];
    expect(again.map((each) => filter.isNew(each))).toEqual([false, false, true]);
    expect([filter.lastSeq, filter.lastId]).toEqual([3, "3"]);
  });
});

it("message ids sort by time and have 26 letters", () => {
  const ids = [1, 2, 1_700_000_000_000].map((at) => messageId(at));
  expect([...ids].sort()).toEqual(ids);
  expect(ids.every((id) => /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(id))).toBe(true);
});
