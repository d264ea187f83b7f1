"""What became of proposals, read from what the room hears."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.log import Body
from accord.core.kernel.times import too_early
from accord.core.room.gates import GateRequest
from accord.core.room.grants import ToolExecute
from accord.core.room.state import Resolution
from accord.core.room.timeouts import ENDED, TOO_LATE, GateTimeout
from accord.core.room.tools import ToolPropose
from accord.core.room.votes import GateReject
from accord.core.room.waiting import ToolReject

from .envelope import Envelope
from .errors import ClientError, Rejected

Outcome = ToolExecute | Rejected
Kept = TypeVar("Kept")
MOST_KEPT = 4096


class Recent(dict[str, Kept]):
    """A dictionary that forgets its oldest entries."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        super().__init__()
        self._order: deque[str] = deque()
        self._most = most

    def __setitem__(self, key: str, value: Kept) -> None:
        """Keep this, and let the oldest go."""
        if key not in self:
            self._order.append(key)
            if len(self._order) > self._most:
                self.pop(self._order.popleft(), None)
        super().__setitem__(key, value)


class Decisions:
    """For each proposal the grant, or who rejected it and why, however long ago it was decided."""

    def __init__(self, stirred: Callable[[], None]) -> None:
        self._stirred = stirred
        self._proposed: Recent[str] = Recent()
        self._actions: Recent[str] = Recent()
        self._asked: Recent[Envelope] = Recent()
        self._outcomes: Recent[Outcome] = Recent()
        self._waiting: dict[asyncio.Future[Outcome], str] = {}
        self._error: ClientError | None = None

    def __bool__(self) -> bool:
        """Whether anybody waits for one."""
        return bool(self._waiting)

    def is_proposal(self, id: str) -> bool:
        """Whether this id is a proposal's."""
        return id in self._proposed

    async def of(self, proposal: str) -> ToolExecute:
        """The grant, as soon as there is one; raises Rejected."""
        outcome = self._outcomes.get(proposal) or await self._wait(proposal)
        if isinstance(outcome, Rejected):
            raise outcome
        return outcome

    async def _wait(self, proposal: str) -> Outcome:
        if self._error is not None:
            raise self._error
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting[answer] = proposal
        self._stirred()
        try:
            return await answer
        finally:
            del self._waiting[answer]

    def fail(self, error: ClientError) -> None:
        """Nothing will be decided any more, as far as one can hear."""
        self._error = error
        for answer in self._waiting:
            if not answer.done():
                answer.set_exception(error)

    def hear(self, envelope: Envelope) -> None:
        """Take note of what decides something."""
        match envelope.body:
            case ToolPropose():
                self._proposed[envelope.id] = envelope.sender
            case GateRequest(action_ref=action):
                self._actions[envelope.id] = action
                self._asked[envelope.id] = envelope
            case ToolExecute(tool_proposal=proposal) as granted if envelope.sender == SYSTEM:
                self._settle(proposal, granted)
            case ToolReject() | GateReject() | GateTimeout() as no:
                self._reject(envelope, no)
            case _:
                pass

    def _reject(self, envelope: Envelope, no: Body) -> None:
        match no:
            case ToolReject(tool_proposal=name, reason=reason, rejector=by):
                self._turn_down(envelope, name, reason, by)
            case GateReject(gate=name, reason=reason, rejector=by):
                self._turn_down(envelope, name, reason, by)
            case GateTimeout(gate=name, resolution=Resolution.REJECTED):
                self._turn_down(envelope, name, self._why_closed(name, envelope), SYSTEM)
            case _:
                pass

    def _why_closed(self, gate: str, end: Envelope) -> str:
        """The server closes a gate before its time only when the session ends."""
        asked = self._asked.get(gate)
        if asked is None or not isinstance(asked.body, GateRequest):
            return TOO_LATE
        early = too_early(asked.ts, asked.body.timeout_seconds, end.ts)
        return ENDED if early else TOO_LATE

    def _turn_down(self, envelope: Envelope, name: str, reason: str, by: str) -> None:
        """Whatever a vote names, gate or action, the action is what it is about (OPEN-19)."""
        for each in (name, envelope.ref):
            action = self._actions.get(each or "", each)
            if action is not None and self.is_proposal(action):
                self._settle(action, Rejected(action, reason, by))
                return

    def _settle(self, proposal: str, outcome: Outcome) -> None:
        self._outcomes[proposal] = outcome
        for answer, wanted in self._waiting.items():
            if wanted == proposal and not answer.done():
                answer.set_result(outcome)
