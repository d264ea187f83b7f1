/** Folds PVP messages into items and what is known about them; the order of arrival changes nothing. */

import { type Envelope, fieldsOf, numberOf, textOf, textsOf } from "./envelope";
import { describeEvent } from "./events";
import { GrowingText } from "./growing_text";
import type {
  Execution,
  GateRequest,
  Item,
  Rejection,
  Result,
  Stream,
  Timeout,
  Tool,
  ToolState,
  Vote,
} from "./items";

const SYSTEM = "system";

/** Everything that messages said about one gate or proposal. */
interface Ballot {
  votes: Map<string, Vote>;
  rejections: Map<string, Rejection>;
  timeouts: Map<string, Timeout>;
}

export interface Output {
  stdout: GrowingText;
  stderr: GrowingText;
  /** How much the server left out of a folded transcript, in characters. */
  omitted: number;
}

export class Facts {
  readonly items = new Map<string, Item>();
  readonly gates = new Map<string, GateRequest>();
  /** Gates by the proposal or merge that they are about. */
  readonly gatesOf = new Map<string, Set<string>>();
  /** The `seq` of the record that created each fork. */
  readonly forkBegins = new Map<string, number>();
  readonly executions = new Map<string, Execution>();
  readonly results = new Map<string, Result>();
  readonly outputs = new Map<string, Output>();
  readonly #ballots = new Map<string, Ballot>();
  /** Stops: what their agents were writing ended there, also where no message says so. */
  readonly #stops: { seq: number; target: string }[] = [];
  /** The newest `seq` and its message: where a connection goes on. */
  lastSeq = 0;
  lastId = "";
  /** Ids of items that changed since they were taken. */
  readonly changed = new Set<string>();
  /** About how many characters of streams are in memory. */
  characters = 0;
  /** Whether an item was added since the last look. */
  grown = false;

  /** Takes one message; false if it says nothing new. */
  add(message: Envelope): boolean {
    const seq = message.seq ?? 0;
    if (seq > this.lastSeq) {
      this.lastSeq = seq;
      this.lastId = message.id;
    }
    if (message.type === "fork.create" && message.fork) this.forkBegins.set(message.fork, seq);
    const handler = HANDLERS[message.type];
    if (handler) return handler(this, message);
    const told = seq > 0 ? describeEvent(message) : null;
    if (!told || this.items.has(message.id)) return false;
    this.#put({ kind: "event", ...base(message), ...told });
    if (message.type === "interrupt.raise") this.#noteStop(message);
    return true;
  }

