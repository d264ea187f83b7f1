/** One session as the page holds it: what the server said, folded; and what this person is about to say. */

import { account } from "../server/account.svelte";
import { get, Refusal, request } from "../server/http";
import { SessionSocket } from "../server/session_socket";
import type {
  GateCard,
  ReceivedEnvelope,
  SessionDetail,
  SessionMember,
  TurnsPage,
} from "../server/types";
import { shownNames } from "../text/names";
import { oneLine } from "../text/spell";
import type { Envelope } from "./envelope";
import { fieldsOf, textOf } from "./envelope";
import { Facts } from "./facts";
import { viewOf } from "./fork_view";
import type { RoomDraft } from "./room_draft.svelte";
import { keepUnchanged, layout, type Row } from "./rows";
import { Work } from "./work";

const TURNS_AT_ONCE = 20;
const DETAIL_AFTER_MS = 120;
/** A fork whose beginning is further back is read on when its reader scrolls. */
const MOST_PAGES_AT_FIRST = 10;
/** Rows in memory while one follows; older ones are let go and can be read again. */
const MOST_ITEMS = 1200;
/** Characters of streams in memory while one follows. */
const MOST_CHARACTERS = 1 << 20;
const CHANGES_DETAIL =
  /^(session|participant|context|secret|gate|fork|merge|interrupt)\.|^tool\.(propose|approve|reject|execute|result)$|^prompt\.submit$/;

/** Where sessions ended when they were looked at last: each moment of a replay is a room of its own. */
const ends = new Map<string, number>();

export class SessionRoom {
  detail = $state.raw<SessionDetail | null>(null);
  rows = $state.raw<Row[]>([]);
  /** Older rows were put in front with the last change of `rows`. */
  isShift = $state(false);
  isLoading = $state(true);
  hasOlder = $state(false);
  problem = $state("");
  working = $state.raw<string[]>([]);
  tokens = $state(0);
  /** What is about to be said; loaded once the session is open, and never for a replay. */
  draft = $state.raw<RoomDraft | null>(null);
  lastSeq = $state(0);
  announcement = $state("");
  gatesInView = $state.raw<ReadonlySet<string>>(new Set());
  readonly facts = new Facts();
  readonly socket: SessionSocket;
  #floor = 0;
  #isLoadingOlder = false;
  #detailTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #work = new Work();
  #isFollowing = true;
  #stopped = false;

  constructor(
    readonly id: string,
    readonly fork: string | null,
    readonly until: number | null,
  ) {
    if (until !== null) this.lastSeq = Math.max(until, ends.get(id) ?? 0);
    this.socket = new SessionSocket(id, {
      received: (messages) => this.received(messages),
      // A draft that was written before the session was joined, or while the server was away.
      attached: () => this.draft?.later(),
      closed: () => void this.#readDetail(),
    });
  }

  get me(): SessionMember | undefined {
    return this.detail?.members.find((member) => member.id === account.current?.id);
  }

  get agents(): SessionMember[] {
    return this.detail?.members.filter((member) => member.type === "agent") ?? [];
  }

  get isEnded(): boolean {
    return this.detail !== null && !["active", "paused"].includes(this.detail.status);
  }

  get isReplay(): boolean {
    return this.until !== null;
  }

  readonly #names = $derived(shownNames(this.detail?.members ?? []));

  nameOf(id: string): string {
    return this.#names.get(id) ?? oneLine(id, 40);
  }

  kindOf(id: string): "human" | "agent" | "accord" {
    if (id === "system") return "accord";
    const known = this.detail?.members.find((member) => member.id === id);
    return known?.type === "agent" ? "agent" : "human";
  }

  readonly #cards = $derived(new Map((this.detail?.gates ?? []).map((gate) => [gate.id, gate])));

  card(gate: string): GateCard | undefined {
    return this.#cards.get(gate);
  }

  gateInView(gate: string, is: boolean): void {
    if (this.gatesInView.has(gate) === is) return;
    const seen = new Set(this.gatesInView);
    if (is) seen.add(gate);
    else seen.delete(gate);
    this.gatesInView = seen;
  }

