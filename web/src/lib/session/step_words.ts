/** Why a step was allowed and how it ended, in a few words. */

import { duration, list, moment } from "../text/words";
import type { Facts } from "./facts";
import type { Tool, ToolState } from "./items";

const VERBS: Record<ToolState, string> = {
  waits: "Waits",
  held: "Held",
  allowed: "Allowed",
  running: "Running",
  ran: "",
  failed: "Failed",
  rejected: "Rejected",
  expired: "Expired",
  stopped: "Stopped",
  "taken back": "Taken back",
  "ran late": "Ran late",
};

export function stepVerb(state: ToolState, done: string): string {
  return VERBS[state] || done;
}

function allowedBy(facts: Facts, tool: Tool, nameOf: (id: string) => string): string {
  const execution = facts.executions.get(tool.id);
  if (!execution) return "";
  if (!execution.approvedBy.length)
    return facts.gateOf(tool.id) ? "let through by its time limit" : "no gate needed";
  const names = list(execution.approvedBy.map(nameOf));
  return execution.standing ? `${names}'s standing grant` : `approved by ${names}`;
}

/** What stands at the right of a step. */
export function stepNote(
  facts: Facts,
  tool: Tool,
  state: ToolState,
  nameOf: (id: string) => string,
  now: number,
): string {
  const result = facts.results.get(tool.id);
  const why = allowedBy(facts, tool, nameOf);
  const rejection = facts.rejection(tool.id);
  const said = rejection
    ? `${nameOf(rejection.by)}${rejection.comment ? `: “${rejection.comment}”` : ""}`
    : "";
  switch (state) {
    case "ran":
      return [result && result.durationMs >= 1000 ? duration(result.durationMs) : "", why]
        .filter(Boolean)
        .join(", ");
    case "failed":
      return `${exitOf(result?.value)}after ${duration(result?.durationMs ?? 0)}${why ? `, ${why}` : ""}`;
    case "rejected":
    case "stopped":
      return said;
    case "taken back":
      return `by ${said}`;
    case "ran late":
      return "ran after it was taken back";
    case "expired":
      return "nobody answered, so it counts as no";
    case "held":
      return "by the rules";
    case "allowed": {
      const until = facts.executions.get(tool.id)?.grant?.expiresAt;
      return `${why}, not used yet${until ? `, until ${moment(until, now)}` : ""}`;
    }
    default:
      return why;
  }
}

function exitOf(value: unknown): string {
  const fields =
    typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  const code = fields.exit_code ?? fields.exitCode ?? fields.returncode;
  return typeof code === "number" ? `exit ${code} ` : "";
}
