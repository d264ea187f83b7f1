/** What the rules said of each item of a batch: from the server's ruling and the words of its snapshot. */

export interface ItemRuling {
  verdict: string;
  state: string;
  confidence: string;
  next: string;
  /** The step that may run now; empty: none. */
  allowed: string;
  why: string;
  tier?: string;
}

/** The content of `decision:<batch>#snapshot`. */
export interface Ruling {
  snapshot: string;
  sha256: string;
  items: Record<string, ItemRuling>;
  guards?: string[];
}

/** The content of `decision:<batch>#convergence`. */
export interface Convergence {
  hosts: string[];
  items: { item: string; kind: string; next_action: string; holds: boolean }[];
  table: string;
}

export interface Step {
  /** What would be done. */
  text: string;
  /** What it measures, which is its name. */
  output: string;
  timebox: string;
  stopIf: string;
}

export interface Item {
  id: string;
  title: string;
  ruling: ItemRuling;
  dependsOn: string[];
  trigger: string;
  impact: string;
  evidence: string;
  /** Whether it is over. */
  isTerminal: boolean;
  steps: Step[];
}

export interface Measures {
  verdicts: string;
  blockers: string;
  steps: string;
  confidence: string;
}

const STEP = /^S\d+: (.*?) -> (.*?)(?: \| timebox<=(\S+))?(?: \| fail_if=(.*))?$/;
const NONE = new Set(["-", "NONE", "(none)", ""]);

/** The items in the order of the queue; what a snapshot does not say of one stays empty. */
export function itemsOf(ruling: Ruling): Item[] {
  const told = sections(ruling.snapshot);
  const order = [...told.keys()].filter((id) => id in ruling.items);
  const rest = Object.keys(ruling.items).filter((id) => !told.has(id));
  return [...order, ...rest].map((id) => {
    const lines = told.get(id) ?? [];
    const field = (name: string) => fieldIn(lines, name);
    return {
      id,
      title: field("title") || id,
      ruling: ruling.items[id] as ItemRuling,
      dependsOn: listIn(field("depends_on")),
      trigger: field("trigger"),
      impact: field("impact"),
      evidence: field("best_evidence_tier"),
      isTerminal: field("terminal") === "YES",
      steps: stepsIn(lines),
    };
  });
}

/** The lines of each item. */
function sections(text: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  let lines: string[] | undefined;
  for (const line of text.split("\n")) {
    const head = /^\[ITEM id=(.+)\]$/.exec(line);
    if (head) {
      lines = [];
      found.set(head[1] as string, lines);
    } else lines?.push(line);
  }
  return found;
}

function fieldIn(lines: readonly string[], name: string): string {
  const found = lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? "";
  return NONE.has(found) ? "" : found;
}

function listIn(text: string): string[] {
  return text ? text.split(",").map((each) => each.trim()) : [];
}

function stepsIn(lines: readonly string[]): Step[] {
  const begin = lines.indexOf("[STEPS]");
  if (begin < 0) return [];
  const rest = lines.slice(begin + 1);
  const end = rest.findIndex((line) => line.startsWith("["));
  return (end < 0 ? rest : rest.slice(0, end)).flatMap((line) => {
    const [, text = "", output = "", timebox = "", stopIf = ""] = STEP.exec(line) ?? [];
    return output ? [{ text, output, timebox, stopIf }] : [];
  });
}

/** The four measures of how far judgements of an item agree, by item. */
export function measuresOf(table: string): Map<string, Measures> {
  const found = new Map<string, Measures>();
  for (const line of table.split("\n")) {
    const cells = line.split("|").map((cell) => cell.trim());
    const [, id = "", verdicts = "", blockers = "", steps = "", confidence = ""] = cells;
    if (/^[01]$/.test(verdicts)) found.set(id, { verdicts, blockers, steps, confidence });
  }
  return found;
}
