"""Who the agent is: the agent of ACCORD_TOKEN, or one that a person enrols with a key of its own.

The key stays in the configuration directory, so the agent is the same one when it is started again,
and prompts that came meanwhile are answered then.
"""

import argparse
import asyncio
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from accord.cli import connection
from accord.cli.server_url import check_url
from accord.core.kernel.refusal import Reason, Refused

if TYPE_CHECKING:
    from accord.client.identity import Token
    from accord.hosts.connections import Connection

RECORD_HOST = "accord-agent"


class AgentIdentity(NamedTuple):
    """Whom the agent speaks as; without a token, on a server that takes ids on trust."""

    url: str
    id: str
    token: "Token | None" = None
    record: str = ""


async def agent_identity(args: argparse.Namespace, label: str, workdir: Path) -> AgentIdentity:
    """The identity that the arguments and the environment give; raises Refused."""
    from accord.client.identity import current_token, read_claims

    known = connection.resolve_settings(args.url, as_id=args.id)
    url = check_url(known.url or connection.DEFAULT_URL)
    if args.id:
        return AgentIdentity(url, args.id)
    token = connection.token_of(known)
    if token is None:
        raise Refused(Reason.UNAUTHENTICATED, connection.identity_hint(known))
    value = await asyncio.to_thread(current_token, token)
    claims = read_claims(value) if value else None
    if claims is not None and claims.kind == "agent":
        if args.agent not in {None, claims.agent_id}:
            raise Refused(
                Reason.MALFORMED,
                f"The token is that of {claims.agent_id}; leave out --agent {args.agent}",
            )
        return AgentIdentity(url, claims.agent_id, token)
    return await enrolled(args, label, workdir, url, token)


async def enrolled(
    args: argparse.Namespace, label: str, workdir: Path, url: str, token: "Token"
) -> AgentIdentity:
    """An agent of this person; the one that was enrolled before, if its key is still good."""
    from accord.hosts.connection_token import ConnectionToken
    from accord.hosts.connections import save_connection
    from accord.hosts.enrolment import ConnectionRequest, account_of, enrol

    person = await account_of(url, token)
    agent = args.agent or f"{person.id}-{label}"
    record = await known_record(url, agent, person.id)
    if record is None:
        request = ConnectionRequest(
            host=RECORD_HOST,
            title=label,
            root=workdir,
            repository="",
            url=url,
            session="",
            agent=agent,
        )
        record = await enrol(request, token, person)
        save_connection(os.environ, record)
    return AgentIdentity(url, record.agent, ConnectionToken(record), record.id)


async def known_record(url: str, agent: str, person: str) -> "Connection | None":
    """The record of this agent, unless its key was revoked."""
    from accord.client.errors import SignedOut
    from accord.hosts.connection_token import ConnectionToken
    from accord.hosts.connections import delete_connection, list_connections
    from accord.settings.profiles import server_address

    wanted = (RECORD_HOST, server_address(url), agent, person)
    for each in list_connections(os.environ):
        if (each.host, each.url, each.agent, each.person) == wanted:
            try:
                await asyncio.to_thread(ConnectionToken(each))
            except SignedOut:
                delete_connection(os.environ, each.id)
            else:
                return each
    return None


@contextmanager
def only_one(identity: AgentIdentity, session: str) -> Iterator[None]:
    """Keeps a second process on this machine from answering the same prompts."""
    from accord.settings.profiles import config_dir

    key = sha256(f"{identity.url}\n{identity.id}\n{session}".encode()).hexdigest()[:16]
    folder = Path(config_dir(os.environ)) / "agents"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle = os.open(folder / f"{key}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise Refused(
            Reason.WRONG_STATE,
            f"{identity.id} already runs in {session}; end that one, or choose another --agent ID",
        ) from None
    else:
        yield
    finally:
        os.close(handle)
