/**
 * One draft that several people write at once.
 *
 * The server echoes every `prompt.draft` to all, in one order. `ref` names the first draft, `causal_refs` the one that
 * a draft builds on. Everybody folds them in that order by a three-way merge, so everybody gets the same text. A writer
 * has at most one draft of its own under way; what it types meanwhile waits for the echo.
 */

import type { Envelope } from "./envelope";
import { fieldsOf, textOf, textsOf } from "./envelope";
import { lastChange, merge3, movedPlace } from "./text_merge";

/** As many as the server accepts in `causal_refs`. */
const MOST_STATES = 256;

export interface OutgoingDraft {
  content: string;
  contributors: string[];
  ref: string | null;
  causalRefs: string[];
}

/** A draft as a tab keeps it. */
export type SavedDraft = Pick<
  SharedDraft,
  "local" | "shared" | "root" | "newest" | "contributors" | "target"
>;

export class SharedDraft {
  /** What all have agreed on. */
  shared = "";
  /** What this person sees and edits. */
  local = "";
  /** The first draft of this text, the newest one, and who wrote on it. */
  root: string | null = null;
  newest: string | null = null;
  contributors: string[] = [];
  /** Where each of the others changed something last. */
  carets = new Map<string, number>();
  target = "";
  #states = new Map<string, string>();
  #sent: { id: string; content: string; rebased: string; base: string } | null = null;

  constructor(readonly me: string) {}

  get inFlight(): boolean {
    return this.#sent !== null;
  }

  /** Whether there is something of this person that the others have not seen. */
  get unsent(): boolean {
    return this.local !== (this.#sent?.rebased ?? this.shared);
  }

  edit(text: string): void {
    this.carets = new Map(
      [...this.carets].map(([id, place]) => [id, movedPlace(this.local, text, place)]),
    );
    this.local = text;
  }

  /** The next draft to send under this id; null if one is under way or nothing changed. */
  next(id: string): OutgoingDraft | null {
    if (this.#sent || !this.unsent) return null;
    this.#sent = { id, content: this.local, rebased: this.local, base: this.shared };
    const contributors = [...new Set([...this.contributors, this.me])];
    return {
      content: this.local,
      contributors,
      ref: this.root,
      causalRefs: this.newest ? [this.newest] : [],
    };
  }

  /** The text as it is, for someone who came later. */
  again(id: string): OutgoingDraft | null {
    if (this.#sent || !this.shared) return null;
    this.#sent = { id, content: this.shared, rebased: this.shared, base: this.shared };
    return {
      content: this.shared,
      contributors: this.contributors,
      ref: this.root,
      causalRefs: this.newest ? [this.newest] : [],
    };
  }

  /** The server refused the draft under way, or it was lost with the connection. */
  failed(restart = false): void {
    this.#sent = null;
    if (restart) [this.root, this.newest] = [null, null];
  }

  /** A draft as the server echoed it, own ones included. */
  echo(message: Envelope): void {
    const fields = fieldsOf(message.payload);
    const content = textOf(fields.content);
    const parent = message.causal_refs?.[message.causal_refs.length - 1] ?? null;
    const before = this.shared;
    const base = parent === null ? (message.ref ? before : "") : this.#states.get(parent);
    // Someone who came later knows nothing of the parent and takes the text as it is.
    const after = base === undefined ? content : merge3(base, before, content);
    const own = this.#sent?.id === message.id;
    if (own && this.#sent) {
      this.local = merge3(this.#sent.rebased, after, this.local);
      this.#sent = null;
    } else {
      const rebased = this.#sent ? merge3(before, after, this.#sent.rebased) : after;
      const seen = this.#sent ? this.#sent.rebased : before;
      const local = merge3(seen, rebased, this.local);
      this.carets = new Map(
        [...this.carets].map(([id, place]) => [id, movedPlace(this.local, local, place)]),
      );
      if (message.sender !== this.me && after !== before)
        this.carets.set(message.sender, lastChange(this.local, local));
      if (this.#sent) this.#sent.rebased = rebased;
      this.local = local;
    }
    this.shared = after;
    this.root = message.ref ?? message.id;
    this.newest = message.id;
    this.contributors = [
      ...new Set([...this.contributors, ...textsOf(fields.contributors), message.sender]),
    ];
    this.target = textOf(fields.target_agent) || this.target;
    this.#states.set(message.id, after);
    if (this.#states.size > MOST_STATES)
      this.#states.delete(this.#states.keys().next().value as string);
  }

  /** The draft became a prompt; what was typed meanwhile begins a new one. */
  submitted(message: Envelope): void {
    if (!this.root || message.ref !== this.root) return;
    const content = textOf(fieldsOf(message.payload).content);
    const more = this.local.startsWith(content)
      ? this.local.slice(content.length).trimStart()
      : this.unsent
        ? this.local
        : "";
    this.clear();
    this.local = more;
  }

  /** What is needed to go on with this text later; null if there is none. */
  saved(): SavedDraft | null {
    const { local, shared, root, newest, contributors, target } = this;
    return local || shared ? { local, shared, root, newest, contributors, target } : null;
  }

  /** Goes on where another page stopped: what it had heard from the others is what both build on. */
  restore(saved: SavedDraft): void {
    Object.assign(this, saved);
    if (this.newest) this.#states.set(this.newest, this.shared);
  }

  clear(): void {
    [this.shared, this.local, this.root, this.newest, this.contributors, this.#sent] = [
      "",
      "",
      null,
      null,
      [],
      null,
    ];
    this.carets.clear();
    this.#states.clear();
  }
}
