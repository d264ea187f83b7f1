import type { GateCard } from "./server/types";

type Waiting = Pick<GateCard, "id" | "created_at" | "expires_at">;

/** A gate that still waits is told again at half of its time and one minute before its end. */
const LAST_MS = 60_000;

/** When a gate is told again, in order; nothing for one without an end. */
export function remindersOf(gate: Waiting): number[] {
  if (!gate.expires_at) return [];
  const [begin, end] = [Date.parse(gate.created_at), Date.parse(gate.expires_at)];
  const half = begin + (end - begin) / 2;
  const last = end - LAST_MS;
  return last > half ? [half, last] : [half];
}

export interface Reminders {
  /** Gates whose time has come since `before`. */
  due: string[];
  /** When to look again; nothing if no gate has anything left to tell. */
  next: number | undefined;
}

/** What is due between two moments; gates that no longer wait are not in `waiting`, so they are silent. */
export function remindersBetween(
  waiting: readonly Waiting[],
  before: number,
  now: number,
): Reminders {
  const due: string[] = [];
  let next: number | undefined;
  for (const gate of waiting)
    for (const at of remindersOf(gate)) {
      if (at > now) next = Math.min(next ?? at, at);
      else if (at > before && !due.includes(gate.id)) due.push(gate.id);
    }
  return { due, next };
}
