/** What the messages of a thread say about findings, readers and status, by the server's rules. */

import type {
  AgentDetail,
  DeliveryState,
  Kind,
  MessageItem,
  OpenItem,
  Role,
  ThreadStatus,
} from "../server/types";

export type FindingState = "open" | "fixed" | "verified" | "rejected" | "closed";

export interface Finding {
  id: string;
  seq: number;
  reporter: string;
  severity: string;
  task: string;
  path: string;
  text: string;
  state: FindingState;
  fixers: string[];
  /** The commit that the last fix named. */
  commit: string;
  /** Who closed it, and their words. */
  closedBy: string;
  words: string;
}

export const SEVERITIES = ["low", "medium", "high", "critical"] as const;
export const STATE_WORDS: Record<FindingState, string> = {
  open: "open",
  fixed: "fixed, to verify",
  verified: "verified",
  rejected: "not a problem",
  closed: "closed",
};
const CLOSING: Record<string, FindingState> = {
  finding_verified: "verified",
  finding_rejected: "rejected",
  thread_resolved: "closed",
};
/** People with one of these close findings of others. */
const REVIEWING: Role[] = ["admin", "navigator", "approver", "adversary"];

export function textIn(message: Pick<MessageItem, "metadata">, name: string): string {
  const value = message.metadata?.[name];
  return typeof value === "string" ? value : "";
}

export function eventOf(message: MessageItem): string {
  return message.kind === "event" ? textIn(message, "event_type") : "";
}

export function addressees(message: MessageItem): string[] {
  const to = message.metadata?.to;
  return Array.isArray(to) ? to.filter((each): each is string => typeof each === "string") : [];
}

/** Findings among these messages; `open` is the server's list of those that nothing closed. */
export function findingsIn(messages: readonly MessageItem[], open: readonly OpenItem[]): Finding[] {
  const found = new Map<string, Finding>();
  for (const item of open) found.set(item.message_id, fromOpenItem(item));
  for (const message of messages) {
    if (eventOf(message) === "finding_reported") {
      const known = found.get(message.message_id);
      found.set(message.message_id, { ...fromMessage(message), state: known ? "open" : "closed" });
    }
  }
  for (const message of messages) {
    const event = eventOf(message);
    const finding = aboutOf(message, found);
    if (finding && event === "fix_pushed") {
      if (!finding.fixers.includes(message.sender_agent_id))
        finding.fixers.push(message.sender_agent_id);
      finding.commit = textIn(message, "commit") || finding.commit;
      if (finding.state === "open") finding.state = "fixed";
    }
    const closing = CLOSING[event];
    const isClosed = finding && finding.state !== "open" && finding.state !== "fixed";
    // An event of a person who may not close it is stored, but the server keeps the finding open.
    if (closing && isClosed && mayHaveClosed(message, finding)) {
      finding.state = closing;
      finding.closedBy = message.sender_agent_id;
      finding.words = message.body;
    }
  }
  return [...found.values()].sort((a, b) => a.seq - b.seq);
}

function mayHaveClosed(message: MessageItem, finding: Finding): boolean {
  return !finding.closedBy && !finding.fixers.includes(message.sender_agent_id);
}

function fromOpenItem(item: OpenItem): Finding {
  return {
    ...NOTHING_KNOWN,
    fixers: [],
    id: item.message_id,
    seq: item.seq,
    reporter: item.reported_by,
    severity: item.severity ?? "",
    task: item.task_id ?? "",
    text: item.text,
    state: "open",
  };
}

function fromMessage(message: MessageItem): Finding {
  return {
    ...NOTHING_KNOWN,
    fixers: [],
    id: message.message_id,
    seq: message.seq,
    reporter: message.sender_agent_id,
    severity: textIn(message, "severity"),
    task: textIn(message, "task_id"),
    path: textIn(message, "path") || textIn(message, "location"),
    text: message.body,
    state: "closed",
  };
}

const NOTHING_KNOWN = { path: "", commit: "", closedBy: "", words: "" };

/** The finding that an event names: by the message it answers, else by a task of only one. */
function aboutOf(message: MessageItem, found: Map<string, Finding>): Finding | undefined {
  const named = message.in_reply_to ? found.get(message.in_reply_to) : undefined;
  if (named) return named;
  const task = textIn(message, "task_id");
  const same = [...found.values()].filter((each) => task && each.task === task);
  return same.length === 1 ? same[0] : undefined;
}

/** Whether this person may close it: its reporter or a reviewer, never the author of its fix. */
export function mayClose(finding: Finding, me: string, roles: readonly Role[]): boolean {
  if (finding.state !== "open" && finding.state !== "fixed") return false;
  if (finding.fixers.includes(me)) return false;
  return finding.reporter === me || roles.some((role) => REVIEWING.includes(role));
}

/** To which status a thread can go; `override` needs a reason. */
export interface Change {
  status: ThreadStatus;
  override: boolean;
}

const CHANGES: Record<ThreadStatus, ThreadStatus[]> = {
  active: ["resolved", "blocked"],
  blocked: ["active", "resolved"],
  resolved: ["active", "closed"],
  closed: [],
};
const OVERRIDES: Partial<Record<ThreadStatus, ThreadStatus[]>> = {
  active: ["closed"],
  blocked: ["closed"],
  closed: ["active"],
};

export function changesOf(status: ThreadStatus, roles: readonly Role[]): Change[] {
  const overrides = roles.includes("admin") ? (OVERRIDES[status] ?? []) : [];
  return [
    ...CHANGES[status].map((each) => ({ status: each, override: false })),
    ...overrides.map((each) => ({ status: each, override: true })),
  ];
}

const REACH: DeliveryState[] = ["queued", "delivered", "seen", "acked"];

/** How far each reader is behind: how many of these messages they have not acknowledged. */
export interface Reader {
  id: string;
  /** The least far of the messages whose delivery the caller may see; null if there is none. */
  state: DeliveryState | null;
  waiting: number;
}

export function readersOf(
  participants: readonly string[],
  messages: readonly MessageItem[],
): Reader[] {
  return participants.map((id) => {
    const states = messages.flatMap((message) => message.delivery?.[id] ?? []);
    const least = Math.min(...states.map((state) => REACH.indexOf(state)));
    return {
      id,
      state: states.length ? (REACH[least] ?? null) : null,
      waiting: states.filter((state) => state !== "acked").length,
    };
  });
}

/** The ways in which an agent can be woken, in the order in which the server tries them. */
export function wakeLadder(agent: AgentDetail | undefined): { way: string; state: string }[] {
  const runtimes = agent?.runtimes ?? [];
  const live = runtimes.filter((each) => each.status !== "offline");
  const managed = live.some((each) => each.management_mode === "managed");
  const resumable = runtimes.some((each) => each.resumable);
  return [
    { way: "Live terminal", state: managed ? "there" : live.length ? "not supervised" : "none" },
    { way: "Resume session", state: resumable ? "possible" : "nothing to resume" },
    { way: "Start anew", state: "last" },
  ];
}

export function kindsIn(
  messages: readonly MessageItem[],
  agents: readonly AgentDetail[],
): Map<string, Kind> {
  const kinds = new Map<string, Kind>();
  for (const agent of agents) kinds.set(agent.agent_id, "agent");
  for (const message of messages) kinds.set(message.sender_agent_id, message.sender_kind);
  return kinds;
}
