import { Refusal, Unreachable } from "./http";
import type { ErrorReport, Payloads, ReceivedEnvelope } from "./types";

export interface Refs {
  ref?: string;
  causal_refs?: string[];
  fork?: string;
}

export interface SendOptions extends Refs {
  /** Wait for the server if it is away. Prompts do; votes and stops must not. */
  whenBack?: boolean;
  /** The id to send it under, where the sender has to know it beforehand. */
  id?: string;
}

interface Pending {
  text: string;
  whenBack: boolean;
  accept: (echo: ReceivedEnvelope) => void;
  refuse: (error: Error) => void;
}

export type SendableType = keyof Payloads;

/** Messages that were not heard back yet; sending one again has one effect, because of its id. */
export class Outbox {
  readonly #pending = new Map<string, Pending>();

  add(id: string, text: string, whenBack: boolean): Promise<ReceivedEnvelope> {
    return new Promise((accept, refuse) => {
      this.#pending.set(id, { text, whenBack, accept, refuse });
    });
  }

  textOf(id: string): string | undefined {
    return this.#pending.get(id)?.text;
  }

  /** What to send again on a new connection, in order. */
  texts(): string[] {
    return [...this.#pending.values()].map((each) => each.text);
  }

  echoed(message: ReceivedEnvelope): void {
    this.#pending.get(message.id)?.accept(message);
    this.#pending.delete(message.id);
  }

  refused(report: ErrorReport): boolean {
    const pending = this.#pending.get(report.related_to ?? "");
    if (!pending) return false;
    this.#pending.delete(report.related_to ?? "");
    pending.refuse(new Refusal(0, report.code, report.message, report.details ?? {}));
    return true;
  }

  /** The connection is gone: what must not wait fails, so that its sender sees it. */
  lost(): void {
    for (const [id, pending] of this.#pending) {
      if (pending.whenBack) continue;
      this.#pending.delete(id);
      pending.refuse(new Unreachable());
    }
  }

  failAll(error: Error): void {
    for (const pending of this.#pending.values()) pending.refuse(error);
    this.#pending.clear();
  }
}
