"""What was said and not yet acknowledged."""

import asyncio
from collections.abc import Iterator
from typing import NamedTuple

from .envelope import Envelope, Letter
from .errors import ClientError


class Accepted(NamedTuple):
    """The server's word that a message was taken: its place, and the message as all heard it.

    A signal has no place and no echo.
    """

    id: str
    seq: int
    echo: Envelope | None


Answer = asyncio.Future[Accepted]


class Pending(NamedTuple):
    """A message under way."""

    letter: Letter
    answer: Answer


class Outbox:
    """Messages in the order they were said, until each is answered."""

    def __init__(self) -> None:
        self._pending: dict[str, Pending] = {}

    def __bool__(self) -> bool:
        """Whether any answer is awaited."""
        return bool(self._pending)

    def __contains__(self, id: str) -> bool:
        """Whether the answer to this one is awaited."""
        return id in self._pending

    def add(self, letter: Letter) -> Pending:
        """One more; its answer comes later."""
        answer: Answer = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda _: self._pending.pop(letter.id, None))
        pending = self._pending[letter.id] = Pending(letter, answer)
        return pending

    def unanswered(self) -> Iterator[Letter]:
        """What has to be sent again on a new connection, in order; not what nobody waits for."""
        return (p.letter for p in list(self._pending.values()) if not p.answer.cancelled())

    def accept(self, accepted: Accepted) -> bool:
        """The echo of a message came; whether it was one of these."""
        pending = self._pending.pop(accepted.id, None)
        if pending and not pending.answer.done():
            pending.answer.set_result(accepted)
        return pending is not None

    def refuse(self, id: str, error: ClientError) -> bool:
        """A message was refused; whether it was one of these."""
        pending = self._pending.pop(id, None)
        if pending:
            fail(pending.answer, error)
        return pending is not None

    def fail(self, error: ClientError) -> None:
        """No answer will come any more."""
        for id in list(self._pending):
            self.refuse(id, error)


def fail(answer: asyncio.Future[Accepted], error: ClientError) -> None:
    """Hand the error to whoever waits; where nobody does, nobody is told either."""
    if not answer.done():
        answer.set_exception(error)
        answer.exception()
