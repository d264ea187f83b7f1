"""Devices: given short tokens for proofs of their key, and revoked. `sign_in.py` adds them."""

from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.actor import Actor
from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.messages import Body, Instant
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Capability, Permission

from . import tokens
from .state import (
    Device,
    Id,
    People,
    Renewals,
    Sentence,
    Token,
    administers,
    is_operator_or_system,
)
from .tokens import TokenIssued, TokenRevoke, TokenRevoked

# A device renews its token before this ends; a browser has no key and signs in again.
DEVICE_TOKEN_LIFE_S = 3600
BROWSER_TOKEN_LIFE_S = 7 * 86_400
# How far a proof's time may be from the server's.
PROOF_WINDOW_MS = 60_000
# For this long, further proofs of a device get the token that the first one got.
SAME_TOKEN_MS = 60_000
MAX_PROOFS_IN_WINDOW = 120
MAX_DEVICES_PER_PRINCIPAL = 100

BAD_DEVICE_DETAIL = "This device is not signed in, or was revoked; log in again with a new link"

Nonce = Annotated[str, Meta(min_length=16, max_length=64, pattern="^[A-Za-z0-9_-]+$")]


class DeviceRenew(Body, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Give a device a token for a proof whose signature was verified."""

    type = "device.renew"
    needs = Permission.SERVER_ONLY

    device: Id
    address: str
    time: Instant
    nonce: Nonce
    jti: Id
    key: Id
    now: Instant


class DeviceRevoke(Body, frozen=True, omit_defaults=True, gc=False):
    """Sign a device out for good."""

    type = "device.revoke"
    needs = Permission.ENTER

    id: Id
    reason: Sentence = ""


class DeviceAdded(Event, frozen=True, kw_only=True, gc=False):
    """A device signed in with a one-time code, or a person gave an agent a key."""

    name = "device.added"

    device: Device


class DeviceRenewed(Event, frozen=True, kw_only=True, gc=False):
    """A device proved its key and got this token; the proof is good for nothing more."""

    name = "device.renewed"

    device: str
    jti: str
    nonce: str
    time: Instant
    now: Instant


class DeviceRevoked(Event, frozen=True, kw_only=True, gc=False):
    """A device was revoked; its tokens were, too."""

    name = "device.revoked"

    id: str
    reason: str = ""


SUPERVISES = frozenset({Capability.SUPERVISE})


def token_for(device: Device, jti: str, key: str, now: Instant) -> Token:
    """The token that this device gets now."""
    life_s = DEVICE_TOKEN_LIFE_S if device.public_key else BROWSER_TOKEN_LIFE_S
    issued_at = now // 1000 * 1000
    return Token(
        jti=jti,
        id=device.principal,
        kind=device.kind,
        roles=device.roles,
        issued_at=issued_at,
        expires_at=issued_at + life_s * 1000,
        key=key,
        workspace=device.workspace,
        name=device.name,
        device=device.id,
        capabilities=SUPERVISES if device.supervises else frozenset(),
    )


def renew(people: People, command: Command, body: DeviceRenew) -> Iterator[EventOrEffect]:
    """Give the device the token of the last minute, or a new one."""
    device = people.devices.get(body.device)
    if device is None or not device.public_key:
        raise Refused(Reason.UNAUTHENTICATED, BAD_DEVICE_DETAIL)
    check_proof(people, device, body)
    renewals = people.renewals.get(device.id)
    token = people.tokens.get(renewals.jti) if renewals else None
    if (
        renewals is None
        or token is None
        or token.jti in people.revoked
        or token.key != body.key
        or not 0 <= body.now - renewals.given_at < SAME_TOKEN_MS
    ):
        token = token_for(device, body.jti, body.key, body.now)
        yield TokenIssued(token=token)
    yield DeviceRenewed(
        device=device.id, jti=token.jti, nonce=body.nonce, time=body.time, now=body.now
    )


def check_proof(people: People, device: Device, body: DeviceRenew) -> None:
    """Refuse a proof for another server, of another time, or one that was used before."""
    if body.address != device.address:
        raise Refused(
            Reason.UNAUTHENTICATED,
            f"The proof is for {body.address[:100]}, but this device signed in to "
            f"{device.address}; log in again at this address",
        )
    if abs(body.now - body.time) > PROOF_WINDOW_MS:
        seconds = PROOF_WINDOW_MS // 1000
        raise Refused(
            Reason.UNAUTHENTICATED,
            f"The proof's time is more than {seconds} s off the server's; set this machine's clock",
        )
    renewals = people.renewals.get(device.id)
    used = recent_nonces(renewals, body.now)
    if body.nonce in used:
        raise Refused(Reason.UNAUTHENTICATED, "This proof was used before; make a new one")
    if len(used) >= MAX_PROOFS_IN_WINDOW:
        raise Refused(
            Reason.TOO_MANY,
            f"More than {MAX_PROOFS_IN_WINDOW} proofs of this device in a minute; wait a minute",
            {"retry_after_ms": PROOF_WINDOW_MS},
        )


def recent_nonces(renewals: Renewals | None, now: Instant) -> dict[str, Instant]:
    """The proofs that were used and would otherwise still be accepted."""
    known = renewals.nonces.items() if renewals else ()
    return {nonce: time for nonce, time in known if time + PROOF_WINDOW_MS >= now}


def revoke_device(people: People, command: Command, body: DeviceRevoke) -> Iterator[EventOrEffect]:
    """The owner and the operators of the workspace may; for all others there is no such device."""
    device = people.devices.get(body.id)
    if device is None or not may_revoke(command.actor, device):
        raise Refused(Reason.NOT_FOUND, f"There is no device {body.id} that you could revoke")
    yield from end_device(people, device.id, body.reason)


def revoke_token(people: People, command: Command, body: TokenRevoke) -> Iterator[EventOrEffect]:
    """The device of a revoked token is revoked too: it would only get itself another token."""
    revoked = tuple(tokens.revoke_token(people, command, body))
    yield from revoked
    token = people.tokens.get(body.jti)
    if revoked and token is not None and token.device in people.devices:
        ended = end_device(people, token.device, body.reason)
        yield from (event for event in ended if event not in revoked)


def may_revoke(actor: Actor, device: Device) -> bool:
    """Whether this is the device's owner, the person who enrolled the agent, or an operator."""
    own = actor.workspace == device.workspace and actor.principal in {device.principal, device.by}
    return own or (is_operator_or_system(actor) and administers(actor, device.workspace))


def end_device(people: People, id: str, reason: str) -> Iterator[Event]:
    """Revoke a device together with its tokens."""
    for token in people.live_tokens_of(id):
        yield TokenRevoked(jti=token.jti, reason=reason, expires_at=token.expires_at)
    yield DeviceRevoked(id=id, reason=reason)


def on_added(people: People, event: DeviceAdded, record: Record) -> People:
    return replace(people, devices={**people.devices, event.device.id: event.device})


def on_renewed(people: People, event: DeviceRenewed, record: Record) -> People:
    """Proofs whose time has passed would be refused anyway and are forgotten."""
    before = people.renewals.get(event.device)
    given_at = before.given_at if before and before.jti == event.jti else event.now
    nonces = {**recent_nonces(before, event.now), event.nonce: event.time}
    after = Renewals(event.jti, given_at, nonces)
    return replace(people, renewals={**people.renewals, event.device: after})


def on_revoked(people: People, event: DeviceRevoked, record: Record) -> People:
    devices = {id: device for id, device in people.devices.items() if id != event.id}
    renewals = {id: each for id, each in people.renewals.items() if id != event.id}
    return replace(people, devices=devices, renewals=renewals)


DECIDE: Deciders = {
    DeviceRenew: renew,
    DeviceRevoke: revoke_device,
    TokenRevoke: revoke_token,
}
EVOLVE: Evolvers = {
    DeviceAdded: on_added,
    DeviceRenewed: on_renewed,
    DeviceRevoked: on_revoked,
}
