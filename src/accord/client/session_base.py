"""What all views of a session share: sending and receiving messages."""

from collections.abc import AsyncIterator, Iterable
from typing import Self

from accord.client.connection.outbox import AcceptedFuture, AcceptedMessage
from accord.client.connection.session_link import SessionLink
from accord.client.envelope import Envelope, MessageRefs
from accord.client.identity import Identity
from accord.core.kernel.messages import Body


class SessionBase:
    """Sends messages to the trunk of a session or to one of its forks."""

    def __init__(self, link: SessionLink, identity: Identity, fork: str | None = None) -> None:
        self._link = link
        self._identity = identity
        self.fork_id = fork

    @property
    def id(self) -> str:
        return self._link.id

    @property
    def me(self) -> str:
        """The id of the member this client speaks for."""
        return self._identity.id

    def within(self, fork: str | None) -> Self:
        """A view of the same session that sends to `fork`; None is the trunk.

        Messages about the whole session, such as interrupts, still go to the whole session.
        """
        return type(self)(self._link, self._identity, fork)

    def messages(self) -> AsyncIterator[Envelope]:
        """Every message once and in order, across reconnects; for a single reader.

        Every view yields the messages of all visible forks. It ends when the session ends or
        the member leaves, and raises the error if the client fails.
        """
        return self._link.inbox

    def say(
        self,
        body: Body,
        ref: str | None = None,
        causal_refs: Iterable[str] = (),
        fork: str | None = None,
    ) -> AcceptedFuture:
        """Send without waiting; await the result for the server's acknowledgement."""
        target = fork or (self.fork_id if body.forkable else None)
        return self._link.submit(body, MessageRefs(ref, tuple(causal_refs), target))

    async def send(
        self,
        body: Body,
        ref: str | None = None,
        causal_refs: Iterable[str] = (),
        fork: str | None = None,
    ) -> AcceptedMessage:
        """Send and wait until the server accepts; exactly one effect, even across reconnects.

        Raises ServerRefused.
        """
        return await self.say(body, ref, causal_refs, fork)
