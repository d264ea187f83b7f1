"""Reading over HTTP: the list of sessions, one session, what was said in it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from accord.core.kernel.ballot import Lack, Quorum
from accord.core.room.state import ContentRef, Presence, SessionConfig
from accord.settings import is_local

from .backoff import LONGEST_HINT
from .envelope import Envelope, head, typed
from .errors import ClientError, ServerRefused, Unreachable
from .identity import Address, Identity

PATIENCE_S = 30.0
USUAL_PAGE = 500
# Too many questions, or nobody behind the proxy just now, or a server that stops.
PASSING = frozenset({429, 502, 503, 504})
FOR_GOOD = frozenset({"SESSION_NOT_FOUND", "TRANSPORT_ERROR"})

Answer = TypeVar("Answer")


class Summary(Struct, frozen=True):
    """One line of the list of sessions."""

    id: str
    name: str
    status: str
    created_at: str
    created_by: str
    participants: int
    open_gates: int
    standing: str
    lost: bool = False
    held: int = 0


class Person(Struct, frozen=True):
    """A member of a session."""

    id: str
    name: str
    type: str
    roles: tuple[str, ...]
    presence: Presence
    capabilities: tuple[str, ...] = ()


class Ruled(Struct, frozen=True):
    """What the rules say of a step; `table` compares those who judged it, where several did."""

    batch: str
    item: str
    step: str
    verdict: str
    state: str
    confidence: str
    sha256: str
    convergence: str | None = None
    judges: tuple[str, ...] = ()
    table: str = ""


class Held(Struct, frozen=True):
    """Why nobody is asked about a proposal yet, and until when."""

    batch: str
    item: str
    step: str
    why: str
    until: str


class Proposal(Struct, frozen=True):
    """A tool that is not finished."""

    id: str
    agent: str
    tool_name: str
    arguments: dict[str, Any]
    category: str
    risk_level: str
    description: str
    approved: bool
    decision: Ruled | None = None
    held: Held | None = None
    fork: str | None = None


class Asked(Struct, frozen=True):
    """What a gate asks for."""

    action_type: str
    action_ref: str
    quorum: Quorum
    timeout_seconds: int
    message: str


class Question(Struct, frozen=True):
    """An open gate, and how far it is."""

    id: str
    request: Asked
    initiator: str
    approvals: tuple[str, ...]
    approvals_received: int
    approvals_required: int
    created_at: str
    lacks: tuple[Lack, ...] = ()
    expires_at: str | None = None
    action: Proposal | None = None
    fork: str | None = None


class Branch(Struct, frozen=True):
    """A fork of a session; `into` is where it was merged, None being the trunk."""

    id: str
    name: str
    parent: str | None
    from_point: str
    members: tuple[str, ...]
    created_by: str
    created_at: str
    merged: bool
    into: str | None = None


class Joining(Struct, frozen=True):
    """A merge that was proposed and is still to be done."""

    id: str
    source: str
    target: str | None
    strategy: str
    gated: bool


class Shelved(Struct, frozen=True):
    """An item of the context, as far as one may see it; `visible_to` None is everybody."""

    key: str
    fork: str | None
    content_type: str
    author: str
    visible_to: tuple[str, ...] | None
    source: str = ""
    tags: tuple[str, ...] = ()


class Opened(Shelved, frozen=True, kw_only=True):
    """An item with what stands in it."""

    content: str | dict[str, Any] | None = None
    content_ref: ContentRef | None = None


class Detail(Summary, frozen=True, kw_only=True):
    """A session: who is there, what is open, what lies on the shelf, which agents are stopped."""

    config: SessionConfig
    members: tuple[Person, ...]
    gates: tuple[Question, ...] = ()
    tools: tuple[Proposal, ...] = ()
    forks: tuple[Branch, ...] = ()
    merges: tuple[Joining, ...] = ()
    context: tuple[Shelved, ...] = ()
    halted: dict[str, str] = {}


class Page(Struct, frozen=True):
    """A stretch of a transcript; `next` is the place to go on from."""

    messages: tuple[Envelope, ...]
    next: int
    has_more: bool


class _Listing(Struct, frozen=True):
    sessions: tuple[Summary, ...]
    has_more: bool = False


class _RawPage(Struct, frozen=True):
    messages: tuple[Raw, ...]
    next: int
    has_more: bool


class _Problem(Struct, frozen=True):
    code: str
    message: str
    details: dict[str, Any] | None = None


class Wrong(Struct, frozen=True):
    """The body of an error page."""

    error: _Problem


class Web:
    """The server's pages, for one reader."""

    def __init__(self, where: Address, who: Identity) -> None:
        self._where = where
        self._who = who

    async def sessions(self) -> tuple[Summary, ...]:
        """The sessions one is or was in, newest first."""
        found: list[Summary] = []
        more = True
        while more:
            page = await self._read(_Listing, "sessions", after=found[-1].id if found else "")
            found += page.sessions
            more = page.has_more and bool(page.sessions)
        return tuple(found)

    async def session(self, id: str) -> Detail:
        """One session as it stands."""
        return await self._read(Detail, "sessions", id)

    async def context(self, id: str, key: str, fork: str | None = None) -> Opened:
        """One item of its context."""
        return await self._read(Opened, "sessions", id, "context", key=key, fork=fork or "")

    async def transcript(self, id: str, after: int = 0, limit: int = USUAL_PAGE) -> Page:
        """What was said behind place number `after`; types unknown here are passed over."""
        where = ("sessions", id, "transcript")
        page = await self._read(_RawPage, *where, after=after, limit=limit)
        heads = [found for raw in page.messages if (found := head(bytes(raw)))]
        known = tuple(envelope for each in heads if (envelope := typed(each)))
        return Page(known, page.next, page.has_more)

    async def history(self, id: str, after: int = 0) -> AsyncIterator[Envelope]:
        """Everything behind place number `after`, page by page."""
        more = True
        while more:
            page = await self.transcript(id, after)
            after, more = page.next, page.has_more
            for envelope in page.messages:
                yield envelope

    async def _read(self, kind: type[Answer], *path: str, **query: str | int) -> Answer:
        if self._who.token is None:
            query = {**query, "as": self._who.id}
        url = self._where.http(*path, **query)
        said = await asyncio.to_thread(self._get, url)
        try:
            return msgspec.json.decode(said, type=kind)
        except msgspec.MsgspecError as error:
            detail = f"What answers at {self._where.base} is no Accord server: {error}"
            raise Unreachable(detail) from error

    def _get(self, url: str) -> bytes:
        headers = {"Authorization": f"Bearer {self._who.token}"} if self._who.token else {}
        try:
            return get(url, headers)
        except OSError as error:
            from .trouble import explained, is_distrusted  # little is wrong most of the time

            why = explained(error, self._where.base)
            raise Unreachable(
                why or f"{self._where.base} cannot be reached: {error}",
                passing=not is_distrusted(error),
            ) from error


