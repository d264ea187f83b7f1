import { get } from "../server/http";
import type { GateCard, TurnsPage } from "../server/types";

/** Something that was said before a gate: a prompt, an amendment, or an answer of the agent. */
export interface Said {
  id: string;
  by: string;
  at: string;
  text: string;
  isAgent: boolean;
  isAmendment: boolean;
}

const MOST = 5;

/** The last words before the proposal, oldest first. */
export function wordsBefore(page: TurnsPage, proposal: string): Said[] {
  const said = new Map<string, Said>();
  for (const message of page.messages) {
    if (message.id === proposal) break;
    const base = { id: message.id, by: message.sender, at: message.ts };
    if (message.type === "prompt.submit") {
      said.set(message.id, {
        ...base,
        text: message.payload.content,
        isAgent: false,
        isAmendment: false,
      });
    } else if (message.type === "prompt.amend") {
      said.set(message.id, {
        ...base,
        text: message.payload.amendment,
        isAgent: false,
        isAmendment: true,
      });
    } else if (message.type === "response.chunk") {
      // Chunks of one answer are one thing that was said.
      const key = message.ref ?? message.id;
      const text = (said.get(key)?.text ?? "") + message.payload.text;
      said.set(key, { ...base, text, isAgent: true, isAmendment: false });
    }
  }
  return [...said.values()].filter((each) => each.text.trim()).slice(-MOST);
}

/** What led to a gate, as far as this person may read it. */
export async function conversationBefore(gate: GateCard): Promise<Said[]> {
  const path = `/sessions/${encodeURIComponent(gate.session)}/turns?limit=3`;
  return wordsBefore(await get<TurnsPage>(path), gate.request.action_ref);
}
