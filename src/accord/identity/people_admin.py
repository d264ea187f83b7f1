"""Inviting, listing and removing people, for one operator, on the engine's log."""

import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

import msgspec

from accord.api.people import (
    InvitationRequest,
    IssuedInvitation,
    ListedDevice,
    ListedInvitation,
    Person,
    Removal,
)
from accord.api.policies import PolicyRequest, SignedPolicyText
from accord.core.kernel.actor import Actor
from accord.core.kernel.messages import Body, Instant
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Roles
from accord.core.kernel.timestamps import to_iso
from accord.core.kernel.ulid import ulid
from accord.core.people.devices import DeviceRevoke, DeviceRevoked, may_revoke
from accord.core.people.removal import PersonRemove, revocations
from accord.core.people.sign_in_codes import (
    CODE_LIFE_MS,
    INVITATION_LIFE_MS,
    CodeIssue,
    CodeRevoke,
    CodeRevoked,
)
from accord.core.people.signed_policies import PolicySign
from accord.core.people.state import (
    CLOCK_SKEW_MS,
    Device,
    People,
    SignInCode,
    administers,
    known_key,
)
from accord.core.people.tokens import TokenRevoked
from accord.engine.ports import Clock
from accord.identity.sign_in_crypto import code_digest, new_code

RANDOM_ID_BYTES = 3
BodyType = TypeVar("BodyType", bound=Body)


class PeopleLog(Protocol):
    """The stream that holds people, their devices and their codes."""

    clock: Clock

    async def people(self) -> People:
        """Its present state."""
        ...

    async def record(self, actor: Actor, body: Body) -> None:
        """Record it; raises Refused."""
        ...

    async def sessions_with(self, workspace: str, principal: str) -> int:
        """In how many open sessions this principal is a member."""
        ...

    async def end_memberships(self, workspace: str, principal: str) -> None:
        """Leave every session for a principal who has no token and no device any more."""
        ...


class LocalPeopleAdmin:
    """Manages people for one actor; the rules of `people` refuse what the actor may not do."""

    def __init__(self, log: PeopleLog, actor: Actor) -> None:
        self._log = log
        self._actor = actor

    async def invite(
        self, request: InvitationRequest, *, invitation: bool = True
    ) -> IssuedInvitation:
        """A one-time code for a person; an invitation lasts longer than a plain code."""
        now, text = self._log.clock.now(), new_code()
        life = INVITATION_LIFE_MS if invitation else CODE_LIFE_MS
        fields = {
            "id": ulid(now, secrets.token_bytes(10)),
            "digest": code_digest(text),
            "principal": request.id or f"guest-{secrets.token_hex(RANDOM_ID_BYTES)}",
            "roles": sorted(request.roles),
            "issued_at": now,
            "expires_at": now + life,
            "workspace": request.workspace,
            "name": request.name,
            "invitation": invitation,
            "by": self._actor.principal,
        }
        try:
            code = msgspec.convert(fields, SignInCode)
        except msgspec.ValidationError as error:
            raise Refused(Reason.MALFORMED, f"No such invitation can be made: {error}") from None
        await self._log.record(self._actor, CodeIssue(code))
        return IssuedInvitation(**msgspec.structs.asdict(listed_code(code)), code=text)

    async def invitations(self) -> Sequence[ListedInvitation]:
        """Unused invitations and codes of the workspaces that the actor administers."""
        people, now = await self._log.people(), self._log.clock.now()
        return [
            listed_code(code)
            for code in people.codes.values()
            if administers(self._actor, code.workspace) and code.expires_at > now
        ]

    async def revoke_invitation(self, id: str, reason: str = "") -> None:
        """Make an unused invitation useless."""
        await self._log.record(self._actor, checked(CodeRevoke, id=id, reason=reason))

    async def devices(self) -> Sequence[ListedDevice]:
        """The actor's own devices, and for operators those of their workspaces."""
        people = await self._log.people()
        return [
            listed_device(device)
            for device in people.devices.values()
            if may_revoke(self._actor, device)
        ]

    async def revoke_device(self, id: str, reason: str = "") -> None:
        """Sign a device out; its connections end, and with the last one the memberships."""
        device = (await self._log.people()).devices.get(id)
        await self._log.record(self._actor, checked(DeviceRevoke, id=id, reason=reason))
        if device is not None:
            await self._log.end_memberships(device.workspace, device.principal)

    async def sign_policy(self, request: PolicyRequest) -> SignedPolicyText:
        """Make a text the policy of a repository; returns what was recorded."""
        workspace = request.workspace or self._actor.workspace
        body = PolicySign(
            repository=request.repository,
            workspace=workspace,
            digest=request.digest,
            text=request.text,
        )
        await self._log.record(self._actor, body)
        signed = (await self._log.people()).policies[known_key(workspace, body.repository)]
        return SignedPolicyText(
            repository=signed.repository,
            digest=signed.digest,
            text=signed.text,
            by=signed.by,
            signed_at=to_iso(signed.at),
        )

    async def remove(self, id: str, workspace: str, reason: str = "") -> Removal:
        """Revoke everything that lets a principal in, and end all its memberships."""
        sessions = await self._log.sessions_with(workspace, id)
        body = checked(PersonRemove, id=id, workspace=workspace, reason=reason, sessions=sessions)
        people = await self._log.people()
        ended = Counter(type(event) for event in revocations(people, body))
        await self._log.record(self._actor, body)
        for principal in (id, *agents_of(people, workspace, id)):
            await self._log.end_memberships(workspace, principal)
        return Removal(
            tokens=ended[TokenRevoked],
            devices=ended[DeviceRevoked],
            invitations=ended[CodeRevoked],
            sessions=sessions,
        )

    async def people(self) -> Sequence[Person]:
        """Everyone who has a token, a device or an invitation, by id."""
        people, now = await self._log.people(), self._log.clock.now()
        return sorted(persons(people, now, self._actor), key=lambda each: (each.workspace, each.id))