def get(url: str, headers: dict[str, str]) -> bytes:
    """The body of a page; raises what an error page says, or OSError."""
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

    class StayHere(HTTPRedirectHandler):
        """A redirect could carry the token to somebody else's server."""

        def redirect_request(self, *_: Any, **__: Any) -> None:
            return None

    proxies = [ProxyHandler({})] if is_local(url) else []
    request = Request(url, headers=headers)  # noqa: S310 - the scheme was checked
    try:
        with build_opener(StayHere(), *proxies).open(request, timeout=PATIENCE_S) as answer:
            said: bytes = answer.read()
            return said
    except HTTPError as error:
        with error:
            raise refusal(error.code, error.read()) from None
    except HTTPException as error:
        raise OSError(f"the answer broke off: {error!r}") from error


def refusal(status: int, said: bytes) -> ServerRefused | Unreachable:
    """What an HTTP error says."""
    try:
        problem = msgspec.json.decode(said, type=Wrong).error
    except msgspec.MsgspecError:
        passing = status in PASSING
        return Unreachable(f"What answers there is no Accord server ({status})", passing=passing)
    return ServerRefused(
        problem.code,
        problem.message,
        recoverable=problem.code not in FOR_GOOD,
        details=problem.details,
        status=status,
    )


def passes(error: ClientError) -> bool:
    """Whether the same question may be answered a little later."""
    match error:
        case ServerRefused():
            return error.status in PASSING
        case Unreachable():
            return error.passing
        case _:
            return False


def asked_to_wait(error: ClientError) -> float:
    """For how many seconds the server wants to be left alone."""
    said = error.details.get("retry_after_ms") if isinstance(error, ServerRefused) else None
    return min(said, LONGEST_HINT * 1000) / 1000 if isinstance(said, int) else 0.0
