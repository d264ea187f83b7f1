import { messageId } from "../server/message_id";
import { problemOf } from "../server/problem";
import type {
  AgentDetail,
  MessageItem,
  MessagePage,
  OpenItem,
  PostedMessage,
  PostMessage,
  ThreadDetail,
  ThreadStatus,
  ThreadSummary,
  TriggerResult,
} from "../server/types";
import { call, inbox } from "./inbox.svelte";
import { addressees, type Finding, findingsIn } from "./rules";

const PAGE = 100;
/** Others read without telling us, so what the sender may see of it is asked for again. */
const POLL_MS = 5000;

/** What a message adds to its words. */
export interface Extras {
  to?: string[];
  event?: Record<string, unknown>;
  reply?: string;
}

/** One thread that is open on the screen. */
export class Conversation {
  detail = $state.raw<ThreadDetail>();
  messages = $state.raw<MessageItem[]>([]);
  openItems = $state.raw<OpenItem[]>([]);
  problem = $state("");
  readonly findings: Finding[] = $derived(findingsIn(this.messages, this.openItems));
  #first = 0;
  #timer: ReturnType<typeof setInterval> | undefined;
  #reading: Promise<void> | undefined;

  constructor(readonly id: string) {}

  /** Read it, and go on reading until the answer is called. */
  open(): () => void {
    void this.read();
    this.#timer = setInterval(() => {
      if (!document.hidden) void this.read();
    }, POLL_MS);
    return () => clearInterval(this.#timer);
  }

  get hasEarlier(): boolean {
    return this.#first > 0 && this.messages.length > 0;
  }

  /** One reading at a time. */
  read(): Promise<void> {
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  /** After a change of ours: what a reading that is under way brings may be older. */
  async #readAfterChange(): Promise<void> {
    await this.#reading;
    await this.read();
  }

  async #read(): Promise<void> {
    try {
      const known = this.detail;
      const detail = await call<ThreadDetail>("get_thread", { thread_id: this.id });
      if (!known) this.#first = Math.max(0, detail.last_seq - PAGE);
      this.detail = detail;
      await this.#take(this.#since());
      const summary = await call<ThreadSummary>("summarize_thread", {
        thread_id: this.id,
        max_messages: 1,
      });
      this.openItems = summary.open_items;
      this.problem = "";
    } catch (error) {
      this.problem = problemOf(error);
    }
  }

  /** From the first message on whose way to a reader is not at its end. */
  #since(): number {
    const unsettled = this.messages.find((message) =>
      Object.values(message.delivery ?? {}).some((state) => state !== "acked"),
    );
    const last = this.messages[this.messages.length - 1];
    return unsettled ? unsettled.seq - 1 : (last?.seq ?? this.#first);
  }

  async earlier(): Promise<void> {
    const before = this.#first;
    this.#first = Math.max(0, before - PAGE);
    await this.#take(this.#first, before);
  }

  async #take(since: number, before = Number.POSITIVE_INFINITY): Promise<void> {
    const bySeq = new Map(this.messages.map((message) => [message.seq, message]));
    for (let from = since, more = true; more; ) {
      // A page that nobody looks at must not tell the sender that it was seen.
      const peek = document.hidden;
      const asked = { thread_id: this.id, since_seq: from, limit: PAGE, peek };
      const page = await call<MessagePage>("read_messages", asked);
      for (const message of page.messages) bySeq.set(message.seq, message);
      from = page.next_seq;
      more = page.has_more && from < before;
    }
    this.messages = [...bySeq.values()].sort((a, b) => a.seq - b.seq);
  }

  get lastShown(): number {
    return this.messages[this.messages.length - 1]?.seq ?? 0;
  }

  async acknowledge(): Promise<void> {
    await inbox.acknowledge(this.id, this.lastShown);
    await this.#readAfterChange();
  }

  /** Posting also acknowledges what is on the screen. `key` makes a second try the same message. */
  async post(text: string, extras: Extras = {}, key = messageId()): Promise<void> {
    const shown = this.lastShown;
    const metadata = {
      ...(extras.to?.length ? { to: extras.to } : {}),
      ...(extras.event ?? {}),
    };
    const body: PostMessage = {
      schema_version: 1,
      thread_id: this.id,
      body: text,
      idempotency_key: key,
      ...(extras.event ? { kind: "event" as const } : {}),
      ...(Object.keys(metadata).length ? { metadata } : {}),
      ...(extras.reply ? { in_reply_to: extras.reply } : {}),
    };
    await call<PostedMessage>("post_message", body);
    if (shown) await inbox.acknowledge(this.id, shown);
    else await inbox.read();
    await this.#readAfterChange();
  }

  async setStatus(status: ThreadStatus, reason: string): Promise<void> {
    const body = { thread_id: this.id, status, reason, idempotency_key: messageId() };
    await call("update_thread_status", body);
    await Promise.all([this.#readAfterChange(), inbox.read()]);
  }

  async addParticipants(participants: string[]): Promise<void> {
    await call("add_participants", { thread_id: this.id, participants });
    await Promise.all([this.#readAfterChange(), inbox.read()]);
  }

  async wake(target: string, reason: string): Promise<TriggerResult> {
    const body = { thread_id: this.id, target_agent_id: target, reason };
    return await call<TriggerResult>("trigger_participant", body);
  }

  async setPaused(agent: AgentDetail, paused: boolean): Promise<void> {
    await call("pause_agent", { target_agent_id: agent.agent_id, paused });
    await inbox.read();
  }

  /** Whom an answer is for at first: those who spoke or were addressed last, without the person. */
  repliesTo(me: string): string[] {
    const others = this.messages
      .filter((message) => message.kind !== "system")
      .slice(-3)
      .flatMap((message) => [message.sender_agent_id, ...addressees(message)]);
    const members = new Set(this.detail?.participants ?? []);
    return [...new Set(others)].filter((id) => id !== me && members.has(id));
  }
}