  #put(item: Item): void {
    this.items.set(item.id, item);
    this.changed.add(item.id);
    this.grown = true;
  }

  /** An item that is complete in one message; false if it is here. */
  put(item: Item): boolean {
    const before = this.items.get(item.id);
    if (before) return false;
    this.#put(item);
    return true;
  }

  touch(id: string): void {
    const item = this.items.get(id);
    if (!item) return;
    item.revision++;
    this.changed.add(id);
  }

  /** The proposal or merge, and each gate about it, changed. */
  touchBallot(target: string): void {
    this.touch(target);
    const gate = this.gates.get(target);
    if (gate) this.touch(gate.actionRef);
  }

  ballot(target: string): Ballot {
    let found = this.#ballots.get(target);
    if (!found) {
      found = { votes: new Map(), rejections: new Map(), timeouts: new Map() };
      this.#ballots.set(target, found);
    }
    return found;
  }

  stream(message: Envelope, kind: "answer" | "thinking", id: string): Stream {
    const known = this.items.get(id);
    if (known && (known.kind === "answer" || known.kind === "thinking")) return known;
    const stream: Stream = {
      kind,
      ...base(message),
      id,
      prompt: "",
      begun: false,
      content: new GrowingText(),
      ended: "",
      summary: "",
      durationMs: 0,
      tokens: 0,
      visibleTo: "all",
    };
    this.#put(stream);
    return stream;
  }

  output(proposal: string): Output {
    let found = this.outputs.get(proposal);
    if (!found) {
      found = { stdout: new GrowingText(), stderr: new GrowingText(), omitted: 0 };
      this.outputs.set(proposal, found);
    }
    return found;
  }

  #noteStop(message: Envelope): void {
    const fields = fieldsOf(message.payload);
    if (textOf(fields.urgency) === "pause") return;
    const target = textOf(fields.target);
    this.#stops.push({ seq: message.seq ?? 0, target });
    for (const item of this.items.values())
      if ((item.kind === "answer" || item.kind === "thinking") && !item.ended) this.touch(item.id);
  }

  /** How a stream ended; empty while it is written. */
  ending(stream: Stream): string {
    if (stream.ended) return stream.ended;
    const isStopped = this.#stops.some(
      (stop) => stop.seq > stream.seq && (!stop.target || stop.target === stream.by),
    );
    return isStopped ? "interrupted" : "";
  }

  // What is known of a proposal

  votes(target: string): Vote[] {
    const all = this.#targets(target).flatMap((id) => [...this.ballot(id).votes.values()]);
    return all.sort((a, b) => a.seq - b.seq);
  }

  rejection(target: string): Rejection | null {
    const all = this.#targets(target).flatMap((id) => [...this.ballot(id).rejections.values()]);
    return all.sort((a, b) => a.seq - b.seq)[0] ?? null;
  }

  timeout(target: string): Timeout | null {
    const all = this.#targets(target).flatMap((id) => [...this.ballot(id).timeouts.values()]);
    return all.sort((a, b) => b.seq - a.seq)[0] ?? null;
  }

  /** The newest gate about this action. */
  gateOf(action: string): GateRequest | null {
    const ids = [...(this.gatesOf.get(action) ?? [])];
    const gates = ids.flatMap((id) => this.gates.get(id) ?? []);
    return gates.sort((a, b) => b.seq - a.seq)[0] ?? null;
  }

  #targets(target: string): string[] {
    return [target, ...(this.gatesOf.get(target) ?? [])];
  }

  state(tool: Tool): ToolState {
    const [execution, result, rejection] = [
      this.executions.get(tool.id),
      this.results.get(tool.id),
      this.rejection(tool.id),
    ];
    if (result?.late) return "ran late";
    if (result) return result.success ? "ran" : "failed";
    if (rejection && execution) return "taken back";
    if (rejection)
      return rejection.by === SYSTEM && /stop|interrupt/i.test(rejection.comment)
        ? "stopped"
        : "rejected";
    if (this.timeout(tool.id)?.resolution === "rejected") return "expired";
    if (execution) return this.outputs.has(tool.id) ? "running" : "allowed";
    return this.gateOf(tool.id) ? "waits" : "held";
  }

  isOpen(gate: GateRequest): boolean {
    const action = gate.actionRef;
    if (
      this.rejection(action) ||
      this.ballot(gate.id).rejections.size ||
      this.ballot(gate.id).timeouts.size
    )
      return false;
    return !this.executions.has(action) && !this.#passed.has(gate.id);
  }

  /** Lets go of what is older; the server has it. What still waits stays. */
  forget(before: number): void {
    for (const item of this.items.values()) {
      if (item.seq >= before || (item.kind === "tool" && this.state(item) === "waits")) continue;
      if ((item.kind === "answer" || item.kind === "thinking") && !item.ended) continue;
      this.items.delete(item.id);
      for (const map of [this.executions, this.results, this.outputs, this.#ballots])
        map.delete(item.id);
      for (const gate of this.gatesOf.get(item.id) ?? []) {
        this.gates.delete(gate);
        this.#ballots.delete(gate);
      }
      this.gatesOf.delete(item.id);
    }
    this.grown = true;
    this.characters = 0;
    for (const item of this.items.values())
      if (item.kind === "answer" || item.kind === "thinking")
        this.characters += item.content.text.length;
    for (const output of this.outputs.values())
      this.characters += output.stdout.text.length + output.stderr.text.length;
  }

  /** Gates of other actions that passed, as the server's own vote says. */
  readonly #passed = new Set<string>();
  notePassed(gate: string): void {
    this.#passed.add(gate);
  }
}

function base(message: Envelope) {
  return {
    id: message.id,
    seq: message.seq ?? 0,
    at: message.ts,
    by: message.sender,
    fork: message.fork || null,
    revision: 0,
  };
}

type Handler = (facts: Facts, message: Envelope) => boolean;

function chunk(kind: "answer" | "thinking"): Handler {
  return (facts, message) => {
    const stream = facts.stream(message, kind, message.ref ?? message.id);
    const fields = fieldsOf(message.payload);
    const to = message.seq ?? 0;
    // A folded transcript joins chunks into one; it says where they began.
    const from = numberOf(fieldsOf(fields.folded).from) || to;
    const text = textOf(fields.text);
    if (!stream.content.add(from, to, text)) return false;
    facts.characters += text.length;
    if (!stream.begun && from < stream.seq) stream.seq = from;
    facts.touch(stream.id);
    return true;
  };
}

function begin(kind: "answer" | "thinking"): Handler {
  return (facts, message) => {
    const fields = fieldsOf(message.payload);
    const stream = facts.stream(message, kind, message.id);
    if (stream.begun) return false;
    Object.assign(stream, base(message), {
      revision: stream.revision,
      begun: true,
      prompt: textOf(fields.prompt_ref),
    });
    if (kind === "thinking")
      stream.visibleTo = Array.isArray(fields.visible_to)
        ? textsOf(fields.visible_to).join(", ")
        : textOf(fields.visible_to) || "all";
    facts.grown = true;
    facts.touch(stream.id);
    return true;
  };
}

function end(kind: "answer" | "thinking"): Handler {
  return (facts, message) => {
    const fields = fieldsOf(message.payload);
    const stream = facts.stream(message, kind, message.ref ?? message.id);
    if (stream.ended) return false;
    stream.ended = textOf(fields.finish_reason) || "complete";
    stream.summary = textOf(fields.summary);
    stream.durationMs = numberOf(fields.duration_ms);
    const usage = fieldsOf(fields.usage);
    stream.tokens =
      numberOf(usage.total_tokens) || numberOf(usage.input_tokens) + numberOf(usage.output_tokens);
    facts.touch(stream.id);
    return true;
  };
}

function vote(target: "gate" | "tool_proposal"): Handler {
  return (facts, message) => {
    const fields = fieldsOf(message.payload);
    const id = textOf(fields[target]);
    if (message.sender === SYSTEM) facts.notePassed(id);
    else {
      const votes = facts.ballot(id).votes;
      if (votes.has(message.id)) return false;
      votes.set(message.id, {
        id: message.id,
        by: message.sender,
        at: message.ts,
        seq: message.seq ?? 0,
        comment: textOf(fields.comment),
      });
    }
    facts.touchBallot(id);
    return true;
  };
}

function reject(target: "gate" | "tool_proposal"): Handler {
  return (facts, message) => {
    const fields = fieldsOf(message.payload);
    const id = textOf(fields[target]);
    const rejections = facts.ballot(id).rejections;
    if (rejections.has(message.id)) return false;
    rejections.set(message.id, {
      id: message.id,
      by: message.sender,
      at: message.ts,
      seq: message.seq ?? 0,
      comment: textOf(fields.reason),
      suggestion: textOf(fields.suggestion),
    });
    facts.touchBallot(id);
    return true;
  };
}

const HANDLERS: Record<string, Handler> = {
  "prompt.submit": (facts, message) => {
    const fields = fieldsOf(message.payload);
    return facts.put({
      kind: "prompt",
      ...base(message),
      text: textOf(fields.content),
      contributors: textsOf(fields.contributors),
      target: textOf(fields.target_agent),
      contextKeys: textsOf(fields.context_keys),
    });
  },
  "prompt.amend": (facts, message) => {
    const fields = fieldsOf(message.payload);
    return facts.put({
      kind: "amendment",
      ...base(message),
      prompt: textOf(fields.original_prompt),
      text: textOf(fields.amendment),
      reason: textOf(fields.reason),
    });
  },
  "response.start": begin("answer"),
  "response.chunk": chunk("answer"),
  "response.end": end("answer"),
  "thinking.start": begin("thinking"),
  "thinking.chunk": chunk("thinking"),
  "thinking.end": end("thinking"),
  "tool.propose": (facts, message) => {
    const fields = fieldsOf(message.payload);
    return facts.put({
      kind: "tool",
      ...base(message),
      name: textOf(fields.tool_name),
      arguments: fieldsOf(fields.arguments),
      category: textOf(fields.category),
      risk: textOf(fields.risk_level),
      description: textOf(fields.description),
      optionOf: textOf(fieldsOf(fields.metadata).option_of),
      prompt: message.ref ?? "",
    });
  },
  "tool.approve": vote("tool_proposal"),
  "gate.approve": vote("gate"),
  "tool.reject": reject("tool_proposal"),
  "gate.reject": reject("gate"),
  "gate.timeout": (facts, message) => {
    const fields = fieldsOf(message.payload);
    const id = textOf(fields.gate);
    facts.ballot(id).timeouts.set(message.id, {
      at: message.ts,
      seq: message.seq ?? 0,
      resolution: textOf(fields.resolution),
    });
    facts.touchBallot(id);
    return true;
  },
  "gate.request": (facts, message) => {
    const fields = fieldsOf(message.payload);
    if (facts.gates.has(message.id)) return false;
    const gate: GateRequest = {
      id: message.id,
      seq: message.seq ?? 0,
      at: message.ts,
      by: message.sender,
      actionType: textOf(fields.action_type),
      actionRef: textOf(fields.action_ref),
      quorum: fields.quorum,
      timeoutSeconds: numberOf(fields.timeout_seconds),
      message: textOf(fields.message),
      fork: message.fork || null,
    };
    facts.gates.set(gate.id, gate);
    const about = facts.gatesOf.get(gate.actionRef) ?? new Set();
    facts.gatesOf.set(gate.actionRef, about.add(gate.id));
    if (gate.actionType !== "tool") facts.put({ kind: "gate", ...base(message), gate });
    facts.grown = true;
    facts.touch(gate.actionRef);
    return true;
  },
  "tool.execute": (facts, message) => {
    const fields = fieldsOf(message.payload);
    const id = textOf(fields.tool_proposal);
    if (facts.executions.has(id)) return false;
    const grant = fieldsOf(fields.grant);
    facts.executions.set(id, {
      at: message.ts,
      seq: message.seq ?? 0,
      approvedBy: textsOf(fields.approved_by),
      standing: textsOf(fields.standing).length > 0,
      grant: grant.id
        ? {
            id: textOf(grant.id),
            digest: textOf(grant.digest),
            expiresAt: textOf(grant.expires_at),
          }
        : null,
    });
    facts.grown = true;
    facts.touch(id);
    return true;
  },
  "tool.output": (facts, message) => {
    const fields = fieldsOf(message.payload);
    const id = textOf(fields.tool_proposal);
    const output = facts.output(id);
    const to = message.seq ?? 0;
    const folded = fieldsOf(fields.folded);
    const stream = fields.stream === "stderr" ? output.stderr : output.stdout;
    const text = textOf(fields.text);
    if (!stream.add(numberOf(folded.from) || to, to, text)) return false;
    facts.characters += text.length;
    output.omitted = Math.max(output.omitted, numberOf(folded.omitted));
    facts.touch(id);
    return true;
  },
  "tool.result": (facts, message) => {
    const fields = fieldsOf(message.payload);
    const id = textOf(fields.tool_proposal);
    if (facts.results.has(id)) return false;
    facts.results.set(id, {
      at: message.ts,
      seq: message.seq ?? 0,
      success: fields.success === true,
      durationMs: numberOf(fields.duration_ms),
      value: fields.result,
      error: textOf(fields.error),
      late: Boolean(fieldsOf(fields.metadata).ran_after_taken_back),
    });
    facts.touch(id);
    return true;
  },
};
