"""Reads sessions, context and transcripts over HTTP."""

from collections.abc import AsyncIterator
from typing import TypeVar

import msgspec

from accord.api import responses
from accord.api.home import Home
from accord.api.policies import GivenStandingGrant, SignedPolicyText, StandingGrantRequest
from accord.api.responses import ContextItemDetail, SessionDetail, SessionSummary
from accord.client.connection.home_events import home_events
from accord.client.envelope import Envelope, decode_envelope, parse_head
from accord.client.http_client import HttpClient
from accord.client.identity import Identity, ServerAddress
from accord.client.paging import read_pages

DEFAULT_PAGE_SIZE = 500

ResponseType = TypeVar("ResponseType")


class TranscriptPage(msgspec.Struct, frozen=True):
    """A page of a transcript, decoded; use `next` as `after` to read the next page."""

    messages: tuple[Envelope, ...]
    next: int
    has_more: bool


class HttpReader:
    """Reads the HTTP API for one principal."""

    def __init__(self, address: ServerAddress, identity: Identity) -> None:
        self._http = HttpClient(address, identity.source)
        # An open server takes the principal's word for who it is.
        self._principal: dict[str, str] = {} if identity.token else {"as": identity.id}

    async def sessions(self) -> tuple[SessionSummary, ...]:
        """All sessions the principal is or was a member of, newest first."""
        pages = read_pages(
            lambda after: self._read(responses.SessionList, "sessions", after=after),
            "",
            lambda page: page.sessions[-1].id if page.sessions else None,
        )
        return tuple([session async for page in pages for session in page.sessions])

    async def home(self) -> Home:
        """What concerns the principal in all its sessions."""
        return await self._read(Home, "home")

    def home_events(self) -> AsyncIterator[Home]:
        """The home, and then each session whenever it changes."""
        return home_events(self._http, self._principal)

    async def session(self, id: str) -> SessionDetail:
        """The current state of a session."""
        return await self._read(SessionDetail, "sessions", id)

    async def context(self, id: str, key: str, fork: str | None = None) -> ContextItemDetail:
        """One item of a session's context, including its content."""
        return await self._read(
            ContextItemDetail, "sessions", id, "context", key=key, fork=fork or ""
        )

    async def transcript(
        self, id: str, after: int = 0, limit: int = DEFAULT_PAGE_SIZE
    ) -> TranscriptPage:
        """One page of messages after `seq` `after`; unknown message types are skipped."""
        path = ("sessions", id, "transcript")
        page = await self._read(responses.TranscriptPage, *path, after=after, limit=limit)
        heads = [head for raw in page.messages if (head := parse_head(bytes(raw)))]
        known = tuple(envelope for head in heads if (envelope := decode_envelope(head)))
        return TranscriptPage(known, page.next, page.has_more)

    async def history(self, id: str, after: int = 0) -> AsyncIterator[Envelope]:
        """All messages after `seq` `after`, page by page."""
        pages = read_pages(lambda seq: self.transcript(id, seq), after, lambda page: page.next)
        async for page in pages:
            for envelope in page.messages:
                yield envelope

    async def signed_policy(self, repository: str) -> SignedPolicyText:
        """The newest signed policy of a repository."""
        return await self._read(SignedPolicyText, "policies", repository)

    async def give_standing_grant(
        self, session: str, request: StandingGrantRequest
    ) -> GivenStandingGrant:
        """Vote yes beforehand on calls alike of one agent."""
        path, body = ("sessions", session, "standing-grants"), msgspec.json.encode(request)
        query = self._principal
        return await self._http.read(GivenStandingGrant, path, query, method="POST", body=body)

    async def end_standing_grant(self, session: str, id: str, reason: str = "") -> None:
        path, query = ("sessions", session, "standing-grants", id), {"reason": reason}
        await self._http.request(path, {**query, **self._principal}, method="DELETE")

    async def _read(self, kind: type[ResponseType], *path: str, **query: str | int) -> ResponseType:
        return await self._http.read(kind, path, {**query, **self._principal})
