import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Envelope } from "./envelope";
import { Facts } from "./facts";
import { keepUnchanged, layout, type Row } from "./rows";

let count = 0;
function message(
  type: string,
  sender: string,
  payload: object,
  more: Partial<Envelope> = {},
): Envelope {
  count++;
  return {
    v: 1,
    id: `m${count}`,
    ts: `2026-11-18T14:00:${String(count % 60).padStart(2, "0")}Z`,
    session: "s",
    sender,
    type,
    payload,
    seq: count,
    ...more,
  };
}

/** A session in which two agents answer at once, with thinking, tool calls, gates and interruptions. */
function conversation(turns: readonly number[]): Envelope[] {
  count = 0;
  const all = [message("session.create", "maya", { name: "Rate-limit the login", config: {} })];
  for (const shape of turns) {
    const prompt = message("prompt.submit", "maya", {
      content: `do ${count}`,
      target_agent: "claude",
      contributors: ["maya"],
      context_keys: [],
    });
    all.push(prompt);
    const thinking = message("thinking.start", "claude", {
      agent: "claude",
      prompt_ref: prompt.id,
      visible_to: "all",
    });
    const answer = message("response.start", "codex", { agent: "codex", prompt_ref: prompt.id });
    all.push(thinking, answer);
    for (let at = 0; at < shape; at++) {
      all.push(message("thinking.chunk", "claude", { text: `t${at} ` }, { ref: thinking.id }));
      all.push(message("response.chunk", "codex", { text: `r${at} ` }, { ref: answer.id }));
    }
    all.push(
      message(
        "thinking.end",
        "claude",
        { summary: "thought", duration_ms: 18000 },
        { ref: thinking.id },
      ),
    );
    const tool = message("tool.propose", "claude", {
      tool_name: "shell",
      arguments: { command: `run ${shape}` },
      agent: "claude",
      risk_level: "high",
      description: "",
      requires_approval: true,
      category: "shell_execute",
    });
    const gate = message("gate.request", "system", {
      action_type: "tool",
      action_ref: tool.id,
      quorum: { type: "any", count: 1 },
      timeout_seconds: 300,
      message: "",
    });
    all.push(tool, gate);
    if (shape % 3 === 0)
      all.push(
        message("gate.reject", "jonas", {
          gate: gate.id,
          rejector: "jonas",
          reason: "Not on a Friday",
        }),
      );
    if (shape % 3 === 1) {
      all.push(
        message("tool.approve", "jonas", {
          tool_proposal: tool.id,
          approver: "jonas",
          comment: "fine",
        }),
      );
      all.push(
        message("tool.execute", "system", {
          tool_proposal: tool.id,
          approved_by: ["jonas"],
          grant: { id: "g", digest: "d", expires_at: "2026-11-18T15:00:00Z" },
        }),
      );
      for (let at = 0; at < shape; at++)
        all.push(
          message("tool.output", "claude", {
            tool_proposal: tool.id,
            stream: at % 2 ? "stderr" : "stdout",
            text: `o${at}\n`,
            complete: false,
          }),
        );
      all.push(
        message("tool.result", "claude", {
          tool_proposal: tool.id,
          success: true,
          duration_ms: 4100,
        }),
      );
    }
    all.push(message("response.end", "codex", { finish_reason: "complete" }, { ref: answer.id }));
  }
  return all;
}

/** As the server folds: the chunks of one stream in a stretch become one message. */
function folded(stretch: readonly Envelope[]): Envelope[] {
  const result: Envelope[] = [];
  const open = new Map<string, Envelope>();
  for (const each of stretch) {
    const fields = each.payload as Record<string, unknown>;
    const key = each.type.endsWith(".chunk")
      ? `${each.ref}`
      : each.type === "tool.output"
        ? `${fields.tool_proposal} ${fields.stream}`
        : "";
    const before = key ? open.get(key) : undefined;
    if (before) {
      const joined = before.payload as Record<string, unknown>;
      before.payload = {
        ...joined,
        text: `${joined.text}${fields.text}`,
        folded: { from: (joined.folded as { from: number } | undefined)?.from ?? before.seq },
      };
      before.seq = each.seq ?? 0;
      continue;
    }
    const copy = { ...each };
    if (key) open.set(key, copy);
    result.push(copy);
  }
  return result;
}

function shown(facts: Facts): unknown {
  return layout(facts).map((row: Row) => ({
    kind: row.kind,
    key: row.key,
    by: row.by,
    head: row.head,
    text:
      row.kind === "answer" || row.kind === "thinking"
        ? [row.item.content.text, row.item.ended]
        : "",
    steps:
      row.kind === "steps"
        ? row.tools.map((tool) => [
            tool.id,
            facts.state(tool),
            facts.votes(tool.id).map((vote) => vote.by),
            facts.outputs.get(tool.id)?.stdout.text,
            facts.outputs.get(tool.id)?.stderr.text,
          ])
        : [],
  }));
}

