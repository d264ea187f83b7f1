"""Whom a command talks to: the server, or for reading the files when no server answers."""

import argparse
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from accord.cli.address import advice, checked, silent
from accord.core.kernel.refusal import Refused, Why
from accord.settings import Settings, is_local

if TYPE_CHECKING:
    from accord.client import Client
    from accord.client.envelope import Envelope

DEFAULT_URL = "http://127.0.0.1:7420"
PATIENCE_S = 5.0
NO_SESSION = "SESSION_NOT_FOUND"


class Source(Protocol):
    """Where sessions are read from; what it gives is JSON as the server says it."""

    async def listing(self) -> list[dict[str, Any]]:
        """One line each, newest first."""
        ...

    async def detail(self, id: str) -> dict[str, Any]:
        """One session as it stands; raises Refused where there is none."""
        ...

    async def context(self, id: str, key: str, fork: str | None = None) -> dict[str, Any]:
        """One item of its context; raises Refused where there is none."""
        ...

    def transcript(self, id: str, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Envelopes behind `seq` number `after`, oldest first."""
        ...

    async def head(self, id: str) -> str:
        """`version:hash` of the stored session; nothing where only the server knows."""
        ...


def arguments(parser: argparse.ArgumentParser, *, files: bool = False) -> None:
    """The flags that say where and who; `files` where reading from the store will do."""
    add = parser.add_argument
    add("--url", help=f"the server (default: ACCORD_URL, or {DEFAULT_URL})")
    add("--as", dest="id", metavar="ID", help="who you are, where the server is open")
    if files:
        add("--data-dir", type=Path, metavar="DIR", help="read the store in DIR, without a server")
    add("--json", action="store_true", help="print JSON")


def settings(url: str | None = None, data_dir: Path | None = None) -> Settings:
    """What flags, environment and file say; by default the server of this machine."""
    known = Settings.here(url=url, home=data_dir)
    return known if known.url else Settings.here(url=DEFAULT_URL, home=data_dir)


def client(args: argparse.Namespace) -> "Client":
    """A client for whoever calls; refused where nobody says who that is."""
    from accord.cli.absence import Absence
    from accord.client import Client
    from accord.client.identity import read

    known = settings(args.url)
    url = checked(known.url or DEFAULT_URL)
    if not (args.id or known.token):
        # Who has not started a server yet has no token either.
        raise Refused(Why.UNAUTHENTICATED, who_are_you(known)) if answers(url) else silent(url)
    if not args.id and known.token and read(known.token) is None:
        raise Refused(Why.UNAUTHENTICATED, "What is in ACCORD_TOKEN is no token of Accord")
    try:
        token = None if args.id else known.token
        return Client(url, token=token, id=args.id, watch=Absence(url))
    except ValueError as no:
        raise Refused(Why.MALFORMED, str(no)) from None


def who_are_you(known: Settings) -> str:
    """How to say who one is."""
    return (
        f"{known.url} wants to know who you are: put a token into ACCORD_TOKEN "
        "(`accord serve` prints one; on its machine `accord token issue --data-dir DIR` makes "
        "one), or say --as ID where the server is open"
    )


def not_in_yet(session: str) -> str:
    """How to come into a session, for whoever may."""
    return f"; if you are not in it yet, `accord gates --session {session}` joins it"


def session_of(args: argparse.Namespace) -> str:
    """The session that was named, or the usual one."""
    if chosen := args.session or settings().session:
        return str(chosen)
    raise Refused(Why.MALFORMED, "Which session? Name it, or put it into ACCORD_SESSION")


def answers(url: str) -> bool:
    """Whether anything listens there."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme in {"https", "wss"} else 80)
        socket.create_connection((parts.hostname or "", port), PATIENCE_S).close()
    except (OSError, ValueError):
        return False
    return True


@asynccontextmanager
async def reading(args: argparse.Namespace) -> AsyncIterator[Source]:
    """The server if it answers; else, for a server of this machine, its files."""
    known = settings(args.url, args.data_dir)
    url = checked(known.url or DEFAULT_URL)
    if args.data_dir is None and answers(url):
        yield Remote(client(args))
        return
    from accord.home import place
    from accord.reading import Shelf, ensure_there, opened

    if args.data_dir is None:
        if args.url or not is_local(url):
            raise silent(url)
        try:
            ensure_there(place(known.home))
        except Refused:
            raise Refused(Why.UNAVAILABLE, nowhere(url, known.home)) from None
        print(f"accord: {url} does not answer; reading {known.home}", file=sys.stderr)
    async with opened(place(known.home)) as events:
        yield Shelf(events)


def nowhere(url: str, home: Path) -> str:
    """No server and no files."""
    return f"{url} does not answer and there is no log in {home}; {advice(url)}"


class Remote:
    """Sessions at the server, as far as the caller may see them."""

    def __init__(self, caller: "Client") -> None:
        self._client = caller

    async def listing(self) -> list[dict[str, Any]]:
        """The sessions the caller is or was in."""
        import msgspec

        return [msgspec.to_builtins(each) for each in await self._client.sessions()]

    async def detail(self, id: str) -> dict[str, Any]:
        """One of them."""
        import msgspec

        from accord.client import ServerRefused

        try:
            found: dict[str, Any] = msgspec.to_builtins(await self._client.session(id))
        except ServerRefused as no:
            if no.code != NO_SESSION:
                raise
            raise Refused(Why.NO_ROOM, f"{no.message}{not_in_yet(id)}") from None
        return found

    async def context(self, id: str, key: str, fork: str | None = None) -> dict[str, Any]:
        """One item of its context."""
        import msgspec

        from accord.client import ServerRefused

        try:
            found: dict[str, Any] = msgspec.to_builtins(await self._client.context(id, key, fork))
        except ServerRefused as no:
            if no.code == NO_SESSION:
                raise Refused(Why.NO_ROOM, f"{no.message}{not_in_yet(id)}") from None
            if no.code != "INVALID_STATE":
                raise
            # PVP has one code for what is not there and for what cannot be done now.
            raise Refused(Why.UNKNOWN, no.message) from None
        return found

    async def transcript(self, id: str, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """What was said, as far as the caller may read it."""
        async for envelope in self._client.history(id, after):
            yield wire(envelope)

    async def head(self, id: str) -> str:  # noqa: ARG002 - only the files have it
        """Only the files have it."""
        return ""


def wire(said: "Envelope") -> dict[str, Any]:
    """An envelope as it is on the wire."""
    import msgspec

    from accord.core.dialects import pvp

    sent = pvp.Sent(
        pvp.VERSION,
        said.id,
        said.ts,
        said.session,
        said.sender,
        said.type,
        said.body,
        said.ref,
        said.seq,
        said.causal_refs,
        said.fork,
    )
    found: dict[str, Any] = msgspec.to_builtins(sent)
    return found
