/** What a timeline is made of, before it is laid out in rows. */

import type { Fields } from "./envelope";
import type { GrowingText } from "./growing_text";

interface Base {
  id: string;
  seq: number;
  at: string;
  by: string;
  fork: string | null;
  /** Grows with every change, so that a row knows that it has to be drawn again. */
  revision: number;
}

export interface Prompt extends Base {
  kind: "prompt";
  text: string;
  contributors: string[];
  target: string;
  contextKeys: string[];
}

export interface Amendment extends Base {
  kind: "amendment";
  prompt: string;
  text: string;
  reason: string;
}

export interface Stream extends Base {
  kind: "answer" | "thinking";
  prompt: string;
  /** Whether the beginning is here; without it the text begins in the middle. */
  begun: boolean;
  content: GrowingText;
  /** `complete`, `interrupted`, …; empty while it runs. */
  ended: string;
  summary: string;
  durationMs: number;
  tokens: number;
  visibleTo: string;
}

export interface Vote {
  id: string;
  by: string;
  at: string;
  seq: number;
  comment: string;
}

export interface Rejection extends Vote {
  suggestion: string;
}

export interface Execution {
  at: string;
  seq: number;
  approvedBy: string[];
  grant: { id: string; digest: string; expiresAt: string } | null;
  standing: boolean;
}

export interface Result {
  at: string;
  seq: number;
  success: boolean;
  durationMs: number;
  value: unknown;
  error: string;
  late: boolean;
}

export interface Timeout {
  at: string;
  seq: number;
  resolution: string;
}

export interface GateRequest {
  id: string;
  seq: number;
  at: string;
  by: string;
  actionType: string;
  actionRef: string;
  quorum: unknown;
  timeoutSeconds: number;
  message: string;
  fork: string | null;
}

export interface Tool extends Base {
  kind: "tool";
  name: string;
  arguments: Fields;
  category: string;
  risk: string;
  description: string;
  optionOf: string;
  prompt: string;
}

/** A gate that is not about a tool call: a merge, or an action that a member asked about. */
export interface OtherGate extends Base {
  kind: "gate";
  gate: GateRequest;
}

export interface Happening extends Base {
  kind: "event";
  /** What happened, after the name of `by`. */
  words: string;
  detail: string;
  tone: "" | "stop" | "good" | "bad";
  /** Coming back after a lost connection is a join, too, and is not shown. */
  presence: "" | "in" | "out";
}

export type Item = Prompt | Amendment | Stream | Tool | OtherGate | Happening;
export type ToolState =
  | "waits"
  | "held"
  | "allowed"
  | "running"
  | "ran"
  | "failed"
  | "rejected"
  | "expired"
  | "stopped"
  | "taken back"
  | "ran late";
