"""The methods about runtimes and wakes."""

from collections.abc import Collection
from typing import Any

from accord.api import threads as api
from accord.core.attention.runtimes import (
    HumanInput,
    ObservedRuntime,
    RuntimeStatus,
    observe_all,
)
from accord.core.attention.state import Attention, Seat, stream_of
from accord.core.attention.trigger_answers import TriggerAnswer, TriggerAnswered
from accord.core.attention.waking.outcomes import SENTENCES, WakeAction, WakeResult
from accord.core.attention.waking.state import WakeOrder
from accord.core.attention.waking.waker_port import WakeTarget
from accord.core.kernel.actor import Actor
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Role, ThreadRole
from accord.core.kernel.timestamps import to_iso
from accord.core.kernel.ulid import derive_ulid_after
from accord.core.room.threads.state import ThreadStatus, is_thread_id
from accord.core.room.threads.thread_access import is_leading
from accord.transports.msg.idempotent_submission import Request, Stored, checked
from accord.transports.msg.service import ThreadService
from accord.transports.msg.waking.runtime_registry import (
    UNNAMED_SESSION,
    human_input_of,
    is_supervisor,
)
from accord.transports.msg.waking.service import Answered
from accord.transports.msg.waking.terminals import TerminalKey

TRIGGER = "trigger_participant"
LIVELIEST_FIRST = tuple(RuntimeStatus)
NOTHING_KNOWN = Attention("", "")


async def heartbeat_session(
    service: ThreadService, actor: Actor, request: api.HeartbeatSession
) -> api.HeartbeatRecorded:
    """Report that your runtime is alive."""
    service.ensure_open()
    at = await service.wakes.registry.heartbeat(actor, request)
    return api.HeartbeatRecorded(ok=True, recorded_at=to_iso(at))


async def take_wakes(
    service: ThreadService, actor: Actor, request: api.TakeWakes
) -> api.TakenWakes:
    """Take the prompts that the supervisor of a runtime is to type."""
    service.ensure_open()
    if not is_supervisor(actor):
        detail = "Only a supervisor takes wakes; its token needs the capability supervise"
        raise Refused(Reason.NO_AUTHORITY, detail)
    wakes = service.wakes
    wakes.supervised.ensure_goes_on(request.instance_id)
    at = await wakes.registry.heartbeat(actor, request)
    seat, session_id = Seat(actor.workspace, actor.principal), actor.runtime or UNNAMED_SESSION
    key = TerminalKey(WakeTarget(*seat), session_id)
    if RuntimeStatus(request.status) is RuntimeStatus.OFFLINE:
        wakes.supervised.note_end(key, request.instance_id)
        return api.TakenWakes(wakes=(), recorded_at=to_iso(at))
    before = (await wakes.supervised.human_input(key.target)).get(session_id)
    seen = human_input_of(request, at) or HumanInput()
    human = HumanInput(seen.typed_at, seen.line_empty, request.working)
    wakes.supervised.note(key, request, human)
    await wakes.take_up(seat, session_id)
    if before is None or (before.working and not human.working):
        await wakes.look_at_waiting(seat)
    await wakes.supervised.wait(key, request.wait_seconds)
    return api.TakenWakes(wakes=wakes.supervised.handed(key), recorded_at=to_iso(at))


async def trigger_participant(
    service: ThreadService, actor: Actor, request: api.TriggerParticipant
) -> api.TriggerResult:
    """Wake a participant of a thread that has unread messages."""
    workspace, participants = await wakeable_in(service, actor, request.thread_id)
    if request.target_agent_id not in participants:
        detail = f"{request.target_agent_id} is not a participant of this thread"
        raise Refused(Reason.MALFORMED, detail)
    if request.force:
        ensure_may_force(actor, request.reason)
    order = WakeOrder(
        thread=request.thread_id,
        by=actor.principal,
        reason=request.reason,
        words=request.trigger_prompt,
        autonomous=actor.kind is not Kind.HUMAN,
        forced=request.force,
    )
    seat = Seat(workspace, request.target_agent_id)
    if request.idempotency_key is None:
        return result_of(seat, await service.wakes.ask(seat, service.engine.new_id(), order))
    return result_of(seat, await ask_once(service, actor, request.idempotency_key, seat, order))


