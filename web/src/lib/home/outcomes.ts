import { namesIn } from "../gate/words";
import type { EndedGate, Stall } from "../server/types";
import { oneLine } from "../text/spell";
import { list } from "../text/words";

/** How a gate ended, in one sentence: by whom and why. */
export function outcomeOf(gate: EndedGate, me: string): string {
  const nameOf = namesIn(gate, me);
  const by = list(gate.by.map(nameOf));
  const asker = nameOf(gate.initiator);
  const reason = gate.reason ? `: “${oneLine(gate.reason, 160).replace(/\.$/, "")}”` : "";
  if (gate.taken_back) return `Approved, then taken back${reason}.`;
  switch (gate.outcome) {
    case "approved":
      return by ? `Approved by ${by}.` : "Approved.";
    case "auto_approved":
      return "No answer in time, so it counts as yes, by this session's rule.";
    case "rejected":
      return by ? `Rejected by ${by}${reason}. ${asker} was told.` : `Rejected${reason}.`;
    case "timed_out":
      return "No answer in time, so it counts as no.";
    case "escalated":
      return "No answer in time; it went to others.";
    case "session_ended":
      return "The session ended before it was decided.";
  }
}

export function wentWell(gate: EndedGate): boolean {
  return (gate.outcome === "approved" || gate.outcome === "auto_approved") && !gate.taken_back;
}

/** What was asked, for a list of what happened. */
export function subjectOf(gate: EndedGate, me: string): string {
  const asker = namesIn(gate, me)(gate.initiator);
  return gate.tool_name
    ? `${asker}: ${oneLine(gate.tool_name, 60)}`
    : `${asker}: ${gate.action_type}`;
}

/** Why something does not go on, and what helps. */
export function stallWords(stall: Stall, me: string): { title: string; help: string } {
  const nameOf = namesIn(stall, me);
  const who = list(stall.agents.map(nameOf));
  const tool = oneLine(stall.proposal?.tool_name ?? "", 60);
  switch (stall.kind) {
    case "proposal_held":
      return {
        title: `${tool || "A call"} of ${who} is held by the rules`,
        help: oneLine(
          `${stall.proposal?.held?.why ?? ""} ${stall.proposal?.held?.until ?? ""}`,
          200,
        ),
      };
    case "interrupt_unanswered":
      return { title: `${who} did not confirm the stop yet`, help: "It may still be running." };
    case "agent_stopped":
      return { title: `${who} is stopped`, help: "A prompt lets it go on." };
    case "agent_failed":
      return {
        title: `The last answer of ${who} ended with an error`,
        help: "A new prompt starts again.",
      };
    case "agent_away":
      return {
        title: `${who} may run ${tool || "its call"} and is not connected`,
        help: "It goes on when it comes back.",
      };
    case "session_paused":
      return { title: "Paused", help: "It waits for members who are away, by its own rule." };
  }
}
