import { describe, expect, it } from "vitest";
import type { MessageItem, OpenItem } from "../server/types";
import { changesOf, findingsIn, mayClose, readersOf } from "./rules";

let seq = 0;
function message(by: string, event = "", more: Partial<MessageItem> = {}): MessageItem {
  seq += 1;
  return {
    message_id: `msg_${seq}`,
    thread_id: "th_1",
    seq,
    sender_agent_id: by,
    sender_kind: "agent",
    sender_verified: true,
    sender_session_id: "",
    kind: event ? "event" : "chat",
    body: "words",
    schema_version: 1,
    created_at: "2026-11-18T14:00:00Z",
    quoted: true,
    ...more,
    metadata: { ...(event ? { event_type: event } : {}), ...more.metadata },
  };
}
function openItem(of: MessageItem): OpenItem {
  const { message_id, seq, body, sender_agent_id } = of;
  return {
    message_id,
    seq,
    event_type: "finding_reported",
    text: body,
    reported_by: sender_agent_id,
  };
}

describe("findings", () => {
  const report = message("codex", "finding_reported", { metadata: { severity: "high" } });
  const fix = message("claude", "fix_pushed", {
    in_reply_to: report.message_id,
    metadata: { commit: "5e1b2c7" },
  });
  const verdict = message("codex", "finding_verified", { in_reply_to: report.message_id });

  it("are open until the server says otherwise, whatever events claim", () => {
    const [finding] = findingsIn([report, verdict], [openItem(report)]);
    expect(finding).toMatchObject({ state: "open", severity: "high", closedBy: "" });
  });

  it("are fixed by an event and verified by another", () => {
    const [fixed] = findingsIn([report, fix], [openItem(report)]);
    expect(fixed).toMatchObject({ state: "fixed", fixers: ["claude"], commit: "5e1b2c7" });
    const [done] = findingsIn([report, fix, verdict], []);
    expect(done).toMatchObject({ state: "verified", closedBy: "codex" });
  });

  it("are not verified by the author of the fix", () => {
    const own = message("claude", "finding_verified", { in_reply_to: report.message_id });
    expect(findingsIn([report, fix, own, verdict], [])[0]?.closedBy).toBe("codex");
  });

  it("may be closed by the reporter and reviewers, not by who fixed it", () => {
    const [open] = findingsIn([report, fix], [openItem(report)]);
    if (!open) throw new Error("no finding");
    expect(mayClose(open, "codex", [])).toBe(true);
    expect(mayClose(open, "maya", ["driver"])).toBe(false);
    expect(mayClose(open, "priya", ["approver"])).toBe(true);
    expect(mayClose(open, "claude", ["approver"])).toBe(false);
  });

  it("stay known when their message is not loaded", () => {
    expect(findingsIn([], [openItem(report)])).toHaveLength(1);
  });
});

describe("a thread", () => {
  it("can be reopened after its end only by an admin", () => {
    expect(changesOf("closed", ["driver"])).toEqual([]);
    expect(changesOf("closed", ["admin"])).toEqual([{ status: "active", override: true }]);
    expect(changesOf("active", []).map((each) => each.status)).toEqual(["resolved", "blocked"]);
  });

  it("says how far the least far message reached a reader", () => {
    const messages = [
      message("maya", "", { delivery: { codex: "acked", claude: "seen" } }),
      message("maya", "", { delivery: { codex: "queued", claude: "seen" } }),
    ];
    expect(readersOf(["codex", "claude", "maya"], messages)).toEqual([
      { id: "codex", state: "queued", waiting: 1 },
      { id: "claude", state: "seen", waiting: 2 },
      { id: "maya", state: null, waiting: 0 },
    ]);
  });
});