async def ask_once(
    service: ThreadService, actor: Actor, key: str, seat: Seat, order: WakeOrder
) -> Answered:
    """The first answer that this key got, else that to asking now; refusals are not kept."""

    def kept(answered: Answered | None) -> Request:
        stream = stream_of(actor.workspace, actor.principal)
        outcome, earlier = answered or (None, None)

        def body(_: str) -> Body:
            assert outcome is not None  # noqa: S101 - for the type checker
            return TriggerAnswer(seat.agent, order, outcome, earlier)

        return Request(
            actor=actor,
            method=TriggerAnswer.type,
            body=body,
            scope=order.thread,
            key=key,
            ref=None,
            place=lambda id: (stream, id),
            is_same=lambda record: is_answer_to(record, seat, order),
        )

    first = await service.submitter.recorded(kept(None))
    if first is None:
        parts = (key, actor.workspace, order.thread, actor.principal, TRIGGER)
        answered = await service.wakes.ask(seat, derive_ulid_after(*parts), order)
        first = (await service.submitter.submit(kept(answered))).record
    else:
        checked(Stored(first, is_retry=True), kept(None))
    event = first.event
    assert isinstance(event, TriggerAnswered)  # noqa: S101 - for the type checker
    return Answered(event.outcome, event.earlier)


def is_answer_to(record: Record, seat: Seat, order: WakeOrder) -> bool:
    """Whether this answered the same request."""
    event = record.event
    return isinstance(event, TriggerAnswered) and (event.target, event.order) == (seat.agent, order)


async def wakeable_in(
    service: ThreadService, actor: Actor, thread_id: str
) -> tuple[str, Collection[str]]:
    """The workspace of a thread or session, and who can be woken in it; raises Refused."""
    if is_thread_id(thread_id):
        thread = await service.thread_for(thread_id, actor)
        return thread.workspace, thread.participants
    service.ensure_open()
    session = await service.sessions.conversation(thread_id, actor)
    if actor.principal not in session.participants:
        raise Refused(Reason.FORBIDDEN, f"You are no longer in the session {thread_id}")
    if session.status is ThreadStatus.CLOSED:
        raise Refused(Reason.WRONG_STATE, "The session has ended; no agent is woken for it")
    members = session.room.members
    agents = [name for name in session.participants if members[name].kind is Kind.AGENT]
    return session.room.workspace, agents


async def list_agents(
    service: ThreadService, actor: Actor, request: api.ListAgents
) -> api.AgentList:
    """The agents of your workspace, and the runtimes in which they were seen."""
    service.ensure_open()
    found = dict(await service.wakes.agents(actor.workspace))
    heard = {seat.agent for seat in service.intake.traffic.seats_in(actor.workspace)}
    listed = [
        detail_of(service, Seat(actor.workspace, agent), attention)
        for agent in sorted(found.keys() | heard)
        if request.target_agent_id in {None, agent}
        and (is_listed(attention := found.get(agent, NOTHING_KNOWN)) or agent in heard)
    ]
    return api.AgentList(agents=tuple(listed[: api.MAX_LISTED]))


async def pause_agent(
    service: ThreadService, actor: Actor, request: api.PauseAgent
) -> api.PausedAgent:
    """Keep an agent from being woken until a person resumes it."""
    service.ensure_open()
    ensure_may_pause(actor)
    seat = Seat(actor.workspace, request.target_agent_id)
    await service.wakes.pause(seat, actor.principal, paused=request.paused)
    return api.PausedAgent(target_agent_id=seat.agent, paused=request.paused)


