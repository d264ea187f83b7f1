"""Groups messages into chunk batches, as the edge does with one read of a socket."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from accord.core.kernel.messages import Body, ChunkBatch, Message


def batch_chunks(messages: Iterable[Message]) -> Iterator[ChunkBatch]:
    """Batches of consecutive messages that differ only in id, time and body."""
    for _, group in groupby(enumerate(messages), lambda each: _key(*each)):
        messages_of_batch = [message for _, message in group]
        yield ChunkBatch(
            messages_of_batch[0],
            [m.id for m in messages_of_batch],
            [m.ts for m in messages_of_batch],
            [m.body for m in messages_of_batch],
        )


def _key(place: int, message: Message) -> tuple[type[Body], object]:
    same = (message.room, message.sender, message.ref, message.causal_refs, message.fork)
    return type(message.body), same if message.body.is_chunk else place
