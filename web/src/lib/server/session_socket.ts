import { account } from "./account.svelte";
import { Connection } from "./connection.svelte";
import { get, Refusal, Unreachable } from "./http";
import { messageId } from "./message_id";
import { Outbox, type SendableType, type SendOptions } from "./outbox";
import { ReplayFilter } from "./replay_filter";
import type { Account, Payloads, ReceivedEnvelope, SessionDetail, SessionMember } from "./types";

const SUBPROTOCOL = "pvp.v1";
/** The server closed the connection for good: the token ended, or the rules forbid more. */
const POLICY_VIOLATION = 1008;
const RETRIED_CODES = new Set(["RATE_LIMITED", "INTERNAL_ERROR", "TIMEOUT", "TRANSPORT_ERROR"]);

export interface SessionListener {
  /** New messages in the order of the session; never one twice. Called at most once a frame. */
  received(messages: ReceivedEnvelope[]): void;
  /** What was held back because the session was not joined can be sent now. */
  attached?(): void;
  /** The session cannot be joined, or is over; `why` is the server's sentence. */
  closed(why: string): void;
}

/**
 * One session over WebSocket: joins, resumes after a loss where it stood, and sends.
 *
 * What was sent is done when its echo is back; the promise of `send` resolves with that echo.
 */
export class SessionSocket {
  readonly connection = new Connection(() => this.#open());
  readonly #filter = new ReplayFilter();
  readonly #outbox = new Outbox();
  #socket: WebSocket | undefined;
  #joinId = "";
  #isAttached = false;
  #isClosed = false;
  #member: SessionMember | undefined;
  #arrived: ReceivedEnvelope[] = [];
  #flush = 0;

  constructor(
    readonly session: string,
    readonly listener: SessionListener,
  ) {}

  /** Join; `after` is the last message that is known already. */
  start(detail: SessionDetail, after?: { seq: number; id: string }): void {
    this.#member = detail.members.find((each) => each.id === account.current?.id);
    if (after) {
      this.#filter.lastSeq = after.seq;
      this.#filter.lastId = after.id;
    }
    this.#open();
  }

  get isAttached(): boolean {
    return this.#isAttached;
  }

  send<T extends SendableType>(
    type: T,
    payload: Payloads[T],
    options: SendOptions = {},
  ): Promise<ReceivedEnvelope> {
    const { whenBack = false, id = messageId(), ...refs } = options;
    if (this.#isClosed || (!this.#isAttached && !whenBack))
      return Promise.reject(new Unreachable());
    const text = this.#text(id, type, payload, refs);
    const echo = this.#outbox.add(id, text, whenBack);
    if (this.#isAttached) this.#socket?.send(text);
    return echo;
  }

  /** Send a signal, such as typing; it has no echo to wait for. */
  signal<T extends SendableType>(type: T, payload: Payloads[T], options: SendOptions = {}): string {
    const id = messageId();
    const { whenBack: _, ...refs } = options;
    if (this.#isAttached) this.#socket?.send(this.#text(id, type, payload, refs));
    return id;
  }

  stop(): void {
    this.#end(new Unreachable());
  }

  #text(id: string, type: string, payload: unknown, refs: object): string {
    const head = { v: 1, id, ts: new Date().toISOString(), session: this.session };
    return JSON.stringify({ ...head, sender: account.current?.id, type, payload, ...refs });
  }

  #open(): void {
    if (this.#isClosed) return;
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/ws`, [SUBPROTOCOL]);
    this.#socket = socket;
    socket.onopen = () => this.#join();
    socket.onmessage = (event) => {
      if (this.#socket === socket) this.#receive(JSON.parse(event.data));
    };
    socket.onclose = (event) => {
      if (this.#socket === socket) this.#lost(event);
    };
  }

  #join(): void {
    const me = account.current;
    if (!me) return;
    this.#joinId = messageId();
    const payload: Payloads["session.join"] = {
      participant: announcement(me, this.#member),
      supported_versions: [1],
    };
    const refs = this.#filter.lastId ? { ref: this.#filter.lastId } : {};
    this.#socket?.send(this.#text(this.#joinId, "session.join", payload, refs));
  }

  #receive(message: ReceivedEnvelope): void {
    this.connection.heard();
    if (message.type === "heartbeat.ping") {
      this.#socket?.send(this.#text(messageId(), "heartbeat.pong", {}, { ref: message.id }));
      return;
    }
    if (message.type === "heartbeat.pong") return;
    if (message.type === "error") {
      this.#refused(message.payload);
      return;
    }
    this.#outbox.echoed(message);
    if (this.#filter.isNew(message)) this.#queue(message);
    if (message.id === this.#joinId) this.#attached();
    if (message.type === "session.end") this.#finish("The session has ended.");
  }

  #refused(report: Payloads["error"]): void {
    if (report.related_to !== this.#joinId) {
      this.#outbox.refused(report);
    } else if (RETRIED_CODES.has(report.code)) {
      this.#socket?.close();
    } else {
      this.#finish(report.message);
    }
  }

  #attached(): void {
    this.#isAttached = true;
    for (const text of this.#outbox.texts()) this.#socket?.send(text);
    this.listener.attached?.();
  }

  /** All that arrived within a frame is handed over at once. */
  #queue(message: ReceivedEnvelope): void {
    this.#arrived.push(message);
    if (this.#flush) return;
    const hand = () => {
      this.#flush = 0;
      const messages = this.#arrived;
      this.#arrived = [];
      if (messages.length) this.listener.received(messages);
    };
    // A hidden page draws no frames, and still has to keep up.
    this.#flush = document.hidden ? window.setTimeout(hand, 250) : requestAnimationFrame(hand);
  }

  #lost(event: CloseEvent): void {
    this.#isAttached = false;
    this.#outbox.lost();
    if (this.#isClosed) return;
    if (event.code === POLICY_VIOLATION) {
      account.ended(event.reason || "You were signed out.");
      this.#end(new Refusal(401, "UNAUTHORIZED", event.reason));
      return;
    }
    this.connection.lost();
    if (event.code === 1006) void this.#whyRefused();
  }

  /** A browser does not say why an upgrade was refused. */
  async #whyRefused(): Promise<void> {
    try {
      await get("/sign-in");
    } catch (error) {
      if (error instanceof Refusal && error.isUnauthenticated) account.ended(error.message);
    }
  }

  #finish(why: string): void {
    this.#end(new Refusal(0, "SESSION_OVER", why));
    this.listener.closed(why);
  }

  #end(error: Error): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#isAttached = false;
    this.connection.stop();
    this.#socket?.close();
    this.#outbox.failAll(error);
  }
}

/** Who joins: with the rights that the person has there already, so that coming back changes none. */
function announcement(me: Account, member: SessionMember | undefined) {
  return {
    id: me.id,
    name: member?.name || me.name || me.id,
    type: "human" as const,
    roles: member?.roles ?? me.roles,
    transport: "websocket" as const,
    ...(member ? { capabilities: member.capabilities } : {}),
  };
}
