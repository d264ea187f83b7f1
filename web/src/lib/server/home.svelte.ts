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

/** What concerns the person in all sessions; always what the server said last. */
class HomeStore {
  home = $state.raw<Home>(EMPTY_HOME);
  sessions = $state.raw<SessionSummary[]>([]);
  isLoaded = $state(false);
  readonly connection = new Connection(() => this.#open());
  #events: EventSource | undefined;
  #reading = false;
  #readAgain = false;

  start(): void {
    if (!this.#events) this.#open();
  }

  stop(): void {
    this.#events?.close();
    this.#events = undefined;
    this.connection.stop();
    this.home = EMPTY_HOME;
    this.sessions = [];
    this.isLoaded = false;
  }

  /** A gate that waits for this person. */
  gate(id: string): Home["gates"][number] | undefined {
    return this.home.gates.find((gate) => gate.id === id);
  }

  #open(): void {
    this.#events?.close();
    const events = new EventSource(addressOf("/home/events"));
    this.#events = events;
    this.#on<Home>(events, "home", (home) => {
      this.home = home;
      this.isLoaded = true;
      void this.readSessions();
    });
    this.#on<SessionHome>(events, "session", (part) => {
      this.home = withSession(this.home, part);
      void this.readSessions();
    });
    this.#on<ThreadHome>(events, "thread", (part) => (this.home = withThread(this.home, part)));
    events.onerror = () => {
      if (this.#events !== events) return;
      events.close();
      this.connection.lost();
      void this.#whyLost();
    };
  }

  #on<T>(events: EventSource, type: string, take: (value: T) => void): void {
    events.addEventListener(type, (event) => {
      if (this.#events !== events) return;
      this.connection.heard();
      take(JSON.parse((event as MessageEvent<string>).data));
    });
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
