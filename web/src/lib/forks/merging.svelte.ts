/** Merging a fork from the page: propose, resolve what both sides changed, execute. */

import { get, Refusal } from "../server/http";
import { messageId } from "../server/message_id";
import { problemOf } from "../server/problem";
import type { ContextItemDetail, ForkSummary, MergeResolution, OpenMerge } from "../server/types";
import type { SessionRoom } from "../session/room.svelte";
import { MAIN, targetOf } from "./sides";

export type Choice = MergeResolution["resolution"];
export interface Answer {
  choice: Choice;
  text: string;
}
type Content = ContextItemDetail["content"];

export class Merging {
  answers = $state<Record<string, Answer>>({});
  summary = $state("");
  whyNot = $state("");
  isSending = $state(false);
  problem = $state("");
  /** Keys that the server named when it refused, besides those that it named beforehand. */
  #found = $state.raw<string[]>([]);

  constructor(
    readonly room: SessionRoom,
    readonly id: string,
  ) {}

  get fork(): ForkSummary | undefined {
    return this.room.detail?.forks.find((fork) => fork.id === this.id);
  }

  get target(): string {
    return this.fork ? targetOf(this.room.detail?.forks ?? [], this.fork) : MAIN;
  }

  /** A merge of it that was proposed and still stands. */
  get proposed(): OpenMerge | undefined {
    return this.room.detail?.merges.find((merge) => merge.source === this.id && !merge.changed);
  }

  get gate(): string | undefined {
    const { proposed } = this;
    return (
      proposed &&
      this.room.detail?.gates.find((gate) => gate.request.action_ref === proposed.id)?.id
    );
  }

  get conflicts(): string[] {
    return [...new Set([...(this.fork?.conflicts ?? []), ...this.#found])];
  }

  get unresolved(): string[] {
    return this.conflicts.filter((key) => !this.answers[key]);
  }

  /** Why it cannot be merged yet; empty if it can. */
  get missing(): string {
    if (!this.proposed && !this.summary.trim()) return "Say what came of it.";
    const [first] = this.unresolved;
    return first === undefined ? "" : `${this.unresolved.length} to resolve.`;
  }

  answer(key: string, choice: Choice, text = ""): void {
    this.answers = { ...this.answers, [key]: { choice, text } };
  }

  /** What one side has under a key; null if it has nothing. */
  async content(key: string, place: string): Promise<Content> {
    const where = `key=${encodeURIComponent(key)}&fork=${encodeURIComponent(place === MAIN ? "" : place)}`;
    try {
      const item = await get<ContextItemDetail>(
        `/sessions/${encodeURIComponent(this.room.id)}/context?${where}`,
      );
      return item.content;
    } catch (error) {
      if (error instanceof Refusal && error.status === 404) return null;
      throw error;
    }
  }

  async merge(other: string): Promise<void> {
    if (this.missing || this.isSending) return;
    this.isSending = true;
    this.problem = "";
    try {
      const proposal = this.proposed?.id ?? (await this.#propose(other));
      // A merge that waits for its gate is executed once that has passed.
      if (!this.proposed?.gated) await this.#execute(proposal);
    } catch (error) {
      const named = error instanceof Refusal ? error.details.conflicts : undefined;
      if (Array.isArray(named)) this.#found = named.filter((key) => typeof key === "string");
      this.problem = problemOf(error);
    } finally {
      this.isSending = false;
    }
  }

  async #propose(other: string): Promise<string> {
    const id = messageId();
    const why = this.whyNot.trim();
    const payload = {
      source_fork: this.id,
      target_fork: this.target,
      strategy: "append" as const,
      summary: this.summary.trim(),
      ...(why && other !== MAIN ? { metadata: { not_chosen: { [other]: why } } } : {}),
    };
    await this.room.socket.send("merge.propose", payload, { id });
    return id;
  }

  async #execute(proposal: string): Promise<void> {
    const resolved: MergeResolution[] = this.conflicts.flatMap((key) => {
      const answer = this.answers[key];
      if (!answer) return [];
      const value = answer.choice === "custom" ? { custom_value: answer.text } : {};
      return [{ conflict_id: key, resolution: answer.choice, ...value }];
    });
    await this.room.socket.send("merge.execute", {
      merge_proposal: proposal,
      ...(resolved.length ? { resolved_conflicts: resolved } : {}),
    });
  }

  /** An admin may enter any fork. */
  async enter(): Promise<void> {
    this.problem = "";
    try {
      await this.room.socket.send("fork.switch", { target_fork: this.id });
    } catch (error) {
      this.problem = problemOf(error);
    }
  }
}

/** As text that can be compared and edited. */
export function textOfContent(content: Content): string {
  if (content === null) return "";
  return typeof content === "string" ? content : JSON.stringify(content, null, 2);
}
