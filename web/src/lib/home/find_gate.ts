import { get, Refusal } from "../server/http";
import type { GateCard, SessionDetail, SessionList } from "../server/types";

export type FoundGate = { gate: GateCard } | { missing: true };

/** A gate that is not this person's to vote on: it is looked for in the sessions they are in. */
export async function findGate(id: string): Promise<FoundGate> {
  const { sessions } = await get<SessionList>("/sessions?limit=1000");
  for (const session of sessions.filter((each) => each.open_gates > 0)) {
    const gate = (await detailOf(session.id))?.gates.find((each) => each.id === id);
    if (gate) return { gate };
  }
  return { missing: true };
}

async function detailOf(session: string): Promise<SessionDetail | undefined> {
  try {
    return await get<SessionDetail>(`/sessions/${encodeURIComponent(session)}`);
  } catch (error) {
    if (error instanceof Refusal) return undefined;
    throw error;
  }
}
