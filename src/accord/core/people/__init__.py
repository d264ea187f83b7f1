"""People: who holds which credential, so that one can be found, listed and taken back."""

from collections.abc import Iterator

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import May, Verbs
from accord.core.kernel.log import Ask, Context, Deciders, Evolvers, Instant
from accord.core.kernel.refusal import Refused, Why

from . import keys, tokens
from .state import People, gone_at, serves
from .tokens import TokenSweep


def may(people: People, actor: Actor) -> Verbs:
    """All or nothing: there is one verb here."""
    return frozenset({May.SERVE}) if serves(actor) else frozenset()


def admit(people: People, ask: Ask) -> None:
    """Refuse whoever may not ask this."""
    if ask.message.body.needs not in may(people, ask.actor):
        raise Refused(Why.FORBIDDEN, "Only operators look after tokens and keys")


def deadlines(people: People, house: object) -> Iterator[Instant]:
    """When something here will have expired."""
    yield from (gone_at(token.expires_at) for token in people.tokens.values())
    yield from (gone_at(end) for end in people.revoked.values() if end is not None)


def knows(people: People, id: str, seat: str) -> bool:
    """Whether the state itself vouches for the id, so that no look-up is needed."""
    return id in people.tokens or id in people.keys


DECIDE: Deciders = {**tokens.DECIDE, **keys.DECIDE}
EVOLVE: Evolvers = {**tokens.EVOLVE, **keys.EVOLVE}
CONTEXT: Context[People] = Context(
    name="people",
    start=lambda stream: People(id=stream.removeprefix("people/")),
    decide=DECIDE,
    evolve=EVOLVE,
    admit=admit,
    deadlines=deadlines,
    tick=TokenSweep(),
    knows=knows,
    state=People,
)
