"""An agent's own identity: a key made here, enrolled by a person, revoked when it is over."""

import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from accord.api.people import Account, AgentEnrolment, SignedIn
from accord.client.client import Client
from accord.client.errors import ClientError
from accord.client.http_client import HttpClient
from accord.client.identity import Token, parse_address
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role, Roles
from accord.hosts.connection_token import ConnectionToken
from accord.hosts.connections import Connection, new_connection_id
from accord.settings.profile_store import new_device_key
from accord.settings.profiles import ProfileError, server_address

ACCOUNT_PATH = ("sign-in",)
AGENTS_PATH = ("sign-in", "agents")
DEVICES_PATH = ("sign-in", "devices")
# What an agent gets of its person's roles, the first that the person has.
PREFERRED_ROLES = (Role.DRIVER, Role.NAVIGATOR, Role.ADVERSARY, Role.APPROVER)


async def account_of(url: str, token: Token) -> Account:
    """Who the caller is; refuses anyone who is not a person."""
    account = await HttpClient(parse_address(url), token).read(Account, ACCOUNT_PATH)
    if account.type != "human":
        raise Refused(
            Reason.FORBIDDEN,
            f"{account.id} is an agent; only a person can connect a host. Log in as yourself",
        )
    return account


def agent_roles(person: Iterable[Role]) -> Roles:
    """The roles that an agent of this person gets; those of the person at most."""
    own = frozenset(person)
    if Role.ADMIN in own:
        return frozenset({Role.DRIVER})
    found = [role for role in PREFERRED_ROLES if role in own]
    if not found:
        raise Refused(
            Reason.FORBIDDEN, "Observers cannot connect an agent; ask an operator for another role"
        )
    return frozenset(found[:1])


class ConnectionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a person wants to connect."""

    host: str
    title: str
    root: Path
    repository: str
    url: str
    session: str
    agent: str
    id: str = ""
    fork: str = ""
    supervises: bool = False
    price: tuple[float, float] | None = None


async def enrol(request: ConnectionRequest, token: Token, person: Account) -> Connection:
    """Make a key, and let the server know it as that of an agent; raises Refused."""
    private, public = new_device_key()
    enrolment = AgentEnrolment(
        id=request.agent,
        roles=agent_roles(person.roles),
        public_key=public,
        name=f"{request.title} of {person.name or person.id}"[:128],
        supervises=request.supervises,
    )
    http = HttpClient(parse_address(request.url), token)
    body = msgspec.json.encode(enrolment)
    enrolled = await http.read(SignedIn, AGENTS_PATH, method="POST", body=body)
    return Connection(
        id=request.id or new_connection_id(request.host),
        host=request.host,
        root=str(request.root),
        url=server_address(request.url),
        server=enrolled.server,
        session=request.session,
        agent=enrolled.id,
        device=enrolled.device,
        key=private,
        created_at=int(time.time()),
        repository=request.repository,
        person=person.id,
        fork=request.fork,
        price=request.price,
    )


async def join_session(connection: Connection) -> None:
    """Make the agent a member of its session; raises what the client raises."""
    async with Client(connection.url, token=ConnectionToken(connection)) as client:
        await client.join(connection.session, listen=False)


async def revoke(connection: Connection) -> bool:
    """Revoke the agent's key with the key itself; False if the server did not confirm.

    With its last key the agent leaves its sessions.
    """
    http = HttpClient(parse_address(connection.url), ConnectionToken(connection))
    try:
        await http.request((*DEVICES_PATH, connection.device), method="DELETE")
    except (ClientError, ProfileError):
        return False
    return True
