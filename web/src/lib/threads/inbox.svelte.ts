import { request } from "../server/http";
import { problemOf } from "../server/problem";
import type {
  AckRead,
  AgentDetail,
  AgentList,
  CreatedThread,
  CreateThread,
  ThreadDetail,
  ThreadList,
} from "../server/types";

/** A method of `POST /v1`. */
export function call<Result>(method: string, body: object = {}): Promise<Result> {
  return request<Result>("POST", `/v1/${method}`, { body });
}

/** How many threads a list shows; older ones are found on the command line. */
const MOST = 200;
/** Changes within this time lead to one reading. */
const COALESCE_MS = 150;

/** The threads that the person may read, most recently changed first. */
class Inbox {
  threads = $state.raw<ThreadDetail[]>([]);
  agents = $state.raw<AgentDetail[]>([]);
  hasMore = $state(false);
  isLoaded = $state(false);
  problem = $state("");
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Read again soon; call it whenever something may have changed. */
  changed(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.read(), this.isLoaded ? COALESCE_MS : 0);
  }

  async read(): Promise<void> {
    try {
      const [list, agents] = await Promise.all([
        call<ThreadList>("list_threads", { limit: MOST }),
        call<AgentList>("list_agents"),
      ]);
      this.threads = list.threads;
      this.hasMore = list.has_more;
      this.agents = agents.agents;
      this.problem = "";
      this.isLoaded = true;
    } catch (error) {
      this.problem = problemOf(error);
    }
  }

  /** Everything up to there is done; the server never goes back. */
  async acknowledge(thread: string, upTo: number): Promise<void> {
    const body: AckRead = { thread_id: thread, last_read_seq: upTo };
    await call("ack_read", body);
    await this.read();
  }

  async create(body: CreateThread): Promise<string> {
    const made = await call<CreatedThread>("create_thread", body);
    await this.read();
    return made.thread_id;
  }
}

export const inbox = new Inbox();
