"""A session as one takes part in it: everything one can say, typed, and everything one hears."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from accord.core.kernel.authority import Capability, Role
from accord.core.kernel.ballot import Quorum
from accord.core.kernel.log import Body
from accord.core.kernel.times import iso
from accord.core.room.gates import ActionType, GateRequest
from accord.core.room.grants import ToolExecute
from accord.core.room.heartbeats import HeartbeatPing
from accord.core.room.interrupts import InterruptAcknowledge, InterruptRaise
from accord.core.room.lifecycle import SessionConfigUpdate, SessionEnd
from accord.core.room.members import SessionLeave
from accord.core.room.participants import ParticipantAnnounce
from accord.core.room.presence import PresenceUpdate
from accord.core.room.prompts import PromptAmend, PromptConfig, PromptSubmit
from accord.core.room.roles import ParticipantRoleChange
from accord.core.room.state import Category, ContentRef, Presence, Risk, Urgency
from accord.core.room.tools import ToolApprove, ToolOutput, ToolPropose, ToolResult
from accord.core.room.votes import GateApprove, GateReject
from accord.core.room.waiting import ToolReject

from .branching import Branching
from .drafting import Draft
from .hub import now
from .identity import Identity
from .outbox import Accepted
from .response import Response, Shown, Thinking
from .sharing import Sharing


class Session(Sharing, Branching):
    """Taking part in one session. Each method returns once the server has accepted."""

    # Prompts and answers

    async def prompt(
        self,
        content: str,
        agent: str,
        *,
        contributors: Iterable[str] = (),
        context_keys: Iterable[str] = (),
        config: PromptConfig | None = None,
    ) -> str:
        """Ask an agent; returns the prompt's id."""
        body = PromptSubmit(
            content=content,
            target_agent=agent,
            contributors=tuple(contributors) or (self.me,),
            context_keys=tuple(context_keys),
            config=config,
        )
        return (await self.send(body)).id

    def draft(
        self, agent: str | None = None, *, contributors: Iterable[str] = (), id: str | None = None
    ) -> Draft:
        """Begin a prompt that everybody sees grow, or with `id` go on with somebody's."""
        return Draft(self.send, (self.me, *contributors), agent, id)

    async def amend(self, prompt: str, amendment: str, reason: str = "") -> Accepted:
        """Change what was asked, until it is answered."""
        return await self.send(PromptAmend(prompt, amendment, reason), prompt)

    def think(self, prompt: str, *, visible_to: Shown = "all") -> Thinking:
        """Think aloud about a prompt, before all, those who may approve, or those named."""
        return Thinking(self.say, self.me, prompt, visible_to)

    def respond(self, prompt: str) -> Response:
        """Answer a prompt, bit by bit."""
        return Response(self.say, self.me, prompt)

    # Stopping

    async def interrupt(
        self,
        urgency: Urgency | Literal["pause", "stop", "emergency"],
        message: str,
        target: str | None = None,
        *,
        inject: str | None = None,
        inject_ref: ContentRef | None = None,
    ) -> str:
        """Make one agent pause or stop, or all of them; returns the interrupt's id.

        The server holds a stopped agent to it until somebody prompts it again.
        """
        body = InterruptRaise(Urgency(urgency), message, target, inject, inject_ref)
        return (await self.send(body)).id

    async def acknowledge(
        self,
        interrupt: str,
        action_taken: Literal["paused", "stopped", "acknowledged", "ignored"],
        ignore_reason: str | None = None,
    ) -> Accepted:
        """Say what one did about an interrupt; only a pause may be ignored, with a reason."""
        body = InterruptAcknowledge(interrupt, self.me, action_taken, ignore_reason)
        return await self.send(body, interrupt)

    # Tools

    async def propose(  # noqa: PLR0913 - a proposal says this much
        self,
        tool_name: str,
        arguments: Mapping[str, Any],
        *,
        category: Category | str,
        risk: Risk | str = Risk.LOW,
        description: str = "",
        requires_approval: bool = False,
        suggested_approvers: Iterable[str] = (),
        prompt: str | None = None,
    ) -> str:
        """Say what one wants to run; returns the proposal's id."""
        body = ToolPropose(
            tool_name=tool_name,
            arguments=dict(arguments),
            agent=self.me,
            risk_level=Risk(risk),
            description=description,
            requires_approval=requires_approval,
            category=Category(category),
            suggested_approvers=tuple(suggested_approvers) or None,
        )
        return (await self.send(body, prompt)).id

    async def decision(self, proposal: str) -> ToolExecute:
        """The grant to run a proposal, as soon as there is one; raises Rejected."""
        return await self._attendance.decisions.of(proposal)

    async def execute(self, granted: ToolExecute) -> Accepted:
        """Confirm that one begins; a grant is used once."""
        return await self.send(granted, granted.tool_proposal)

    async def output(
        self,
        granted: ToolExecute,
        text: str,
        stream: Literal["stdout", "stderr"] = "stdout",
        *,
        complete: bool = False,
    ) -> Accepted:
        """What the tool prints."""
        body = ToolOutput(
            tool_proposal=granted.tool_proposal,
            stream=stream,
            text=text,
            complete=complete,
            grant=granted.grant.id if granted.grant else None,
        )
        return await self.send(body, granted.tool_proposal)

    async def result(
        self,
        granted: ToolExecute,
        *,
        success: bool,
        duration_ms: int,
        result: Any = None,
        error: str | None = None,
    ) -> Accepted:
        """How the tool ended."""
        body = ToolResult(
            tool_proposal=granted.tool_proposal,
            success=success,
            duration_ms=duration_ms,
            result=result,
            error=error,
            grant=granted.grant.id if granted.grant else None,
        )
        return await self.send(body, granted.tool_proposal)

    # Gates

    async def approve(self, id: str, comment: str | None = None) -> Accepted:
        """Vote yes on a gate, or on the gate of a proposal."""
        if self._attendance.decisions.is_proposal(id):
            vote: Body = ToolApprove(tool_proposal=id, approver=self.me, comment=comment)
        else:
            vote = GateApprove(gate=id, approver=self.me, comment=comment)
        return await self.send(vote, id)

    async def reject(self, id: str, reason: str, suggestion: str | None = None) -> Accepted:
        """Vote no on a gate or a proposal, or withdraw one's own."""
        if self._attendance.decisions.is_proposal(id):
            vote: Body = ToolReject(
                tool_proposal=id, rejector=self.me, reason=reason, suggestion=suggestion
            )
        else:
            vote = GateReject(gate=id, rejector=self.me, reason=reason)
        return await self.send(vote, id)

    async def request_gate(
        self,
        action: str,
        action_type: ActionType,
        quorum: Quorum,
        *,
        message: str = "",
        timeout_seconds: int = 300,
    ) -> str:
        """Ask for approval of something one has said; returns the gate's id."""
        body = GateRequest(
            action_type=action_type,
            action_ref=action,
            quorum=quorum,
            timeout_seconds=timeout_seconds,
            message=message,
        )
        return (await self.send(body, action)).id

    # The session and its members

    async def announce(
        self,
        name: str,
        *,
        roles: Iterable[Role | str] = (),
        capabilities: Iterable[Capability | str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Accepted:
        """Tell the room one's name and metadata; rights stay as they were granted."""
        return await self.send(
            announcement(self._who, name, roles, capabilities, metadata, usual_roles=())
        )

    async def ping(self) -> float:
        """Ask for a sign of life; returns after how many seconds the server answered.

        Its own pings are answered without being asked.
        """
        began = time.monotonic()
        await self.send(HeartbeatPing())
        return time.monotonic() - began

    async def presence(self, status: Presence | str) -> Accepted:
        """Whether one is there."""
        at = iso(now())
        return await self.send(PresenceUpdate(self.me, Presence(status), last_active=at))

    async def change_roles(
        self,
        participant: str,
        old_roles: Iterable[Role | str],
        new_roles: Iterable[Role | str],
        reason: str | None = None,
    ) -> Accepted:
        """Give a member other roles; `old_roles` must be what they hold."""
        body = ParticipantRoleChange(
            participant=participant,
            old_roles=tuple(Role(role) for role in old_roles),
            new_roles=tuple(Role(role) for role in new_roles),
            changed_by=self.me,
            reason=reason,
        )
        return await self.send(body)

    async def configure(self, reason: str, **changes: Any) -> Accepted:
        """Change some of the session's rules, all of these or none."""
        return await self.send(SessionConfigUpdate(changes=changes, reason=reason))

    async def leave(self, reason: str | None = None) -> Accepted:
        """Go; whatever one had open is closed."""
        return await self.send(SessionLeave(reason=reason))

    async def end(
        self,
        reason: str,
        final_state: Literal["completed", "aborted", "timeout"] = "completed",
    ) -> Accepted:
        """Close the session for everybody, for good."""
        return await self.send(SessionEnd(reason=reason, final_state=final_state))


def announcement(
    who: Identity,
    name: str | None,
    roles: Iterable[Role | str] | None,
    capabilities: Iterable[Capability | str] | None,
    metadata: Mapping[str, Any] | None,
    usual_roles: Iterable[Role] = (),
) -> ParticipantAnnounce:
    """Who one is and what one asks for."""
    asked = usual_roles if roles is None else roles
    return ParticipantAnnounce(
        id=who.id,
        name=name or who.name,
        kind=who.kind,
        roles=tuple(Role(role) for role in asked),
        transport="websocket",
        capabilities=tuple(Capability(each) for each in capabilities or ()) or None,
        metadata=dict(metadata) if metadata else None,
    )
