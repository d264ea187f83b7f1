"""Given events, when somebody asks, then events: the words for tests about people."""

from collections.abc import Iterable

from accord.core.kernel.actor import TIMER, Actor, Grant
from accord.core.kernel.authority import Kind, Role
from accord.core.kernel.log import Ask, Body, Event, Message, Record, fold
from accord.core.people import CONTEXT
from accord.core.people.state import Key, People, Token

T0 = 1_750_000_000_000
HOUR = 3_600_000
STREAM = "people/default"

ADMIN = Grant(roles=frozenset({Role.ADMIN}))
OLGA = Actor(seat="olga", kind=Kind.HUMAN, grant=ADMIN)
OTTO = Actor(seat="otto", kind=Kind.HUMAN, workspace="elsewhere", grant=ADMIN)
BOB = Actor(seat="bob", kind=Kind.HUMAN, grant=Grant(roles=frozenset({Role.DRIVER, Role.APPROVER})))
ROBOT = Actor(seat="robot", kind=Kind.AGENT, grant=ADMIN)
ANYBODY = Actor(seat="anybody", kind=Kind.HUMAN)

FIRST = Key("K1", "-----BEGIN PUBLIC KEY-----\nfirst\n-----END PUBLIC KEY-----\n")
SECOND = Key("K2", "-----BEGIN PUBLIC KEY-----\nsecond\n-----END PUBLIC KEY-----\n")


def token(jti: str = "J1", **changes: object) -> Token:
    fields: dict[str, object] = {
        "jti": jti,
        "id": "alice",
        "kind": Kind.HUMAN,
        "roles": frozenset({Role.DRIVER}),
        "issued_at": T0,
        "expires_at": T0 + 12 * HOUR,
        "key": "K1",
    }
    return Token(**{**fields, **changes})  # type: ignore[arg-type]


def given(*events: Event) -> People:
    return then(CONTEXT.start(STREAM), events)


def then(people: People, events: Iterable[Event]) -> People:
    """The state after these events."""
    return fold(CONTEXT, people, (record(event) for event in events))


def record(event: Event) -> Record:
    return Record(STREAM, 1, 0, "R1", T0, "olga", "M1", "", "olga", event)


def when(people: People, actor: Actor, body: Body, at: int = T0) -> list[Event]:
    message = Message("M1", "2026-01-30T20:00:00.000Z", "default", actor.seat, body)
    ask = Ask(message, actor, at, {}, None)
    CONTEXT.admit(people, ask)
    facts = list(CONTEXT.decide[type(body)](people, ask, body))
    return [fact for fact in facts if isinstance(fact, Event)]


def tick(people: People, at: int) -> list[Event]:
    return when(people, TIMER, CONTEXT.tick, at)
