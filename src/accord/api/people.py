"""Requests and responses about signing in, devices, invitations and people."""

from typing import Annotated

import msgspec
from msgspec import Meta

from accord.api.responses import ResponseObject
from accord.core.kernel.actor import DEFAULT_WORKSPACE
from accord.core.kernel.role_permissions import Kind, Role, Roles
from accord.core.people.devices import Nonce

Base64 = Annotated[str, Meta(max_length=128, pattern="^[A-Za-z0-9+/]+={0,2}$")]


class SignInRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A one-time code; with a public key (Ed25519, 32 bytes in base64) the answer is a profile."""

    code: Annotated[str, Meta(min_length=1, max_length=128)]
    public_key: Base64 | None = None


class RefreshRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A proof of a device's key: the signature over address, device, time and nonce, in base64.

    `time` is milliseconds since 1970 and at most 60 s off; a nonce is good once.
    """

    device: Annotated[str, Meta(min_length=1, max_length=128)]
    address: Annotated[str, Meta(min_length=1, max_length=512, pattern="^[!-~]+$")]
    time: Annotated[int, Meta(ge=0, le=2**50)]
    nonce: Nonce
    signature: Base64


class AgentEnrolment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent of the caller's and the public key of its device (Ed25519, 32 bytes in base64).

    `supervises`: the key is that of the program which holds the agent's terminal.
    """

    id: Annotated[str, Meta(min_length=1, max_length=128)]
    roles: Roles
    public_key: Base64
    name: Annotated[str, Meta(max_length=128)] = ""
    supervises: bool = False


class InvitationRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whom to invite; without an `id` the server makes one up."""

    roles: Roles
    id: str = ""
    name: str = ""
    workspace: str = DEFAULT_WORKSPACE


class Account(ResponseObject, frozen=True):
    """Who the caller is; `device` is empty for a token that an operator issued."""

    server: str
    address: str
    id: str
    type: Kind
    roles: tuple[Role, ...]
    workspace: str
    name: str
    device: str
    expires_at: str


class SignedIn(Account, frozen=True):
    """A new profile; a browser has its token in a cookie instead."""

    token: str | None


class RefreshedToken(ResponseObject, frozen=True):
    """A short token of a device."""

    token: str
    expires_at: str


class ListedDevice(ResponseObject, frozen=True):
    """A signed-in device; a browser holds a cookie instead of a key.

    `by` is the person who enrolled an agent, empty for a person's own device.
    """

    id: str
    principal: str
    type: Kind
    by: str
    workspace: str
    roles: tuple[Role, ...]
    browser: bool
    added_at: str


class DeviceList(ResponseObject, frozen=True):
    """Devices, oldest first."""

    devices: tuple[ListedDevice, ...]


class ListedInvitation(ResponseObject, frozen=True):
    """An invitation or sign-in code that was not used yet; the code itself is not stored."""

    id: str
    principal: str
    workspace: str
    roles: tuple[Role, ...]
    by: str
    invitation: bool
    issued_at: str
    expires_at: str


class InvitationList(ResponseObject, frozen=True):
    """Unused invitations and sign-in codes, oldest first."""

    invitations: tuple[ListedInvitation, ...]


class IssuedInvitation(ListedInvitation, frozen=True):
    """A new invitation; this is the only place where its code is shown."""

    code: str


class Person(ResponseObject, frozen=True):
    """A principal, and what lets it in."""

    id: str
    workspace: str
    type: Kind
    roles: tuple[Role, ...]
    tokens: int
    devices: int
    invitations: int


class PersonList(ResponseObject, frozen=True):
    """Everyone with a token, a device or an invitation, by id."""

    people: tuple[Person, ...]


class Removal(ResponseObject, frozen=True):
    """What ended when a person was removed."""

    tokens: int
    devices: int
    invitations: int
    sessions: int
