"""Signed policies: how calls of agents are classed in a repository, in the name of an operator."""

from collections.abc import Iterator
from hashlib import sha256

from msgspec.structs import replace

from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission

from .state import Id, People, PolicyText, SignedPolicy, administers, known_key

MAX_POLICIES = 1000


class PolicySign(Body, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Make this text the policy of a repository; only the newest one counts."""

    type = "policy.sign"
    needs = Permission.SERVER_ONLY

    repository: Id
    workspace: Id
    digest: Id
    text: PolicyText


class PolicySigned(Event, frozen=True, kw_only=True, gc=False):
    """An operator signed the policy of a repository."""

    name = "policy.signed"

    repository: str
    workspace: str
    digest: str
    text: str
    by: str


def sign_policy(people: People, command: Command, body: PolicySign) -> Iterator[EventOrEffect]:
    """Only a human whose token grants admin; not the server, and not a role in a session."""
    if command.actor.kind is not Kind.HUMAN or not administers(command.actor, body.workspace):
        detail = "Only a person with an admin token of this workspace can sign a policy"
        raise Refused(Reason.FORBIDDEN, detail)
    if sha256(body.text.encode()).hexdigest() != body.digest:
        raise Refused(Reason.MALFORMED, "The digest is not that of the text; sign the file again")
    key = known_key(body.workspace, body.repository)
    if key not in people.policies and len(people.policies) >= MAX_POLICIES:
        detail = f"{MAX_POLICIES} repositories have a policy, the most that a server keeps"
        raise Refused(Reason.TOO_MANY, detail)
    yield PolicySigned(
        repository=body.repository,
        workspace=body.workspace,
        digest=body.digest,
        text=body.text,
        by=command.actor.principal,
    )


def on_signed(people: People, event: PolicySigned, record: Record) -> People:
    signed = SignedPolicy(
        repository=event.repository,
        digest=event.digest,
        text=event.text,
        by=event.by,
        at=record.at,
    )
    key = known_key(event.workspace, event.repository)
    return replace(people, policies={**people.policies, key: signed})


DECIDE: Deciders = {PolicySign: sign_policy}
EVOLVE: Evolvers = {PolicySigned: on_signed}