  async open(): Promise<void> {
    try {
      this.detail = await get<SessionDetail>(`/sessions/${encodeURIComponent(this.id)}`);
      const page = await this.#readTurns(this.until === null ? 0 : this.until + 1);
      if (this.#stopped) return;
      this.#take(page);
      await this.#readForkBegin();
      if (this.until !== null) this.lastSeq = await this.#readEnd(this.until);
      this.#draw();
      if (this.until === null && !this.isEnded) {
        const { RoomDraft } = await import("./room_draft.svelte");
        if (this.#stopped) return;
        this.draft = new RoomDraft(this.id, this.fork, this.socket);
        for (const message of page.messages) this.draft.submitted(message as Envelope);
        this.socket.start(
          this.detail,
          page.last_id ? { seq: page.last, id: page.last_id } : undefined,
        );
      }
    } catch (error) {
      this.problem = error instanceof Refusal ? error.message : "The server does not answer.";
    } finally {
      this.isLoading = false;
    }
  }

  close(): void {
    this.#stopped = true;
    clearTimeout(this.#detailTimer);
    this.draft?.stop();
    this.socket.stop();
  }

  /** Whether the reader stands at the end; only then older rows may be let go. */
  following(is: boolean): void {
    this.#isFollowing = is;
  }

  async loadOlder(): Promise<void> {
    if (!this.hasOlder || this.#isLoadingOlder) return;
    this.#isLoadingOlder = true;
    try {
      this.#take(await this.#readTurns(this.#floor));
      this.#draw(true);
    } catch {
      // The next scroll asks again.
    } finally {
      this.#isLoadingOlder = false;
    }
  }

  #readTurns(before: number, limit = TURNS_AT_ONCE): Promise<TurnsPage> {
    return get<TurnsPage>(
      `/sessions/${encodeURIComponent(this.id)}/turns?before=${before}&limit=${limit}`,
    );
  }

  /** How far a replay can go. */
  async #readEnd(until: number): Promise<number> {
    const known = ends.get(this.id) ?? 0;
    const end = known > until ? known : (await this.#readTurns(0, 1)).last;
    ends.set(this.id, end);
    return Math.max(end, until);
  }

  #take(page: TurnsPage): void {
    for (const message of page.messages) this.facts.add(message as Envelope);
    this.#floor = page.has_more ? page.first : 0;
    this.hasOlder = page.has_more;
  }

  received(messages: ReceivedEnvelope[]): void {
    let changesDetail = false;
    for (const message of messages as Envelope[]) {
      this.facts.add(message);
      if (CHANGES_DETAIL.test(message.type)) changesDetail = true;
      if (message.type === "prompt.draft") this.draft?.heard(message);
      else if (message.type === "prompt.submit") this.draft?.submitted(message);
      else if (message.type === "presence.update") this.#heardPresence(message);
      else if (message.type === "participant.announce") this.draft?.joined(message.sender);
      this.#announce(message);
    }
    if (changesDetail) this.#detailLater();
    if (
      this.#isFollowing &&
      (this.facts.items.size > MOST_ITEMS || this.facts.characters > MOST_CHARACTERS)
    )
      this.#letGo();
    this.#draw();
  }

  #letGo(): void {
    const seqs = [...this.facts.items.values()].map((item) => item.seq).sort((a, b) => b - a);
    this.#floor = seqs[seqs.length >> 1] ?? 0;
    this.facts.forget(this.#floor);
    this.hasOlder = true;
  }

  #draw(isShift = false): void {
    const { facts } = this;
    const changed = [...facts.changed];
    facts.changed.clear();
    const onlyGrew = !facts.grown && !isShift;
    if (!onlyGrew) {
      facts.grown = false;
      const options = {
        view: viewOf(this.fork, this.detail?.forks ?? [], facts.forkBegins),
        floor: this.#floor,
        until: this.until ?? Infinity,
      };
      this.isShift = isShift;
      this.rows = keepUnchanged(this.rows, layout(facts, options));
    } else if (changed.length) {
      const touched = new Set(changed);
      this.isShift = false;
      this.rows = this.rows.map((row) => {
        const mine =
          row.kind === "steps"
            ? row.tools.some((tool) => touched.has(tool.id))
            : touched.has(row.key);
        return mine ? { ...row, revision: row.revision + 1 } : row;
      });
    }
    this.lastSeq = Math.max(facts.lastSeq, this.lastSeq);
    if (!this.isReplay) ends.set(this.id, this.lastSeq);
    this.#work.update(facts, onlyGrew ? changed : null);
    if (this.#work.names.join() !== this.working.join()) this.working = this.#work.names;
    if (this.#work.tokens !== this.tokens) this.tokens = this.#work.tokens;
  }

  /** A fork begins somewhere in its parent, which may be far behind the newest turns. */
  async #readForkBegin(): Promise<void> {
    if (this.fork === null) return;
    for (let page = 0; page < MOST_PAGES_AT_FIRST; page++) {
      if (!this.hasOlder || this.facts.forkBegins.has(this.fork)) return;
      this.#take(await this.#readTurns(this.#floor));
    }
  }

  /** One sentence for readers when something of weight happened; streams are not read letter by letter. */
  #announce(message: Envelope): void {
    if (message.type === "response.end")
      this.announcement = `${this.nameOf(message.sender)} finished.`;
    if (message.type === "gate.request") this.announcement = "A gate waits.";
  }

  #detailLater(): void {
    clearTimeout(this.#detailTimer);
    this.#detailTimer = setTimeout(() => void this.#readDetail(), DETAIL_AFTER_MS);
  }

  async #readDetail(): Promise<void> {
    try {
      this.detail = await get<SessionDetail>(`/sessions/${encodeURIComponent(this.id)}`);
    } catch {
      // The connection's own banner says that the server is away.
    }
  }

