/** What the people of a session write together, and what one of them sends of it. */

import { account } from "../server/account.svelte";
import { Refusal } from "../server/http";
import { messageId } from "../server/message_id";
import type { SessionSocket } from "../server/session_socket";
import type { Envelope } from "./envelope";
import { type SavedDraft, SharedDraft } from "./shared_draft";

const DRAFT_AFTER_MS = 250;
const TYPING_MS = 6000;

export interface WaitingPrompt {
  id: string;
  text: string;
}

export class RoomDraft {
  text = $state("");
  carets = $state.raw<[string, number][]>([]);
  contributors = $state.raw<string[]>([]);
  typing = $state.raw<Map<string, number>>(new Map());
  waiting = $state.raw<WaitingPrompt[]>([]);
  readonly #draft: SharedDraft;
  readonly #me = account.current?.id ?? "";
  readonly #place: string;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isAskedAgain = false;
  /** Until a prompt is heard back, its text stays kept. */
  #isSending = false;

  constructor(
    session: string,
    readonly fork: string | null,
    readonly socket: SessionSocket,
  ) {
    this.#draft = new SharedDraft(this.#me);
    this.#place = ["accord.session-draft", this.#me, session, fork ?? ""].join(" ");
    const kept = keptAt(this.#place);
    if (kept) this.#draft.restore(kept);
    this.#show();
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  isTyping(id: string, now: number): boolean {
    return (this.typing.get(id) ?? 0) > now;
  }

  edit(text: string): void {
    this.#draft.edit(text);
    this.#show();
    this.later();
  }

  /** Tells the others soon; also what was written before the session was joined, or while the server was away. */
  later(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#send();
    }, DRAFT_AFTER_MS);
  }

  heard(message: Envelope): void {
    if ((message.fork || null) !== this.fork) return;
    this.#draft.echo(message);
    if (message.sender !== this.#me)
      this.typing = new Map(this.typing).set(message.sender, Date.now() + TYPING_MS);
    this.#show();
    if (this.#draft.unsent) this.later();
    if (this.#isAskedAgain) this.#sayAgain();
  }

  /** A prompt was sent, perhaps this draft. */
  submitted(message: Envelope): void {
    if (message.type !== "prompt.submit") return;
    this.#draft.submitted(message);
    this.#show();
  }

  /** Someone came who has not heard the drafts before: whoever wrote last says it again. */
  joined(who: string): void {
    if (who !== this.#me) this.#sayAgain();
  }

  #sayAgain(): void {
    // One under way may have left before the other came.
    this.#isAskedAgain = this.#draft.inFlight;
    const key = messageId();
    const again = this.#draft.again(key);
    if (again) this.#put(key, again);
  }

  async prompt(agent: string, contextKeys: string[]): Promise<void> {
    const text = this.#draft.local;
    const refs = { ...(this.#draft.root ? { ref: this.#draft.root } : {}), ...this.#inFork() };
    const contributors = [...new Set([...this.#draft.contributors, this.#me])];
    const waiting = { id: messageId(), text };
    const payload = { content: text, target_agent: agent, contributors, context_keys: contextKeys };
    this.#isSending = true;
    this.#draft.clear();
    this.#show();
    if (!this.socket.isAttached) this.waiting = [...this.waiting, waiting];
    try {
      await this.#withoutDraft(payload, refs);
    } catch (error) {
      this.#draft.edit(this.#draft.local ? `${text}\n${this.#draft.local}` : text);
      throw error;
    } finally {
      this.#isSending = false;
      this.waiting = this.waiting.filter((each) => each !== waiting);
      this.#show();
    }
  }

  async amend(prompt: string, reason: string): Promise<void> {
    await this.socket.send(
      "prompt.amend",
      { original_prompt: prompt, amendment: this.#draft.local, reason },
      { ref: prompt, ...this.#inFork() },
    );
    this.#draft.clear();
    this.#show();
  }

  /** A server that restarted does not know the draft; the prompt then goes without it. */
  async #withoutDraft(payload: Parameters<SessionSocket["send"]>[1], refs: object): Promise<void> {
    const send = (more: object) =>
      this.socket.send("prompt.submit", payload as never, { whenBack: true, ...more });
    try {
      await send(refs);
    } catch (error) {
      const forgotten =
        error instanceof Refusal && "ref" in refs && error.details.unknown !== undefined;
      if (!forgotten) throw error;
      await send(this.#inFork());
    }
  }

  #inFork(): { fork?: string } {
    return this.fork ? { fork: this.fork } : {};
  }

  #send(): void {
    if (!this.socket.isAttached) return;
    const key = messageId();
    const next = this.#draft.next(key);
    if (next) this.#put(key, next);
  }

  #put(key: string, next: NonNullable<ReturnType<SharedDraft["next"]>>): void {
    const refs = {
      ...(next.ref ? { ref: next.ref } : {}),
      ...(next.causalRefs.length ? { causal_refs: next.causalRefs } : {}),
      ...this.#inFork(),
    };
    const payload = { content: next.content, contributors: next.contributors };
    this.socket.send("prompt.draft", payload, { ...refs, id: key }).catch((error: unknown) => {
      // The server forgets drafts when it restarts; then this one is the first.
      this.#draft.failed(error instanceof Refusal);
      if (this.socket.isAttached) this.later();
    });
  }

  #show(): void {
    this.text = this.#draft.local;
    this.carets = [...this.#draft.carets];
    this.contributors = this.#draft.contributors;
    if (!this.#isSending) keep(this.#place, this.#draft.saved());
  }
}

/** What this tab keeps over a reload, another screen and a sign-in; for each person and place. */
function keptAt(place: string): SavedDraft | null {
  try {
    return JSON.parse(sessionStorage.getItem(place) ?? "null");
  } catch {
    return null;
  }
}

function keep(place: string, draft: SavedDraft | null): void {
  try {
    if (draft) sessionStorage.setItem(place, JSON.stringify(draft));
    else sessionStorage.removeItem(place);
  } catch {
    // Larger than what the browser keeps for a tab: it is still in the field.
  }
}