def agents_of(people: People, workspace: str, person: str) -> list[str]:
    """The agents with a device that this person enrolled."""
    devices = people.devices.values()
    found = (each.principal for each in devices if (each.workspace, each.by) == (workspace, person))
    return sorted(set(found))


def persons(people: People, now: Instant, actor: Actor) -> Iterator[Person]:
    """One entry for each principal that can get in, with all roles that it has anywhere."""
    tokens = [
        ((token.workspace, token.id), token.kind, token.roles)
        for token in people.tokens.values()
        if token.jti not in people.revoked and token.expires_at + CLOCK_SKEW_MS > now
    ]
    devices = [
        ((device.workspace, device.principal), device.kind, device.roles)
        for device in people.devices.values()
    ]
    codes = [
        ((code.workspace, code.principal), Kind.HUMAN, code.roles)
        for code in people.codes.values()
        if code.expires_at > now
    ]
    kinds = {who: kind for who, kind, _ in (*codes, *devices, *tokens)}
    roles: dict[tuple[str, str], Roles] = {}
    for who, _, granted in (*tokens, *devices, *codes):
        roles[who] = roles.get(who, frozenset()) | granted
    counts = [Counter(who for who, *_ in each) for each in (tokens, devices, codes)]
    for who, kind in kinds.items():
        workspace, id = who
        if administers(actor, workspace):
            yield Person(
                id=id,
                workspace=workspace,
                type=kind,
                roles=tuple(sorted(roles[who])),
                tokens=counts[0][who],
                devices=counts[1][who],
                invitations=counts[2][who],
            )


def checked(kind: type[BodyType], **fields: str | int) -> BodyType:
    """The body, if its fields are valid; raises Refused."""
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise Refused(Reason.MALFORMED, f"Invalid request: {error}") from None


def listed_code(code: SignInCode) -> ListedInvitation:
    """An invitation as operators see it."""
    return ListedInvitation(
        id=code.id,
        principal=code.principal,
        workspace=code.workspace,
        roles=tuple(sorted(code.roles)),
        by=code.by,
        invitation=code.invitation,
        issued_at=to_iso(code.issued_at),
        expires_at=to_iso(code.expires_at),
    )


def listed_device(device: Device) -> ListedDevice:
    """A device as its owner and operators see it."""
    return ListedDevice(
        id=device.id,
        principal=device.principal,
        type=device.kind,
        by=device.by,
        workspace=device.workspace,
        roles=tuple(sorted(device.roles)),
        browser=not device.public_key,
        added_at=to_iso(device.added_at),
    )
