"""Follows proposals until they are granted or rejected."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Body
from accord.core.kernel.timestamps import is_before_timeout
from accord.core.room.approval.gate_timeouts import (
    GATE_TIMEOUT_DETAIL,
    SESSION_ENDED_DETAIL,
    GateTimeout,
)
from accord.core.room.approval.gates import GateRequest
from accord.core.room.approval.grants import ToolExecute, ToolReject
from accord.core.room.approval.tool_proposals import ToolPropose
from accord.core.room.approval.votes import GateReject
from accord.core.room.room_settings import GateResolution

from .envelope import Envelope
from .errors import ClientError, Rejected

ProposalOutcome = ToolExecute | Rejected
EntryValue = TypeVar("EntryValue")
MAX_REMEMBERED = 4096


class BoundedDict(dict[str, EntryValue]):
    """A dictionary that drops its oldest entry when it is full."""

    def __init__(self, max_entries: int = MAX_REMEMBERED) -> None:
        super().__init__()
        self._order: deque[str] = deque()
        self._max_entries = max_entries

    def __setitem__(self, key: str, value: EntryValue) -> None:
        if key not in self:
            self._order.append(key)
            if len(self._order) > self._max_entries:
                self.pop(self._order.popleft(), None)
        super().__setitem__(key, value)


class DecisionTracker:
    """Remembers the outcome of each proposal: the grant, or who rejected it and why."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._proposed: BoundedDict[str] = BoundedDict()
        self._actions: BoundedDict[str] = BoundedDict()
        self._gate_requests: BoundedDict[Envelope] = BoundedDict()
        self._outcomes: BoundedDict[ProposalOutcome] = BoundedDict()
        self._waiting: dict[asyncio.Future[ProposalOutcome], str] = {}
        self._error: ClientError | None = None

    def __bool__(self) -> bool:
        """Whether a caller is waiting for an outcome."""
        return bool(self._waiting)

    def is_proposal(self, id: str) -> bool:
        """Whether `id` is the id of a known proposal."""
        return id in self._proposed

    async def wait_for(self, proposal: str) -> ToolExecute:
        """Wait for the grant; returns at once if it is already known. Raises Rejected."""
        outcome = self._outcomes.get(proposal) or await self._wait(proposal)
        if isinstance(outcome, Rejected):
            raise outcome
        return outcome

    async def _wait(self, proposal: str) -> ProposalOutcome:
        if self._error is not None:
            raise self._error
        future: asyncio.Future[ProposalOutcome] = asyncio.get_running_loop().create_future()
        self._waiting[future] = proposal
        self._on_change()
        try:
            return await future
        finally:
            del self._waiting[future]

    def fail(self, error: ClientError) -> None:
        """Fail every waiting caller, and all later ones, with `error`."""
        self._error = error
        for future in self._waiting:
            if not future.done():
                future.set_exception(error)

    def receive(self, envelope: Envelope) -> None:
        """Record proposals, gates and outcomes from one message."""
        match envelope.body:
            case ToolPropose():
                self._proposed[envelope.id] = envelope.sender
            case GateRequest(action_ref=action):
                self._actions[envelope.id] = action
                self._gate_requests[envelope.id] = envelope
            case ToolExecute(tool_proposal=proposal) as granted if envelope.sender == SYSTEM:
                self._settle(proposal, granted)
            case ToolReject() | GateReject() | GateTimeout() as rejection:
                self._reject(envelope, rejection)
            case _:
                pass

    def _reject(self, envelope: Envelope, rejection: Body) -> None:
        match rejection:
            case ToolReject(tool_proposal=name, reason=reason, rejector=by):
                self._record_rejection(envelope, name, reason, by)
            case GateReject(gate=name, reason=reason, rejector=by):
                self._record_rejection(envelope, name, reason, by)
            case GateTimeout(gate=name, resolution=GateResolution.REJECTED):
                self._record_rejection(envelope, name, self._closing_reason(name, envelope), SYSTEM)
            case _:
                pass

    def _closing_reason(self, gate: str, end: Envelope) -> str:
        """Session end or timeout: the server closes a gate early only when the session ends."""
        request = self._gate_requests.get(gate)
        if request is None or not isinstance(request.body, GateRequest):
            return GATE_TIMEOUT_DETAIL
        closed_early = is_before_timeout(request.ts, request.body.timeout_seconds, end.ts)
        return SESSION_ENDED_DETAIL if closed_early else GATE_TIMEOUT_DETAIL

    def _record_rejection(self, envelope: Envelope, name: str, reason: str, by: str) -> None:
        """Settle the action, which a vote may name directly or through its gate (OPEN-19)."""
        for candidate in (name, envelope.ref):
            action = self._actions.get(candidate or "", candidate)
            if action is not None and self.is_proposal(action):
                self._settle(action, Rejected(action, reason, by))
                return

    def _settle(self, proposal: str, outcome: ProposalOutcome) -> None:
        self._outcomes[proposal] = outcome
        for future, wanted in self._waiting.items():
            if wanted == proposal and not future.done():
                future.set_result(outcome)
