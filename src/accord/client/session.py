"""A joined session: one typed method for each message a member can send."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from accord.client.connection.outbox import AcceptedMessage
from accord.client.connection.router import now_ms
from accord.client.prompt_draft import Draft
from accord.client.response_stream import Response, Thinking, Visibility
from accord.client.session_context import ContextMethods
from accord.client.session_defaults import gate_time_metadata
from accord.client.session_forks import ForkMethods
from accord.core.kernel.ballot import Quorum
from accord.core.kernel.messages import Body
from accord.core.kernel.role_permissions import Capability, Role
from accord.core.kernel.timestamps import to_iso
from accord.core.room.approval.gates import ActionType, GateRequest
from accord.core.room.approval.grants import ToolExecute, ToolReject
from accord.core.room.approval.tool_proposals import (
    ToolApprove,
    ToolOutput,
    ToolPropose,
    ToolResult,
)
from accord.core.room.approval.votes import GateApprove, GateReject
from accord.core.room.conversation.interrupts import InterruptAcknowledge, InterruptRaise
from accord.core.room.conversation.prompts import PromptAmend, PromptConfig, PromptSubmit
from accord.core.room.membership.announcements import ParticipantAnnounce
from accord.core.room.membership.heartbeats import HeartbeatPing
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.membership.presence import PresenceUpdate
from accord.core.room.membership.role_assignment import ParticipantRoleChange
from accord.core.room.room_settings import Category
from accord.core.room.session_lifecycle import SessionConfigUpdate, SessionEnd
from accord.core.room.state import ContentRef, Presence, Risk, Urgency

from .identity import Identity


class Session(ContextMethods, ForkMethods):
    """One joined session; each method returns once the server has accepted the message."""

    # Prompts and responses

    async def prompt(
        self,
        content: str,
        agent: str,
        *,
        contributors: Iterable[str] = (),
        context_keys: Iterable[str] = (),
        config: PromptConfig | None = None,
    ) -> str:
        """Send a prompt to an agent; returns the prompt's id."""
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
        """Start a draft prompt that all members can watch; with `id`, continue an existing one."""
        return Draft(self.send, (self.me, *contributors), agent, id)

    async def amend(self, prompt: str, amendment: str, reason: str = "") -> AcceptedMessage:
        """Amend a prompt while its response is not finished."""
        return await self.send(PromptAmend(prompt, amendment, reason), prompt)

    def think(self, prompt: str, *, visible_to: Visibility = "all") -> Thinking:
        """Stream thinking about a prompt to all members, to approvers only, or to those named."""
        return Thinking(self.say, self.me, prompt, visible_to)

    def respond(self, prompt: str) -> Response:
        """Stream the response to a prompt."""
        return Response(self.say, self.me, prompt)

    # Interrupts

    async def interrupt(
        self,
        urgency: Urgency | Literal["pause", "stop", "emergency"],
        message: str,
        target: str | None = None,
        *,
        inject: str | None = None,
        inject_ref: ContentRef | None = None,
    ) -> str:
        """Make one agent, or all agents, pause or stop; returns the interrupt's id.

        The server refuses everything a stopped agent sends until a member prompts it again.
        """
        body = InterruptRaise(Urgency(urgency), message, target, inject, inject_ref)
        return (await self.send(body)).id

    async def acknowledge(
        self,
        interrupt: str,
        action_taken: Literal["paused", "stopped", "acknowledged", "ignored"],
        ignore_reason: str | None = None,
    ) -> AcceptedMessage:
        """Report the reaction to an interrupt; only a pause may be ignored, with a reason."""
        body = InterruptAcknowledge(interrupt, self.me, action_taken, ignore_reason)
        return await self.send(body, interrupt)

    # Tools

    async def propose(  # noqa: PLR0913 - the fields of a proposal
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
        metadata: Mapping[str, Any] | None = None,
    ) -> str:
        """Propose a tool call; returns the proposal's id.

        `metadata` may hold `gate_timeout_seconds`, and `option_of` for one of several options.
        """
        body = ToolPropose(
            tool_name=tool_name,
            arguments=dict(arguments),
            agent=self.me,
            risk_level=Risk(risk),
            description=description,
            requires_approval=requires_approval,
            category=Category(category),
            suggested_approvers=tuple(suggested_approvers) or None,
            metadata=dict(metadata) if metadata else None,
        )
        return (await self.send(body, prompt)).id

    async def decision(self, proposal: str) -> ToolExecute:
        """Wait for the grant to run a proposal; raises Rejected."""
        return await self._link.decisions.wait_for(proposal)

    async def execute(self, granted: ToolExecute) -> AcceptedMessage:
        """Report the start of a granted tool call; this uses up the grant."""
        return await self.send(granted, granted.tool_proposal)

    async def output(
        self,
        granted: ToolExecute,
        text: str,
        stream: Literal["stdout", "stderr"] = "stdout",
        *,
        complete: bool = False,
    ) -> AcceptedMessage:
        """Send output of a running tool."""
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
    ) -> AcceptedMessage:
        """Report how a tool call ended."""
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

    async def approve(self, id: str, comment: str | None = None) -> AcceptedMessage:
        """Vote yes on a gate, given its id or the id of the proposal it is for."""
        if self._link.decisions.is_proposal(id):
            vote: Body = ToolApprove(tool_proposal=id, approver=self.me, comment=comment)
        else:
            vote = GateApprove(gate=id, approver=self.me, comment=comment)
        return await self.send(vote, id)

    async def reject(self, id: str, reason: str, suggestion: str | None = None) -> AcceptedMessage:
        """Vote no on a gate or proposal, or withdraw one's own."""
        if self._link.decisions.is_proposal(id):
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
        """Ask for approval of a message already sent; returns the gate's id."""
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
    ) -> AcceptedMessage:
        """Announce a new name and metadata; roles and capabilities stay as granted."""
        return await self.send(
            build_announcement(
                self._identity, name, roles, capabilities, metadata, default_roles=()
            )
        )

    async def ping(self) -> float:
        """Measure the round trip to the server in seconds.

        Pings from the server are answered automatically.
        """
        started = time.monotonic()
        await self.send(HeartbeatPing())
        return time.monotonic() - started

    async def presence(self, status: Presence | str) -> AcceptedMessage:
        """Announce one's presence: active, idle or away."""
        at = to_iso(now_ms())
        return await self.send(PresenceUpdate(self.me, Presence(status), last_active=at))

    async def change_roles(
        self,
        participant: str,
        old_roles: Iterable[Role | str],
        new_roles: Iterable[Role | str],
        reason: str | None = None,
    ) -> AcceptedMessage:
        """Change a member's roles; `old_roles` must match the ones it has now."""
        body = ParticipantRoleChange(
            participant=participant,
            old_roles=tuple(Role(role) for role in old_roles),
            new_roles=tuple(Role(role) for role in new_roles),
            changed_by=self.me,
            reason=reason,
        )
        return await self.send(body)

    async def configure(
        self, reason: str, *, gate_timeout: int | None = None, **changes: Any
    ) -> AcceptedMessage:
        """Change settings of the session; either all of the changes apply or none.

        `gate_timeout` is how many seconds gates stay open from now on; 0 is never.
        """
        metadata = gate_time_metadata(gate_timeout)
        return await self.send(SessionConfigUpdate(changes, reason, metadata))

    async def leave(self, reason: str | None = None) -> AcceptedMessage:
        """Leave the session; one's open proposals, gates and streams are closed."""
        return await self.send(SessionLeave(reason=reason))

    async def end(
        self,
        reason: str,
        final_state: Literal["completed", "aborted", "timeout"] = "completed",
    ) -> AcceptedMessage:
        """End the session permanently, for all members."""
        return await self.send(SessionEnd(reason=reason, final_state=final_state))


def build_announcement(
    identity: Identity,
    name: str | None,
    roles: Iterable[Role | str] | None,
    capabilities: Iterable[Capability | str] | None,
    metadata: Mapping[str, Any] | None,
    default_roles: Iterable[Role] = (),
) -> ParticipantAnnounce:
    """An announcement of this identity with the roles and capabilities it asks for."""
    requested = default_roles if roles is None else roles
    return ParticipantAnnounce(
        id=identity.id,
        name=name or identity.name,
        kind=identity.kind,
        roles=tuple(Role(role) for role in requested),
        transport="websocket",
        capabilities=tuple(Capability(name) for name in capabilities or ()) or None,
        metadata=dict(metadata) if metadata else None,
    )