def ensure_may_pause(actor: Actor) -> None:
    """A person who drives or leads; keeping an agent quiet is a smaller thing than reading all."""
    drives = actor.credential is not None and Role.DRIVER in actor.credential.roles
    if actor.kind is not Kind.HUMAN or not (drives or is_leading(actor)):
        detail = "Only a person who is driver, operator or orchestrator may pause an agent"
        raise Refused(Reason.NO_AUTHORITY, detail)


def ensure_may_force(actor: Actor, reason: str) -> None:
    """OPEN-127: an operator, who is a person, with a reason for the audit."""
    if actor.thread_role is not ThreadRole.OPERATOR or actor.kind is not Kind.HUMAN:
        raise Refused(Reason.NO_AUTHORITY, "Only an operator may force a wake")
    if not reason.strip():
        raise Refused(Reason.MALFORMED, "A forced wake needs a reason, which the audit keeps")


def result_of(seat: Seat, answered: Answered) -> api.TriggerResult:
    """The answer of `trigger_participant`."""
    outcome, earlier = answered
    shown = earlier or outcome
    deferred = outcome.result is WakeResult.DEFERRED
    fallback = outcome.fallback_action
    until = outcome.deferred_until
    return api.TriggerResult(
        target_agent_id=seat.agent,
        action=shown.action.value,
        result=outcome.result.value,
        defer_reason=outcome.cause if deferred else None,
        deferred_until=to_iso(until) if deferred and until is not None else None,
        fallback_action=None if fallback is WakeAction.NONE else fallback,
        runtime_command=shown.command or None,
        triggered_at=to_iso(shown.triggered_at),
        why=outcome.cause,
        detail=outcome.detail or SENTENCES[outcome.cause],
    )


def is_listed(attention: Attention) -> bool:
    """Whether an agent was ever seen in a runtime, woken, awaited or paused."""
    return attention.waking != type(attention.waking)()


def detail_of(service: ThreadService, seat: Seat, attention: Attention) -> api.AgentDetail:
    """An agent as it is now."""
    waking = attention.waking
    now = service.engine.clock.now()
    beats = service.wakes.registry.beats_of(seat, waking.runtimes.values())
    runtimes = observe_all(waking.runtimes, beats, now)
    traffic = service.intake.traffic
    statuses = {traffic.status(seat), *(one.status for one in runtimes)}
    times = [traffic.last_seen(seat), *(one.last_heartbeat_at for one in runtimes)]
    last = max((at for at in times if at is not None), default=None)
    return api.AgentDetail(
        agent_id=seat.agent,
        workspace_id=seat.workspace,
        status=min(statuses, key=LIVELIEST_FIRST.index),
        last_seen_at=None if last is None else to_iso(last),
        runtimes=tuple(map(runtime_row, runtimes)),
        paused_by=waking.paused_by or None,
        awaited_in=tuple(sorted(waking.awaited)),
    )


def state_of_agent(service: ThreadService, workspace: str, agent: str) -> dict[str, Any]:
    """How an agent is, from what is in memory: reads nothing, for lists of many agents."""
    seat = Seat(workspace, agent)
    opened = service.engine.streams.get(stream_of(workspace, agent))
    detail = detail_of(service, seat, NOTHING_KNOWN if opened is None else opened.base.state)
    return {
        "status": detail.status,
        "last_seen_at": detail.last_seen_at,
        "paused_by": detail.paused_by,
    }


def runtime_row(one: ObservedRuntime) -> api.RuntimeDetail:
    """A row of the registry (MSG 2.4)."""
    return api.RuntimeDetail(
        session_id=one.session_id,
        runtime=one.runtime,
        status=one.status,
        management_mode=one.management_mode,
        resumable=one.resumable,
        last_heartbeat_at=to_iso(one.last_heartbeat_at),
        machine=one.origin.machine if one.origin else None,
    )
