"""Given events, when somebody asks, then events: the words for tests about people."""

from collections.abc import Iterable

from accord.core.kernel.actor import TIMER_ACTOR, Actor, CredentialRights
from accord.core.kernel.context import Command, fold
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.records import Event, Record
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.people.context import CONTEXT
from accord.core.people.state import People, SigningKey, Token

T0 = 1_750_000_000_000
HOUR = 3_600_000
STREAM = "people/default"

ADMIN = CredentialRights(roles=frozenset({Role.ADMIN}))
OLGA = Actor(principal="olga", kind=Kind.HUMAN, credential=ADMIN)
OTTO = Actor(principal="otto", kind=Kind.HUMAN, workspace="elsewhere", credential=ADMIN)
BOB = Actor(
    principal="bob",
    kind=Kind.HUMAN,
    credential=CredentialRights(roles=frozenset({Role.DRIVER, Role.APPROVER})),
)
ROBOT = Actor(principal="robot", kind=Kind.AGENT, credential=ADMIN)
ANYBODY = Actor(principal="anybody", kind=Kind.HUMAN)

FIRST = SigningKey("K1", "-----BEGIN PUBLIC KEY-----\nfirst\n-----END PUBLIC KEY-----\n")
SECOND = SigningKey("K2", "-----BEGIN PUBLIC KEY-----\nsecond\n-----END PUBLIC KEY-----\n")


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
    return then(CONTEXT.initial_state(STREAM), events)


def then(people: People, events: Iterable[Event]) -> People:
    """The state after these events."""
    return fold(CONTEXT, people, (record(event) for event in events))


def record(event: Event) -> Record:
    return Record(STREAM, 1, 0, "R1", T0, "olga", "M1", "", "olga", event)


def when(people: People, actor: Actor, body: Body, at: int = T0) -> list[Event]:
    message = Message("M1", "2026-01-30T20:00:00.000Z", "default", actor.principal, body)
    ask = Command(message, actor, at, {}, None)
    CONTEXT.admit(people, ask)
    facts = list(CONTEXT.decide[type(body)](people, ask, body))
    return [fact for fact in facts if isinstance(fact, Event)]


def tick(people: People, at: int) -> list[Event]:
    return when(people, TIMER_ACTOR, CONTEXT.tick_body, at)
