import type { EndedGate, GateCard, Home } from "../server/types";

/** A gate in the list, or how it ended just now. */
export interface GateRow {
  gate: GateCard;
  ended?: EndedGate | undefined;
  isOver: boolean;
}

/** How long a row stays in its place after it was settled. */
const SHOWN_MS = 4000;

/** The next rows: what was there stays in its place; what is new comes behind while somebody reads. */
export function nextRows(
  before: readonly GateRow[],
  home: Pick<Home, "gates" | "ended_gates">,
  isRead: boolean,
): GateRow[] {
  const open = new Map(home.gates.map((gate) => [gate.id, gate]));
  const known = new Set(before.map((row) => row.gate.id));
  const kept = before.map((row): GateRow => {
    const gate = open.get(row.gate.id);
    if (gate) return { gate, isOver: false };
    const ended = row.ended ?? home.ended_gates.find((each) => each.id === row.gate.id);
    return { gate: row.gate, ended, isOver: true };
  });
  const fresh = home.gates
    .filter((gate) => !known.has(gate.id))
    .map((gate): GateRow => ({ gate, isOver: false }));
  if (isRead || kept.some((row) => row.isOver)) return [...kept, ...fresh];
  const place = new Map(home.gates.map((gate, at) => [gate.id, at]));
  const order = (row: GateRow) => place.get(row.gate.id) ?? 0;
  return [...kept, ...fresh].sort((a, b) => order(a) - order(b));
}

/** The rows of Home: they leave only when they are settled, in place, with their outcome. */
export class GateRows {
  rows = $state.raw<GateRow[]>([]);
  readonly #leaving = new Map<string, ReturnType<typeof setTimeout>>();

  update(home: Pick<Home, "gates" | "ended_gates">, isRead: boolean): void {
    this.rows = nextRows(this.rows, home, isRead);
    for (const row of this.rows) {
      if (!row.isOver || this.#leaving.has(row.gate.id)) continue;
      this.#leaving.set(
        row.gate.id,
        setTimeout(() => this.#remove(row.gate.id), SHOWN_MS),
      );
    }
  }

  stop(): void {
    for (const timer of this.#leaving.values()) clearTimeout(timer);
    this.#leaving.clear();
  }

  #remove(id: string): void {
    this.#leaving.delete(id);
    this.rows = this.rows.filter((row) => row.gate.id !== id || !row.isOver);
  }
}
