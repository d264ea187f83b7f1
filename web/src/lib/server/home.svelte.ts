import { account } from "./account.svelte";
import { Connection } from "./connection.svelte";
import { addressOf, get, Refusal } from "./http";
import type {
  Home,
  HomeCounts,
  SessionHome,
  SessionList,
  SessionSummary,
  ThreadHome,
} from "./types";

const NO_COUNTS: HomeCounts = {
  gates: 0,
  awaiting_my_vote: 0,
  other_gates: 0,
  stalls: 0,
  silences: 0,
  questions: 0,
  unread_threads: 0,
};
export const EMPTY_HOME: Home = {
  gates: [],
  stalls: [],
  ended_gates: [],
  silences: [],
  questions: [],
  standing_grants: [],
  unread_threads: [],
  counts: NO_COUNTS,
  has_more: false,
};

/** A home in which one session's part is replaced by what the server says of it now. */
export function withSession(home: Home, part: SessionHome): Home {
  const others = <T extends { session: string }>(list: T[]) =>
    list.filter((each) => each.session !== part.session);
  const gates = [...others(home.gates), ...part.gates].sort(byUrgency);
  const stalls = [...others(home.stalls), ...part.stalls];
  const ended = [...others(home.ended_gates), ...part.ended_gates].sort((a, b) =>
    a.ended_at < b.ended_at ? 1 : -1,
  );
  return {
    ...home,
    gates,
    stalls,
    ended_gates: ended,
    standing_grants: [...others(home.standing_grants), ...part.standing_grants],
    counts: {
      ...home.counts,
      gates: gates.length,
      stalls: stalls.length,
      awaiting_my_vote: gates.filter((gate) => gate.may_approve && !gate.my_vote).length,
    },
  };
}

/** The gate that ends first comes first; one without an end comes last. */
function byUrgency(a: Home["gates"][number], b: Home["gates"][number]): number {
  const left = [a.expires_at ?? "9999", a.created_at, a.id].join(" ");
  const right = [b.expires_at ?? "9999", b.created_at, b.id].join(" ");
  return left < right ? -1 : 1;
}

export function withThread(home: Home, { thread, questions }: ThreadHome): Home {
  const others = home.unread_threads.filter((each) => each.thread_id !== thread.thread_id);
  const unread = thread.unread > 0 ? [thread, ...others] : others;
  const waiting = home.questions.filter((each) => each.thread !== thread.thread_id);
  const all = [...questions, ...waiting];
  return {
    ...home,
    questions: all,
    unread_threads: unread,
    counts: { ...home.counts, questions: all.length, unread_threads: unread.length },
  };
}

/** Whether a session goes on; the status of one that ended says how. */
export function isLive(session: SessionSummary): boolean {
  return session.status === "active" || session.status === "paused";
}

interface Events {
  home: Home;
  session: SessionHome;
  thread: ThreadHome;
}
/** What one tab tells the others. */
type Told =
  | { [K in keyof Events]: { kind: K; data: Events[K] } }[keyof Events]
  | { kind: "hello" }
  | { kind: "away" };

/**
 * What concerns the person in all sessions; always what the server said last.
 *
 * Browsers allow six connections to a server, so of all tabs one reads the stream and tells the
 * others; when it is closed, another takes over.
 */
class HomeStore {
  home = $state.raw<Home>(EMPTY_HOME);
  sessions = $state.raw<SessionSummary[]>([]);
  isLoaded = $state(false);
  readonly connection = new Connection(() => this.#open());
  #events: EventSource | undefined;
  #tabs: BroadcastChannel | undefined;
  #isReader = false;
  #stopReading: () => void = () => {};
  #reading = false;
  #readAgain = false;

  start(): void {
    if (this.#tabs) return;
    const name = `accord.home.${account.current?.id ?? ""}`;
    this.#tabs = new BroadcastChannel(name);
    this.#tabs.onmessage = (event: MessageEvent<Told>) => this.#told(event.data);
    // Without encryption, addresses other than loopback have no locks: then each tab reads.
    if (!navigator.locks) {
      this.#read();
      return;
    }
    const waiting = new AbortController();
    this.#stopReading = () => waiting.abort();
    const held = () =>
      new Promise<void>((release) => {
        this.#stopReading = release;
        this.#read();
      });
    navigator.locks.request(name, { signal: waiting.signal }, held).catch(() => {});
    this.#tell({ kind: "hello" });
  }

  stop(): void {
    this.#stopReading();
    this.#isReader = false;
    this.#events?.close();
    this.#events = undefined;
    this.#tabs?.close();
    this.#tabs = undefined;
    this.connection.stop();
    this.home = EMPTY_HOME;
    this.sessions = [];
    this.isLoaded = false;
  }

  /** A gate that waits for this person. */
  gate(id: string): Home["gates"][number] | undefined {
    return this.home.gates.find((gate) => gate.id === id);
  }

  #read(): void {
    this.#isReader = true;
    this.#open();
  }

  #open(): void {
    if (!this.#isReader) {
      this.#tell({ kind: "hello" });
      return;
    }
    this.#events?.close();
    const events = new EventSource(addressOf("/home/events"));
    this.#events = events;
    for (const kind of ["home", "session", "thread"] as const) {
      events.addEventListener(kind, (event) => {
        if (this.#events !== events) return;
        const told = { kind, data: JSON.parse((event as MessageEvent<string>).data) } as Told;
        this.#take(told);
        this.#tell(told);
      });
    }
    events.onerror = () => {
      if (this.#events !== events) return;
      events.close();
      this.connection.lost();
      this.#tell({ kind: "away" });
      void this.#whyLost();
    };
  }

  #tell(told: Told): void {
    this.#tabs?.postMessage(told);
  }

  /** Another tab says something. */
  #told(told: Told): void {
    if (told.kind === "away") {
      if (!this.#isReader) this.connection.lost();
    } else if (told.kind !== "hello") {
      this.#take(told);
    } else if (this.#isReader && this.connection.state !== "connecting") {
      const isHere = this.connection.isHere;
      this.#tell(isHere ? { kind: "home", data: this.home } : { kind: "away" });
    }
  }

  #take(told: Told): void {
    this.connection.heard();
    if (told.kind === "home") {
      this.home = told.data;
      this.isLoaded = true;
    } else if (told.kind === "session") this.home = withSession(this.home, told.data);
    else if (told.kind === "thread") this.home = withThread(this.home, told.data);
    if (told.kind !== "thread") void this.readSessions();
  }

  /** An event stream does not say why it was refused, so ask who we are. */
  async #whyLost(): Promise<void> {
    try {
      await get("/sign-in");
    } catch (error) {
      if (error instanceof Refusal && error.isUnauthenticated) account.ended(error.message);
    }
  }

  /** The list of sessions; many changes in a row lead to one more reading, not to many. */
  async readSessions(): Promise<void> {
    if (this.#reading) {
      this.#readAgain = true;
      return;
    }
    this.#reading = true;
    try {
      this.sessions = (await get<SessionList>("/sessions?limit=200")).sessions;
    } catch {
      // The stream notices by itself when the server is away.
    }
    this.#reading = false;
    if (this.#readAgain) {
      this.#readAgain = false;
      await this.readSessions();
    }
  }
}

export const home = new HomeStore();
