"""The context `people`: which credentials were issued, so that they can be listed and revoked."""

from collections.abc import Iterator

from accord.core.kernel.actor import Actor
from accord.core.kernel.context import Command, Context, Deciders, Evolvers
from accord.core.kernel.messages import Instant
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Permission, Permissions
from accord.core.people import (
    agent_enrolment,
    devices,
    removal,
    sign_in,
    sign_in_codes,
    signed_policies,
    signing_keys,
    tokens,
)
from accord.core.people.state import People, is_operator_or_system, swept_at
from accord.core.people.tokens import TokenSweep


def permissions_of(people: People, actor: Actor) -> Permissions:
    """Operators may do everything here, everyone else only what concerns themselves."""
    everyone = frozenset({Permission.ENTER})
    return everyone | {Permission.SERVER_ONLY} if is_operator_or_system(actor) else everyone


def admit(people: People, command: Command) -> None:
    """Refuse actors that are not operators."""
    if command.message.body.needs not in permissions_of(people, command.actor):
        raise Refused(Reason.FORBIDDEN, "Only operators may manage people, tokens and keys")


def deadlines(people: People, policy: object) -> Iterator[Instant]:
    """When tokens, revocations and codes can be removed."""
    yield from (swept_at(token.expires_at) for token in people.tokens.values())
    yield from (swept_at(end) for end in people.revoked.values() if end is not None)
    yield from (swept_at(code.expires_at) for code in people.codes.values())


def knows_id(people: People, id: str, seat: str) -> bool:
    """Whether the state already contains the id, so that the log need not be searched."""
    return id in people.tokens or id in people.keys


PARTS = (
    tokens,
    signing_keys,
    sign_in_codes,
    devices,
    sign_in,
    agent_enrolment,
    removal,
    signed_policies,
)
DECIDE: Deciders = {body: rule for part in PARTS for body, rule in part.DECIDE.items()}
EVOLVE: Evolvers = {event: rule for part in PARTS for event, rule in part.EVOLVE.items()}
CONTEXT: Context[People] = Context(
    name="people",
    initial_state=lambda stream: People(id=stream.removeprefix("people/")),
    decide=DECIDE,
    evolve=EVOLVE,
    admit=admit,
    deadlines=deadlines,
    tick_body=TokenSweep(),
    knows_id=knows_id,
    state_type=People,
)
