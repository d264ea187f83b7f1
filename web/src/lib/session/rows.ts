/** Lays items out in rows: turns, heads of speakers, groups of tool steps, gates that wait. */

import type { Facts } from "./facts";
import type { Amendment, Happening, Item, OtherGate, Prompt, Stream, Tool } from "./items";

interface RowBase {
  key: string;
  seq: number;
  at: string;
  by: string;
  /** Whether the speaker's name and mark stand above it. */
  head: boolean;
  revision: number;
}

export type Row =
  | (RowBase & { kind: "turn"; number: number; day: boolean })
  | (RowBase & { kind: "prompt"; item: Prompt })
  | (RowBase & { kind: "amendment"; item: Amendment })
  | (RowBase & { kind: "answer" | "thinking"; item: Stream })
  | (RowBase & { kind: "steps"; tools: Tool[] })
  | (RowBase & {
      kind: "gate";
      tool: Tool | null;
      gate: string;
      options: Tool[];
      item: Tool | OtherGate;
    })
  | (RowBase & { kind: "event"; item: Happening });

/** Which forks are shown, and up to which `seq` of each: a fork shows what it grew from. */
export type ForkView = ReadonlyMap<string | null, number>;
export const TRUNK: ForkView = new Map([[null, Infinity]]);

export interface LayoutOptions {
  view?: ForkView;
  /** History is complete from this `seq`; older items are only here because something refers to them. */
  floor?: number;
  /** Nothing behind this `seq`: replay. */
  until?: number;
  /** How many turns came before the first one that is loaded. */
  turnsBefore?: number;
}

export function sortedItems(facts: Facts, options: LayoutOptions = {}): Item[] {
  const { view = TRUNK, floor = 0, until = Infinity } = options;
  const shown = [...facts.items.values()].filter((item) => {
    if (item.seq > until || item.seq > (view.get(item.fork) ?? -1)) return false;
    return item.seq >= floor || (item.kind === "tool" && facts.state(item) === "waits");
  });
  return shown.sort((a, b) => a.seq - b.seq || (a.id < b.id ? -1 : 1));
}

export function layout(facts: Facts, options: LayoutOptions = {}): Row[] {
  const rows: Row[] = [];
  const floor = options.floor ?? 0;
  const [present, gone] = [new Set<string>(), new Set<string>()];
  let turn = options.turnsBefore ?? 0;
  let speaker = "";
  let group: (Row & { kind: "steps" }) | null = null;
  const push = (row: Row) => {
    rows.push(row);
    speaker = row.kind === "event" || row.kind === "turn" ? "" : row.by;
    group = row.kind === "steps" ? row : null;
  };
  for (const item of sortedItems(facts, options)) {
    const common = {
      key: item.id,
      seq: item.seq,
      at: item.at,
      by: item.by,
      revision: item.revision,
    };
    const head = speaker !== item.by;
    switch (item.kind) {
      case "prompt":
        turn++;
        push({
          ...common,
          key: `turn-${item.id}`,
          head: false,
          kind: "turn",
          number: turn,
          day: false,
        });
        push({ ...common, head: true, kind: "prompt", item });
        break;
      case "amendment":
        push({ ...common, head: true, kind: "amendment", item });
        break;
      case "event": {
        const isReturn =
          item.presence === "in" && (floor > 0 ? !gone.has(item.by) : present.has(item.by));
        if (item.presence === "in") present.add(item.by);
        if (item.presence === "out") present.delete(item.by);
        if (item.presence === "in") gone.delete(item.by);
        if (item.presence === "out") gone.add(item.by);
        if (!isReturn) push({ ...common, head: false, kind: "event", item });
        break;
      }
      case "answer":
        // An answer that only called tools has no words.
        if (
          item.ended &&
          !item.content.text.trim() &&
          item.ended !== "error" &&
          item.ended !== "interrupted"
        )
          break;
        push({ ...common, head, kind: "answer", item });
        break;
      case "thinking":
        push({ ...common, head, kind: "thinking", item });
        break;
      case "gate":
        push({
          ...common,
          head: false,
          kind: "gate",
          tool: null,
          gate: item.gate.id,
          options: [],
          item,
        });
        break;
      case "tool": {
        const gate = facts.gateOf(item.id);
        const waits = gate !== null && facts.isOpen(gate);
        const first = item.optionOf ? facts.items.get(item.optionOf) : undefined;
        if (waits && first?.kind === "tool" && facts.state(first) === "waits") break; // shown as an option of the first
        if (waits) {
          const options = optionsOf(facts, item);
          const revision = options.reduce((sum, option) => sum + option.revision, item.revision);
          push({
            ...common,
            revision,
            head,
            kind: "gate",
            tool: item,
            gate: gate.id,
            options,
            item,
          });
        } else if (group && (group as Row).by === item.by) {
          const steps = group as Row & { kind: "steps" };
          steps.tools.push(item);
          steps.revision += item.revision + 1;
        } else push({ ...common, head, kind: "steps", tools: [item] });
      }
    }
  }
  return rows;
}

function optionsOf(facts: Facts, first: Tool): Tool[] {
  const others = [...facts.items.values()].filter(
    (item): item is Tool =>
      item.kind === "tool" && item.optionOf === first.id && facts.state(item) === "waits",
  );
  return others.length ? [first, ...others.sort((a, b) => a.seq - b.seq)] : [];
}

/** The rows with the objects of before where nothing changed, so that only what changed is drawn. */
export function keepUnchanged(before: readonly Row[], after: Row[]): Row[] {
  const known = new Map(before.map((row) => [row.key, row]));
  return after.map((row) => {
    const old = known.get(row.key);
    const same =
      old &&
      old.kind === row.kind &&
      old.revision === row.revision &&
      old.head === row.head &&
      old.seq === row.seq;
    if (!same) return row;
    if (row.kind === "steps" && (old as typeof row).tools.length !== row.tools.length) return row;
    if (row.kind === "turn" && (old as typeof row).number !== row.number) return row;
    return old;
  });
}
