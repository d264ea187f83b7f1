"""Connects a command to the server, or reads the local store if no server answers."""

import argparse
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from accord.cli.server_url import check_url, not_answering, unreachable_advice
from accord.core.kernel.refusal import Reason, Refused
from accord.settings.client import Settings, is_local

if TYPE_CHECKING:
    from accord.client import Client
    from accord.client.envelope import Envelope
    from accord.client.identity import Token

DEFAULT_URL = "http://127.0.0.1:7420"
SESSION_NOT_FOUND = "SESSION_NOT_FOUND"
WHICH_SESSION = (
    "Which session? Give its id, or set ACCORD_SESSION; `accord session list` shows your sessions"
)


class SessionSource(Protocol):
    """Where sessions are read from; returns the JSON that the server would send."""

    async def listing(self) -> list[dict[str, Any]]:
        """All sessions, newest first."""
        ...

    async def detail(self, id: str) -> dict[str, Any]:
        """The current state of one session; raises Refused if there is none."""
        ...

    async def context(self, id: str, key: str, fork: str | None = None) -> dict[str, Any]:
        """One context item; raises Refused if there is none."""
        ...

    def transcript(self, id: str, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Envelopes with a `seq` above `after`, oldest first."""
        ...

    async def head(self, id: str) -> str:
        """`version:hash` of the stored session; empty if read from a server."""
        ...


def arguments(parser: argparse.ArgumentParser, *, files: bool = False) -> None:
    """Add --url, --as and --json; `files` adds --data-dir, for commands that only read."""
    add = parser.add_argument
    add("--url", help=f"the server (default: ACCORD_URL, your profile, or {DEFAULT_URL})")
    add("--as", dest="id", metavar="ID", help="your id, on a server that runs with --auth open")
    if files:
        add(
            "--data-dir",
            type=Path,
            metavar="DIR",
            help="read the store in DIR instead of asking a server",
        )
    add("--json", action="store_true", help="print JSON")


def resolve_settings(
    url: str | None = None, data_dir: Path | None = None, *, as_id: str | None = None
) -> Settings:
    """Settings from flags, environment, file and profile; the default server is the local one.

    `as_id` names a principal without a token, so that no profile is needed.
    """
    load = Settings.for_process if as_id else Settings.for_client
    known = load(url=url, home=data_dir)
    return known if known.url else Settings.for_process(url=DEFAULT_URL, home=data_dir)


def token_of(known: Settings) -> "Token | None":
    """The token to send; that of a profile renews itself."""
    if known.profile is None:
        return known.token
    from accord.client.sign_in.profile_token import ProfileToken

    return ProfileToken(known.profile)


def client_for(args: argparse.Namespace) -> "Client":
    """A client with the caller's identity; refuses if neither a token nor --as gives one."""
    from accord.cli.connection_notice import ConnectionNotice
    from accord.client import Client
    from accord.client.http_client import is_listening
    from accord.client.identity import read_claims

    known = resolve_settings(args.url, as_id=args.id)
    url = check_url(known.url or DEFAULT_URL)
    if not (args.id or known.token):
        # Without a running server there is no token yet: say that first.
        raise (
            Refused(Reason.UNAUTHENTICATED, identity_hint(known))
            if is_listening(url)
            else not_answering(url)
        )
    if not args.id and known.token and read_claims(known.token) is None:
        raise Refused(
            Reason.UNAUTHENTICATED,
            "ACCORD_TOKEN does not hold an Accord token; `accord token issue` makes one",
        )
    try:
        token = None if args.id else token_of(known)
        return Client(url, token=token, id=args.id, watch=ConnectionNotice(url))
    except ValueError as error:
        raise Refused(Reason.MALFORMED, str(error)) from None


def identity_hint(known: Settings) -> str:
    """How to provide an identity, and for which servers there is one."""
    import os

    from accord.settings.profiles import read_profiles

    servers = sorted({profile.url for profile in read_profiles(os.environ).by_name.values()})
    elsewhere = f" (you are signed in to {', '.join(servers)})" if servers else ""
    return (
        f"You are not signed in to {known.url}{elsewhere}: use `accord login LINK` "
        "(`accord serve` prints a link, and `accord invite --data-dir DIR --role ROLE` makes one "
        "on the server's machine), or --as ID if the server runs with --auth open"
    )


def join_hint(session: str) -> str:
    """How to join a session that the caller may not be a member of yet."""
    return f"; if you are not a member yet, `accord session join {session}` makes you one"


async def member_client(args: argparse.Namespace, session: str) -> "Client":
    """A client for an act in the session; refuses a non-member instead of joining."""
    client = client_for(args)
    with hint_to_join(session):
        found = await client.session(session)
    if found.standing != "member":
        raise Refused(
            Reason.FORBIDDEN,
            f"You are not a member of {session} now; `accord session join {session}` makes you one",
        )
    return client


def session_of(args: argparse.Namespace) -> str:
    """The session given on the command line, or ACCORD_SESSION."""
    if chosen := args.session or Settings.for_process().session:
        return str(chosen)
    raise Refused(Reason.MALFORMED, WHICH_SESSION)


@asynccontextmanager
async def open_source(args: argparse.Namespace) -> AsyncIterator[SessionSource]:
    """The server if it answers; otherwise, for a local server, its store."""
    from accord.client.http_client import is_listening

    known = resolve_settings(args.url, args.data_dir, as_id=args.id)
    url = check_url(known.url or DEFAULT_URL)
    if args.data_dir is None and is_listening(url):
        yield RemoteSessions(client_for(args))
        return
    from accord.data_dir import store_url_of
    from accord.operations.local_log import LocalSessions, ensure_log_exists, open_existing_log

    if args.data_dir is None:
        # An address that was chosen is never replaced by whatever store is here.
        if Settings.for_process(url=args.url).url or not is_local(url):
            raise not_answering(url)
        try:
            ensure_log_exists(store_url_of(known.home))
        except Refused:
            raise Refused(Reason.UNAVAILABLE, no_source_sentence(url, known.home)) from None
        print(f"accord: {url} does not answer; reading {known.home}", file=sys.stderr)
    async with open_existing_log(store_url_of(known.home)) as events:
        yield LocalSessions(events)


def no_source_sentence(url: str, home: Path) -> str:
    """Neither a server nor a store to read from."""
    return f"{url} does not answer and there is no log in {home}; {unreachable_advice(url)}"


class RemoteSessions:
    """Sessions on a server, as far as the caller may see them."""

    def __init__(self, caller: "Client") -> None:
        self._client = caller

    async def listing(self) -> list[dict[str, Any]]:
        """The sessions that the caller is or was a member of."""
        import msgspec

        return [msgspec.to_builtins(each) for each in await self._client.sessions()]

    async def detail(self, id: str) -> dict[str, Any]:
        """The current state of one session."""
        import msgspec

        with hint_to_join(id):
            found: dict[str, Any] = msgspec.to_builtins(await self._client.session(id))
        return found

    async def context(self, id: str, key: str, fork: str | None = None) -> dict[str, Any]:
        """One context item."""
        import msgspec

        with hint_to_join(id):
            found: dict[str, Any] = msgspec.to_builtins(await self._client.context(id, key, fork))
        return found

    async def transcript(self, id: str, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """The messages that the caller may read."""
        async for envelope in self._client.history(id, after):
            yield envelope_to_wire(envelope)

    async def head(self, id: str) -> str:  # noqa: ARG002 - only the local store has it
        """Empty: only the local store has it."""
        return ""


@contextmanager
def hint_to_join(session: str) -> Iterator[None]:
    """Add how to join to the refusal of a server that does not know the caller as a member."""
    from accord.client import ServerRefused

    try:
        yield
    except ServerRefused as refusal:
        if refusal.code != SESSION_NOT_FOUND:
            raise
        raise Refused(Reason.NO_ROOM, f"{refusal.message}{join_hint(session)}") from None


def envelope_to_wire(envelope: "Envelope") -> dict[str, Any]:
    """The envelope as JSON, as the server sends it."""
    import msgspec

    from accord.core.dialects import pvp

    sent = pvp.OutgoingEnvelope(
        pvp.VERSION,
        envelope.id,
        envelope.ts,
        envelope.session,
        envelope.sender,
        envelope.type,
        envelope.body,
        envelope.ref,
        envelope.seq,
        envelope.causal_refs,
        envelope.fork,
    )
    wire: dict[str, Any] = msgspec.to_builtins(sent)
    return wire
