/** What a member may do in a session, as the server's table of roles says. */

import type { Capability, Role, SessionMember } from "../server/types";

type Right = Exclude<Capability, "supervise">;
const ALL: Right[] = [
  "prompt",
  "approve",
  "interrupt",
  "fork",
  "add_context",
  "manage_participants",
  "end_session",
];
const OF_ROLE: Record<Role, Right[]> = {
  driver: ["prompt", "interrupt", "fork", "add_context"],
  navigator: ["approve", "interrupt", "fork", "add_context"],
  adversary: ["prompt", "approve", "interrupt", "fork", "add_context"],
  observer: [],
  approver: ["approve", "interrupt", "add_context"],
  admin: ALL,
};

/** The server decides; this only leaves out what it would refuse. */
export function may(member: SessionMember | undefined, right: Right): boolean {
  if (!member) return false;
  return (
    member.capabilities.includes(right) ||
    member.roles.some((role) => OF_ROLE[role].includes(right))
  );
}

export function isObserver(member: SessionMember | undefined): boolean {
  return !member || ALL.every((right) => !may(member, right));
}