  #heardPresence(message: Envelope): void {
    const fields = fieldsOf(message.payload);
    const who = textOf(fields.participant);
    if (!this.detail) return;
    const members = this.detail.members.map((member) =>
      member.id === who
        ? { ...member, presence: fields.status as SessionMember["presence"] }
        : member,
    );
    this.detail = { ...this.detail, members };
  }

  #inFork(): { fork?: string } {
    return this.fork ? { fork: this.fork } : {};
  }

  // What this person says

  /** Acts at once, because stopping is the safe direction. */
  async stop(
    target: string | null,
    urgency: "pause" | "stop" | "emergency" = "stop",
  ): Promise<void> {
    await this.socket.send("interrupt.raise", {
      urgency,
      message: "Stopped from the page",
      ...(target ? { target } : {}),
    });
  }

  async takeBack(proposal: string): Promise<void> {
    const payload = {
      tool_proposal: proposal,
      rejector: account.current?.id ?? "",
      reason: "Taken back",
    };
    await this.socket.send("tool.reject", payload, this.#inFork());
  }

  async share(key: string, content: string): Promise<void> {
    await this.socket.send("context.add", { key, content_type: "text", content }, this.#inFork());
  }

  async removeContext(key: string): Promise<void> {
    await this.socket.send(
      "context.remove",
      { key, reason: "Removed from the page" },
      this.#inFork(),
    );
  }

  /** A pointer to a secret, for some; it is never on the record. */
  async shareSecret(key: string, pointer: string, scope: string[], minutes: number): Promise<void> {
    const until = minutes ? new Date(Date.now() + minutes * 60_000).toISOString() : null;
    await this.socket.send("secret.share", {
      key,
      scope,
      value_ref: pointer,
      ...(until ? { expires_at: until } : {}),
    });
  }

  async revokeSecret(key: string): Promise<void> {
    await this.socket.send("secret.revoke", { key, reason: "Revoked from the page" });
  }

  /** Anyone who may approve ends a standing grant. */
  async endGrant(grant: string): Promise<void> {
    const path = `/sessions/${encodeURIComponent(this.id)}/standing-grants/${encodeURIComponent(grant)}`;
    await request("DELETE", `${path}?reason=${encodeURIComponent("Ended from the page")}`);
    await this.#readDetail();
  }

  async configure(changes: Record<string, unknown>, reason: string): Promise<void> {
    await this.socket.send("session.config_update", { changes, reason });
  }

  async changeRoles(
    member: SessionMember,
    roles: SessionMember["roles"],
    reason: string,
  ): Promise<void> {
    const payload = {
      participant: member.id,
      old_roles: member.roles,
      new_roles: roles,
      changed_by: account.current?.id ?? "",
      reason,
    };
    await this.socket.send("participant.role_change", payload);
  }
}
