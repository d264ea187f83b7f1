import { account } from "../server/account.svelte";
import { home } from "../server/home.svelte";
import { Refusal, request } from "../server/http";
import { messageId } from "../server/message_id";
import type { GateCard, MessageReceipt } from "../server/types";

export type Choice = "yes" | "no";

/** A vote on its way; it is done when the server says so to everybody, not when it was clicked. */
export interface Vote {
  choice: Choice;
  words: string;
  state: "sending" | "not heard" | "refused";
  why: string;
}

/** After this long without an echo the person is told. */
const PATIENCE_MS = 3000;

class Votes {
  #votes = $state<Record<string, Vote>>({});
  readonly #ids = new Map<string, string>();

  of(gate: string): Vote | undefined {
    return this.#votes[gate];
  }

  /** Say it, or say it again: a vote keeps its id, so it counts once. */
  async cast(gate: Pick<GateCard, "id" | "session" | "fork">, choice: Choice, words: string) {
    const me = account.current?.id;
    // Votes are never kept for later: what they would decide may be another thing by then.
    if (!me || !home.connection.isHere) return;
    const key = `${gate.id} ${choice} ${words}`;
    const id = this.#ids.get(key) ?? messageId();
    this.#ids.set(key, id);
    this.#votes[gate.id] = { choice, words, state: "sending", why: "" };
    const patience = setTimeout(() => this.#late(gate.id), PATIENCE_MS);
    try {
      await request<MessageReceipt>(
        "POST",
        `/sessions/${encodeURIComponent(gate.session)}/messages`,
        {
          body: {
            v: 1,
            id,
            ts: new Date().toISOString(),
            session: gate.session,
            sender: me,
            ...message(gate, choice, words, me),
          },
        },
      );
    } catch (error) {
      clearTimeout(patience);
      const known = error instanceof Refusal;
      this.#votes[gate.id] = {
        choice,
        words,
        state: known ? "refused" : "not heard",
        why: known ? error.message : "",
      };
      if (known && error.isUnauthenticated) account.ended(error.message);
    }
  }

  /** Forget a vote that was heard or given up. */
  settle(gate: string): void {
    delete this.#votes[gate];
  }

  #late(gate: string): void {
    const vote = this.#votes[gate];
    if (vote?.state === "sending") vote.state = "not heard";
  }
}

function message(gate: Pick<GateCard, "id" | "fork">, choice: Choice, words: string, me: string) {
  const fork = gate.fork ? { fork: gate.fork } : {};
  return choice === "yes"
    ? {
        type: "gate.approve",
        payload: { gate: gate.id, approver: me, ...(words ? { comment: words } : {}) },
        ...fork,
      }
    : { type: "gate.reject", payload: { gate: gate.id, rejector: me, reason: words }, ...fork };
}

export const votes = new Votes();
