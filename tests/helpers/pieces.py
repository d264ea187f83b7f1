"""Messages that a read of a socket brings, gathered as the edge would."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from accord.core.kernel.log import Body, Message, Pieces


def alike(messages: Iterable[Message]) -> Iterator[Pieces]:
    """Those in a row that differ in id, time and body alone; a body that cannot flow is alone."""
    for _, group in groupby(enumerate(messages), lambda each: _key(*each)):
        found = [message for _, message in group]
        yield Pieces(
            found[0], [m.id for m in found], [m.ts for m in found], [m.body for m in found]
        )


def _key(place: int, message: Message) -> tuple[type[Body], object]:
    same = (message.room, message.sender, message.ref, message.causal_refs, message.fork)
    return type(message.body), same if message.body.flows else place
