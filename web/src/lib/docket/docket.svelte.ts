/** The decisions on the shelves of the person's sessions, as the server ruled on them last. */

import { isLive } from "../server/home.svelte";
import { get, Refusal } from "../server/http";
import { problemOf } from "../server/problem";
import type { ContextItemDetail, SessionDetail, SessionList } from "../server/types";
import { type Convergence, type Item, itemsOf, measuresOf, type Ruling } from "./snapshot";

/** How often a page that is in front asks again. */
const POLL_MS = 10_000;
/** The list looks into so many of the newest sessions; any other is reached by its address. */
const MOST_SESSIONS = 40;
const SNAPSHOT = /^decision:([A-Za-z0-9_-]{1,64})#snapshot$/;

export interface BatchPlace {
  session: string;
  sessionName: string;
  fork: string | null;
  batch: string;
}

/** One independent judgement: whose it is, and what the rules made of it. */
export interface Judge {
  host: string;
  by: string;
  items: Map<string, Item>;
}

export interface Docket extends BatchPlace {
  detail: SessionDetail;
  sha256: string;
  guards: string[];
  items: Item[];
  judges: Judge[];
  agreement: Map<string, Convergence["items"][number]>;
  measures: ReturnType<typeof measuresOf>;
}

export interface Wanted {
  session: string;
  batch: string;
  fork: string;
}

export class Dockets {
  places = $state.raw<BatchPlace[]>([]);
  docket = $state.raw<Docket>();
  isLoaded = $state(false);
  problem = $state("");
  #wanted: Wanted = { session: "", batch: "", fork: "" };

  start(wanted: Wanted): () => void {
    this.#wanted = wanted;
    void this.#begin();
    const timer = setInterval(() => {
      if (!document.hidden) void this.read();
    }, POLL_MS);
    return () => clearInterval(timer);
  }

  async #begin(): Promise<void> {
    await this.read();
    if (!this.places.length) await this.#list();
    if (!this.docket) await this.read();
    this.isLoaded = true;
  }

  /** Which batches there are; one session after the other, so that a phone is not kept busy. */
  async #list(): Promise<void> {
    const found: BatchPlace[] = [];
    try {
      const { sessions } = await get<SessionList>("/sessions?limit=200");
      for (const { id } of sessions.filter(isLive).slice(0, MOST_SESSIONS))
        found.push(...placesIn(await detailOf(id)));
    } catch (error) {
      this.problem = problemOf(error);
    }
    this.places = found;
  }

  async read(): Promise<void> {
    const wanted = this.#wanted;
    const chosen = wanted.batch ? { ...wanted, fork: wanted.fork || null } : this.places[0];
    if (!chosen) return;
    try {
      const docket = await docketOf(chosen);
      if (wanted !== this.#wanted) return;
      this.docket = docket;
      this.problem = "";
    } catch (error) {
      if (wanted === this.#wanted) this.problem = problemOf(error);
    }
  }
}

function placesIn(detail: SessionDetail): BatchPlace[] {
  return detail.context.flatMap(({ key, fork, author }) => {
    const batch = author === "system" ? SNAPSHOT.exec(key)?.[1] : undefined;
    return batch ? [{ session: detail.id, sessionName: detail.name, fork, batch }] : [];
  });
}

function detailOf(session: string): Promise<SessionDetail> {
  return get<SessionDetail>(`/sessions/${encodeURIComponent(session)}`);
}

/** What the server itself put under a key; nothing if it is not there, or not the server's. */
async function contentOf<T>(place: Place, key: string): Promise<T | undefined> {
  const query = `key=${encodeURIComponent(key)}&fork=${encodeURIComponent(place.fork ?? "")}`;
  const path = `/sessions/${encodeURIComponent(place.session)}/context?${query}`;
  try {
    const item = await get<ContextItemDetail>(path);
    return item.author === "system" ? (item.content as T) : undefined;
  } catch (error) {
    if (error instanceof Refusal && error.status === 404) return undefined;
    throw error;
  }
}

type Place = Pick<BatchPlace, "session" | "fork" | "batch">;

async function docketOf(place: Place): Promise<Docket> {
  const own = `decision:${place.batch}`;
  const [detail, ruling, convergence] = await Promise.all([
    detailOf(place.session),
    contentOf<Ruling>(place, `${own}#snapshot`),
    contentOf<Convergence>(place, `${own}#convergence`),
  ]);
  const items = ruling ? itemsOf(ruling) : [];
  const shelf = detail.context.filter((item) => (item.fork ?? null) === place.fork);
  const judges: Judge[] = [];
  for (const host of convergence?.hosts ?? []) {
    const judged = host === own ? ruling : await contentOf<Ruling>(place, `${host}#snapshot`);
    if (!judged) continue;
    const by = shelf.find((item) => item.key === host)?.author ?? host.slice(own.length + 1);
    judges.push({ host, by, items: new Map(itemsOf(judged).map((item) => [item.id, item])) });
  }
  return {
    ...place,
    sessionName: detail.name,
    detail,
    sha256: ruling?.sha256 ?? "",
    guards: ruling?.guards ?? [],
    items,
    judges,
    agreement: new Map((convergence?.items ?? []).map((row) => [row.item, row])),
    measures: measuresOf(convergence?.table ?? ""),
  };
}
