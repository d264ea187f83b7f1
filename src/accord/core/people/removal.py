"""Removing a person from the workspace: everything that lets them in ends at once."""

from collections.abc import Iterator

from accord.core.kernel.actor import DEFAULT_WORKSPACE
from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers, unchanged
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Permission

from .devices import DeviceRevoked
from .sign_in_codes import CodeRevoked
from .state import Id, People, Sentence, administers
from .tokens import TokenRevoked


class PersonRemove(Body, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Revoke all tokens, devices and invitations of a principal; `sessions` are those it is in."""

    type = "person.remove"
    needs = Permission.SERVER_ONLY

    id: Id
    workspace: Id
    reason: Sentence = ""
    sessions: int = 0


class PersonRemoved(Event, frozen=True, kw_only=True, gc=False):
    """A principal was removed from the workspace."""

    name = "person.removed"

    id: str
    workspace: str
    reason: str = ""


def remove_person(people: People, command: Command, body: PersonRemove) -> Iterator[EventOrEffect]:
    """Refused for oneself, and for a principal that has nothing here."""
    if not administers(command.actor, body.workspace):
        detail = f"You are not an operator of the workspace {body.workspace}"
        raise Refused(Reason.FORBIDDEN, detail)
    if body.id == command.actor.principal and body.workspace == command.actor.workspace:
        detail = "You cannot remove yourself; another operator can, and `accord logout` signs out"
        raise Refused(Reason.WRONG_STATE, detail)
    revoked = tuple(revocations(people, body))
    if not revoked and not body.sessions:
        raise Refused(Reason.NOT_FOUND, f"There is no {body.id} in the workspace {body.workspace}")
    yield from revoked
    yield PersonRemoved(id=body.id, workspace=body.workspace, reason=body.reason)


def revocations(people: People, body: PersonRemove) -> Iterator[Event]:
    """Tokens, devices and codes of the principal, its agents' devices, the invitations it made."""
    who = (body.workspace, body.id)
    devices = {
        device.id
        for device in people.devices.values()
        if device.workspace == body.workspace and body.id in {device.principal, device.by}
    }
    for token in people.tokens.values():
        theirs = (token.workspace, token.id) == who or token.device in devices
        if theirs and token.jti not in people.revoked:
            yield TokenRevoked(jti=token.jti, reason=body.reason, expires_at=token.expires_at)
    for id in people.devices:
        if id in devices:
            yield DeviceRevoked(id=id, reason=body.reason)
    for code in people.codes.values():
        # Operators of the default workspace invite into all of them.
        made = code.by == body.id and body.workspace in {code.workspace, DEFAULT_WORKSPACE}
        if made or (code.workspace, code.principal) == who:
            yield CodeRevoked(id=code.id, reason=body.reason)


DECIDE: Deciders = {
    PersonRemove: remove_person,
}
EVOLVE: Evolvers = {
    PersonRemoved: unchanged,
}
