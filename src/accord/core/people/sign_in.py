"""Signing in: uses up a one-time code, adds a device and gives it its first token."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.messages import Body, Instant
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Permission

from .devices import MAX_DEVICES_PER_PRINCIPAL, DeviceAdded, token_for
from .sign_in_codes import CodeUsed, find_code
from .state import Device, Id, People, SignInCode
from .tokens import TokenIssued


class SignIn(Body, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Use a one-time code; `digest` is its hash, `key` the id of the server's signing key.

    `now` is the wall clock, which tokens are checked against.
    """

    type = "device.sign_in"
    needs = Permission.SERVER_ONLY

    digest: str
    device: Id
    jti: Id
    key: Id
    now: Instant
    public_key: Annotated[str, Meta(max_length=64)] = ""
    address: Annotated[str, Meta(max_length=512)] = ""


def sign_in(people: People, command: Command, body: SignIn) -> Iterator[EventOrEffect]:
    """Burn the code, add the device and give it its first token."""
    code = find_code(people, body.digest, body.now)
    owned = [each for each in people.devices.values() if is_owned_by(each, code)]
    if len(owned) >= MAX_DEVICES_PER_PRINCIPAL:
        detail = f"{code.principal} has {len(owned)} devices; revoke some first"
        raise Refused(Reason.TOO_MANY, detail)
    if body.device in people.devices or body.jti in people.tokens:
        raise Refused(Reason.KEY_REUSED, "The id of the device or its token is already in use")
    device = Device(
        id=body.device,
        principal=code.principal,
        roles=code.roles,
        added_at=body.now,
        workspace=code.workspace,
        name=code.name,
        public_key=body.public_key,
        address=body.address,
    )
    yield CodeUsed(id=code.id)
    yield DeviceAdded(device=device)
    yield TokenIssued(token=token_for(device, body.jti, body.key, body.now))


def is_owned_by(device: Device, code: SignInCode) -> bool:
    """Whether the device belongs to the person that the code is for."""
    return (device.workspace, device.principal) == (code.workspace, code.principal)


DECIDE: Deciders = {SignIn: sign_in}
EVOLVE: Evolvers = {}