const turns = fc.array(fc.nat(6), { minLength: 1, maxLength: 6 });

describe("Facts", () => {
  it("shows the same after a resume that repeats messages", () => {
    fc.assert(
      fc.property(turns, fc.array(fc.nat(200), { maxLength: 6 }), (shape, breaks) => {
        const all = conversation(shape);
        const [straight, resumed] = [new Facts(), new Facts()];
        for (const each of all) straight.add(each);
        let at = 0;
        for (const place of [
          ...breaks.map((each) => each % all.length).sort((a, b) => a - b),
          all.length,
        ]) {
          for (const each of all.slice(Math.max(0, at - 7), place)) resumed.add(each);
          at = Math.max(at, place);
        }
        expect(shown(resumed)).toEqual(shown(straight));
      }),
    );
  });

  it("shows the same when older stretches come folded, last stretch first", () => {
    fc.assert(
      fc.property(turns, fc.array(fc.nat(200), { maxLength: 5 }), (shape, cuts) => {
        const all = conversation(shape);
        const straight = new Facts();
        for (const each of all) straight.add(each);
        const places = [...new Set([0, ...cuts.map((each) => each % all.length), all.length])].sort(
          (a, b) => a - b,
        );
        const stretches = places.slice(1).map((to, at) => all.slice(places[at], to));
        const backwards = new Facts();
        for (const stretch of stretches.reverse())
          for (const each of folded(stretch)) backwards.add(each);
        expect(shown(backwards)).toEqual(shown(straight));
      }),
    );
  });

  it("knows where a connection goes on", () => {
    const facts = new Facts();
    const all = conversation([2]);
    for (const each of [...all].reverse()) facts.add(each);
    expect([facts.lastSeq, facts.lastId]).toEqual([all.length, all[all.length - 1]?.id]);
  });

  it("reads payloads of any shape", () => {
    const types = [
      "prompt.submit",
      "response.chunk",
      "tool.propose",
      "tool.result",
      "gate.request",
      "session.end",
      "context.add",
      "tool.output",
      "gate.timeout",
    ];
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom(...types), fc.anything()), { maxLength: 20 }),
        (said) => {
          const facts = new Facts();
          for (const [at, [type, payload]] of said.entries())
            facts.add({
              v: 1,
              id: `x${at}`,
              ts: "",
              session: "s",
              sender: "a",
              type,
              payload,
              seq: at + 1,
            });
          layout(facts);
        },
      ),
    );
  });
});

describe("layout", () => {
  it("groups steps of one agent, and puts a gate that waits outside", () => {
    const facts = new Facts();
    for (const each of conversation([1, 2])) facts.add(each);
    const kinds = layout(facts).map((row) => row.kind);
    expect(kinds).toEqual([
      "event",
      "turn",
      "prompt",
      "thinking",
      "answer",
      "steps",
      "turn",
      "prompt",
      "thinking",
      "answer",
      "gate",
    ]);
  });

  it("keeps the objects of rows that did not change", () => {
    const facts = new Facts();
    const all = conversation([3]);
    for (const each of all.slice(0, 8)) facts.add(each);
    const before = layout(facts);
    facts.add(
      message("response.chunk", "codex", { text: "more" }, { ref: all[3]?.id ?? "", seq: 900 }),
    );
    const after = keepUnchanged(before, layout(facts));
    expect(after.filter((row, at) => row !== before[at]).map((row) => row.kind)).toEqual([
      "answer",
    ]);
  });

  it("leaves out what lies behind a replayed moment, and what is older than what is loaded", () => {
    const facts = new Facts();
    for (const each of conversation([1, 1])) facts.add(each);
    expect(layout(facts, { until: 5 }).every((row) => row.seq <= 5)).toBe(true);
    expect(layout(facts, { floor: 12 }).every((row) => row.seq >= 12)).toBe(true);
  });
});

describe("forgetting", () => {
  it("lets go of what is older, keeps what waits, and counts again", () => {
    const facts = new Facts();
    for (const each of conversation([1, 2, 3])) facts.add(each);
    const before = facts.characters;
    const waiting = [...facts.items.values()].filter(
      (item) => item.kind === "tool" && facts.state(item) === "waits",
    );
    facts.forget(1000);
    expect(facts.characters).toBeLessThan(before);
    expect([...facts.items.values()]).toEqual(waiting);
    expect(waiting.length).toBe(1);
  });
});
