"""The runtimes of all agents: changes on the log, plain heartbeats in memory."""

from collections.abc import Callable, Iterable, Mapping

import msgspec

from accord.api import threads as api
from accord.core.attention.runtimes import (
    OFFLINE_AFTER_MS,
    Beats,
    HeartbeatReport,
    HumanInput,
    Runtime,
    RuntimeOrigin,
    RuntimeStatus,
    registered,
)
from accord.core.attention.state import STREAM_PREFIX, Attention, Seat, seat_of, stream_of
from accord.core.attention.waking.wake_messages import RuntimeReport, RuntimeSilent
from accord.core.kernel.actor import POLICY_ACTOR, Actor
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Instant, Message
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Capability
from accord.core.kernel.timestamps import to_iso
from accord.engine.engine import Engine
from accord.transports.msg.idempotent_submission import Submitter

# The runtime of callers whose credential names none (`--auth open`).
UNNAMED_SESSION = "open"
MAX_SEATS = 100_000


class RuntimeRegistry:
    """Takes heartbeats in, and knows which runtimes are alive."""

    def __init__(self, engine: Engine, submitter: Submitter) -> None:
        self.engine = engine
        self.submitter = submitter
        self.started_at = engine.clock.now()
        self._beats: dict[Seat, dict[str, Beats]] = {}
        self._owner_of_ref: dict[tuple[str, str], Seat] = {}
        # Called with every heartbeat, where other servers have to know.
        self.on_beat: Callable[[Seat, HeartbeatReport, HumanInput | None], None] | None = None

    def load(self, stream: str, attention: Attention) -> None:
        """Take in what the log says about an agent when the server starts."""
        for runtime in attention.waking.runtimes.values():
            self._remember_ref(seat_of(stream), runtime)

    async def heartbeat(self, actor: Actor, request: api.HeartbeatSession) -> Instant:
        """Record a heartbeat; on the log only if it changes something. Raises Refused."""
        supervises = is_supervisor(actor)
        if not supervises and claims_supervision(request):
            detail = (
                "Only a supervisor manages a runtime and reports about its terminal; its token "
                "needs the capability supervise"
            )
            raise Refused(Reason.NO_AUTHORITY, detail)
        seat, now = Seat(actor.workspace, actor.principal), self.engine.clock.now()
        report = HeartbeatReport(
            session_id=actor.runtime or UNNAMED_SESSION,
            runtime=request.runtime,
            status=RuntimeStatus(request.status),
            resumable=request.resumable,
            supervises=supervises,
            origin=origin_of(request),
        )
        attention: Attention = await self.engine.state(stream_of(*seat))
        known = attention.waking.runtimes.get(report.session_id)
        fresh = registered(known, report, now)
        if fresh is not None:
            self._ensure_own_ref(seat, fresh)
            await self._submit(seat, RuntimeReport(report), actor)
            self._remember_ref(seat, fresh)
        human = human_input_of(request, now)
        self.remember_beat(seat, report, human, now)
        if self.on_beat is not None:
            self.on_beat(seat, report, human)
        return now

    def beats_of(self, seat: Seat, runtimes: Iterable[Runtime]) -> Mapping[str, Beats]:
        """When each runtime was last heard.

        After a restart nothing is known yet: for a while those that were alive count as alive, so
        that no conversation is resumed which is open.
        """
        heard = self._beats.get(seat, {})
        return {
            one.session_id: heard.get(one.session_id)
            or Beats(
                one.changed_at
                if one.status is RuntimeStatus.OFFLINE
                else max(one.changed_at, self.started_at)
            )
            for one in runtimes
        }

    async def sweep(self) -> None:
        """Record runtimes that have missed three heartbeats, and forget their beats."""
        now = self.engine.clock.now()
        for seat, heard in list(self._beats.items()):
            for session_id, beats in list(heard.items()):
                last = max(beats.seen_at, beats.supervised_at or 0)
                if now - last > OFFLINE_AFTER_MS:
                    del heard[session_id]
                    await self._submit(seat, RuntimeSilent(session_id), POLICY_ACTOR)
            if not heard:
                self._beats.pop(seat, None)

    def remember_beat(
        self, seat: Seat, report: HeartbeatReport, human: HumanInput | None, now: Instant
    ) -> None:
        """A runtime was heard, here or by another server."""
        heard = self._beats.setdefault(seat, {})
        before = heard.get(report.session_id, Beats(now))
        heard[report.session_id] = (
            Beats(before.seen_at, now, human or before.human_input)
            if report.supervises
            else msgspec.structs.replace(before, seen_at=now)
        )
        if len(self._beats) > MAX_SEATS:
            del self._beats[next(iter(self._beats))]

    def _ensure_own_ref(self, seat: Seat, runtime: Runtime) -> None:
        """A conversation belongs to the agent that reported it first."""
        if runtime.origin is None:
            return
        owner = self._owner_of_ref.get((runtime.runtime, runtime.origin.runtime_ref), seat)
        if owner != seat:
            detail = "This runtime_ref was reported by another agent; send your own conversation's"
            raise Refused(Reason.CLAIM_MISMATCH, detail)

    def _remember_ref(self, seat: Seat, runtime: Runtime) -> None:
        if runtime.origin is not None:
            key = (runtime.runtime, runtime.origin.runtime_ref)
            self._owner_of_ref.setdefault(key, seat)

    async def _submit(self, seat: Seat, body: RuntimeReport | RuntimeSilent, actor: Actor) -> None:
        stream, now = stream_of(*seat), to_iso(self.engine.clock.now())
        sender = SYSTEM if actor is POLICY_ACTOR else actor.principal
        room = stream.removeprefix(STREAM_PREFIX)
        message = Message(self.engine.new_id(), now, room, sender, body)
        answer = await self.submitter.answer_to(stream, message, actor)
        if answer.refusal is not None:
            raise answer.refusal


def is_supervisor(actor: Actor) -> bool:
    """Whether the credential itself has the capability; no role contains it."""
    credential = actor.credential
    return credential is not None and Capability.SUPERVISE in credential.capabilities


def claims_supervision(request: api.HeartbeatSession) -> bool:
    """Whether a heartbeat says what only a supervisor can know."""
    about_terminal = (request.seconds_since_typing, request.line_empty)
    return request.management_mode == "managed" or about_terminal != (None, None)


def origin_of(request: api.HeartbeatSession) -> RuntimeOrigin | None:
    """Where the conversation was seen to start; all three are needed to resume it."""
    parts = (request.runtime_ref, request.machine, request.directory)
    if parts == (None, None, None):
        return None
    ref, machine, directory = parts
    if ref is None or machine is None or directory is None:
        raise Refused(
            Reason.MALFORMED,
            "runtime_ref, machine and directory belong together: a conversation is resumed only "
            "where it was seen to start",
        )
    return RuntimeOrigin(ref, machine, directory)


def human_input_of(request: api.HeartbeatSession, now: Instant) -> HumanInput | None:
    """What a supervisor reports about the person at the terminal; by age, not by its clock."""
    if request.line_empty is None:
        return None
    age = request.seconds_since_typing
    return HumanInput(None if age is None else now - int(age * 1000), request.line_empty)
