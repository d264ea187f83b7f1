/** The pacts of the person's sessions, as the server read them last. */

import { get } from "../server/http";
import { problemOf } from "../server/problem";
import type { BoardSeat, BoardTask, PactBoard, PactEntry, PactList } from "../server/types";

/** How often a page that is in front asks again. */
const POLL_MS = 10_000;

export class Boards {
  pacts = $state.raw<PactEntry[]>([]);
  board = $state.raw<PactBoard>();
  isLoaded = $state(false);
  problem = $state("");
  #wanted = "";
  #timer: ReturnType<typeof setInterval> | undefined;

  start(repo: string): () => void {
    this.#wanted = repo;
    void this.read();
    this.#timer = setInterval(() => {
      if (!document.hidden) void this.read();
    }, POLL_MS);
    return () => clearInterval(this.#timer);
  }

  async read(): Promise<void> {
    const wanted = this.#wanted;
    try {
      const { pacts } = await get<PactList>("/pacts");
      const chosen = pacts.find((pact) => pact.repo === wanted) ?? pacts[0];
      const board = chosen && (await get<PactBoard>(`/pacts/${encodeURIComponent(chosen.repo)}`));
      if (wanted !== this.#wanted) return;
      this.pacts = pacts;
      this.board = board;
      this.problem = "";
      this.isLoaded = true;
    } catch (error) {
      this.problem = problemOf(error);
    }
  }
}

export type Column = "assigned" | "in_progress" | "awaiting_review" | "accepted";
export const COLUMNS: [Column, string][] = [
  ["assigned", "Assigned"],
  ["in_progress", "In progress"],
  ["awaiting_review", "Awaiting review"],
  ["accepted", "Accepted"],
];

/** Changes that were asked for are work in progress. */
export function columnOf(task: BoardTask): Column {
  if (task.returned || task.status === "changes_requested") return "in_progress";
  const known = COLUMNS.find(([name]) => name === task.status);
  return known ? known[0] : "assigned";
}

export const STATUS_WORDS: Record<string, string> = {
  todo: "to do",
  assigned: "assigned",
  in_progress: "in progress",
  awaiting_review: "awaiting review",
  changes_requested: "changes asked",
  accepted: "accepted",
};

export function statusWords(task: BoardTask): string {
  return task.returned ? "changes asked" : (STATUS_WORDS[task.status] ?? task.status);
}

/** What a task is called: its description, or its id if that is only the name of a file. */
export function titleOf(task: BoardTask): string {
  return !task.spec || /^[^\s]+\.\w{1,8}$/.test(task.spec) ? task.id : task.spec;
}

/** Whether this person is the next to act. */
export function waitsFor(task: BoardTask, seats: ReadonlySet<string>): boolean {
  if (task.status === "accepted") return false;
  return seats.has(
    task.status === "awaiting_review" && !task.returned ? task.reviewer : task.owner,
  );
}

export function seatsOf(board: PactBoard, member: string): ReadonlySet<string> {
  return new Set(board.seats.filter((seat) => seat.member === member).map((seat) => seat.id));
}

export function seatIn(board: PactBoard, id: string): BoardSeat {
  const known = board.seats.find((seat) => seat.id === id);
  return known ?? { id, roles: [], member: null, name: id, kind: null };
}

export function taskIn(board: PactBoard, id: string): BoardTask | undefined {
  for (const feature of board.features)
    for (const task of feature.tasks) if (task.id === id) return task;
  return undefined;
}
