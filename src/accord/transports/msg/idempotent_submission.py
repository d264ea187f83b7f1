"""Submitting what a method asks for, with idempotency by key (UNI-11, OPEN-117).

The id of a keyed message is derived from workspace, sender, method and key, and the store finds a
message by its id. So keys cost no memory, and survive restarts. When a key's window is over, the
next use of it gets the next derived id. A secret of the log is part of it: members of a session
choose the ids of their own messages, and could otherwise take another's before it is used.
"""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
from operator import attrgetter
from typing import Any, NamedTuple

from accord.core.kernel.actor import Actor
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.timestamps import MS_PER_SECOND, to_iso
from accord.core.kernel.ulid import derive_ulid_after
from accord.engine.engine import Engine
from accord.engine.streams import verified_reads
from accord.engine.streams.stream import Outcome, Submission

RECORD = attrgetter("record")


class Stored(NamedTuple):
    """The record of an accepted request; `is_retry` if it was accepted before."""

    record: Record
    is_retry: bool


class Answer(NamedTuple):
    """What the engine answered, without the outcome, whose refusal would refer to it."""

    refusal: Refused | None
    records: tuple[Record, ...]
    is_retry: bool


# The stream and the message id for the n-th use of a key.
Place = tuple[str, str]


class Request(NamedTuple):
    """A command for a stream, from a verified actor."""

    actor: Actor
    method: str
    # The command, from the id of its message.
    body: Callable[[str], Body]
    scope: str  # the thread within which the key counts; empty: the workspace
    key: str | None
    ref: str | None
    # The stream and id of the message, from the id that the key (or chance) gives it.
    place: Callable[[str], Place]
    # Whether a recorded message has the same content.
    is_same: Callable[[Record], bool]
    fork: str | None = None


class Submitter:
    """Submits requests to the engine and waits until they are durable."""

    def __init__(
        self, engine: Engine, window_seconds: int, id_secret: Callable[[], str] = lambda: ""
    ) -> None:
        self.engine = engine
        self.id_secret = id_secret
        self.window_ms = window_seconds * MS_PER_SECOND

    def submit(self, request: Request) -> Coroutine[Any, Any, Stored]:
        """The first record of the request; waiting for it raises Refused."""
        if request.key is None:
            return self._submit_once(request, self.engine.new_id())
        return self._submit_keyed(request, request.key)

    async def _submit_keyed(self, request: Request, key: str) -> Stored:
        for use in count():
            stored = await self._submit_once(
                request, derived_id(self.id_secret(), request, key, use)
            )
            if not stored.is_retry or not self._is_expired(stored.record):
                return checked(stored, request)
        raise AssertionError("count() does not end")

    async def was_accepted(self, request: Request) -> bool:
        """Whether this is a retry of a stored request, so that it uses up no quota."""
        return await self.recorded(request) is not None

    async def recorded(self, request: Request) -> Record | None:
        """The record of the first request with this key, whatever its content."""
        if request.key is None:
            return None
        for use in count():
            id = derived_id(self.id_secret(), request, request.key, use)
            stream, message_id = request.place(id)
            opened = self.engine.streams.get(stream)
            encoded = opened.index.get(message_id) if opened else None
            if encoded is None:
                rows = await verified_reads.find(self.engine.events, stream, [message_id])
                encoded = next(map(self.engine.decode_row, rows), None)
            if encoded is None or not self._is_expired(encoded.record):
                return None if encoded is None else encoded.record
        return None

    async def _submit_once(self, request: Request, id: str) -> Stored:
        stream, message_id = request.place(id)
        now = to_iso(self.engine.clock.now())
        actor = request.actor
        room = stream.partition("/")[2]
        body = request.body(message_id)
        message = Message(
            message_id, now, room, actor.principal, body, request.ref, fork=request.fork
        )
        answer = await self.answer_to(stream, message, actor)
        if answer.refusal is not None:
            raise as_method_refusal(answer.refusal)
        first = answer.records[0]
        if first.id != message_id:
            first = next((each for each in answer.records if each.id == message_id), first)
        return Stored(first, answer.is_retry)

    def answer_to(self, stream: str, message: Message, actor: Actor) -> "asyncio.Future[Answer]":
        """What the engine answers, once it is durable."""
        done: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

        def on_outcome(outcome: Outcome) -> None:
            if not done.done():
                records = tuple(map(RECORD, outcome.records))
                done.set_result(Answer(outcome.refusal, records, outcome.is_retry))

        self.engine.submit(stream, Submission(message, actor, on_outcome))
        return done

    def _is_expired(self, record: Record) -> bool:
        return record.at + self.window_ms <= self.engine.clock.now()


def checked(stored: Stored, request: Request) -> Stored:
    """The stored record if it has the content of the request; a reused key is refused."""
    if stored.is_retry and not request.is_same(stored.record):
        detail = f"The idempotency key {request.key} was used for something else; use a new key"
        raise Refused(Reason.KEY_REUSED, detail)
    return stored


def derived_id(secret: str, request: Request, key: str, use: int) -> str:
    """The same for every retry; another one for another scope, sender, method, key or use."""
    actor = request.actor
    cause = (actor.workspace, request.scope, actor.principal, request.method, str(use))
    return derive_ulid_after(key, secret, *cause)


def as_method_refusal(refusal: Refused) -> Refused:
    """The engine's refusal of an unknown `in_reply_to` as MSG names it."""
    unknown = (refusal.details or {}).get("unknown")
    if refusal.reason is not Reason.MALFORMED or unknown is None:
        return refusal
    return Refused(Reason.NOT_FOUND, f"There is no message {unknown[0]} in this thread")
