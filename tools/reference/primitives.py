"""Message types: what each asks, of whom, and what stands in it."""

from collections.abc import Iterator

from msgspec import Struct

from accord.core.dialects import pvp
from accord.core.kernel.messages import Body, Lifetime
from accord.core.room.membership.joining import SessionJoin
from tools.reference.markdown import capital, first, plain, table
from tools.reference.rules import holders
from tools.reference.shapes import LINKS, field_table, fields, first_sentence, nested
from tools.reference.words import sentences_of

CATEGORIES = (
    "session",
    "participant",
    "heartbeat",
    "presence",
    "context",
    "secret",
    "prompt",
    "thinking",
    "response",
    "tool",
    "gate",
    "interrupt",
    "fork",
    "merge",
    "error",
)
LIFETIMES = {Lifetime.FACT: "on the log", Lifetime.SIGNAL: "relayed, not kept"}


def bodies() -> list[type[Body]]:
    """Every type this server reads or writes, by category."""
    order = {name: place for place, name in enumerate(CATEGORIES)}
    return sorted(pvp.BODIES.values(), key=lambda body: order[category(body)])


def category(body: type[Body]) -> str:
    """`tool` for `tool.propose`."""
    return body.type.partition(".")[0]


def summary() -> Iterator[str]:
    """All types at a glance."""
    rows = (
        (
            f"[`{body.type}`](#{anchor(body.type)})",
            plain(first(first_sentence(body))),
            body.needs.value,
            LIFETIMES[body.lifetime],
        )
        for body in bodies()
    )
    yield from table(("Type", "What it does", "Needs", "Kept"), rows)


def anchor(name: str) -> str:
    """The anchor that Markdown renderers give a heading of this text."""
    return name.replace(".", "")


def payloads() -> Iterator[str]:
    """Each type with its fields."""
    remarks = sentences_of("remarks", [body.type for body in bodies()])
    for body in bodies():
        yield f"### `{body.type}`\n"
        yield plain(first(first_sentence(body)))
        yield f"\n{remarks[body.type]}\n"
        yield from facts(body)
        yield ""
        if fields(body):
            yield from field_table(body, f"fields.{body.type}")
        else:
            yield "Its payload is an empty object."
        if body is SessionJoin:
            yield (
                "\nOne more field is read at the door and goes no further: `token`, a signed token,"
                "\nfor connections that were opened without one."
            )
        yield ""


def facts(body: type[Body]) -> Iterator[str]:
    """Who, how long, when."""
    yield f"- Needs the right to {body.needs.value}: {holders(body.needs)}."
    yield f"- {capital(LIFETIMES[body.lifetime])}."
    yield f"- While the session is paused: {'accepted' if body.while_paused else 'refused'}."
    if body.after_end:
        yield "- Also accepted after the session has ended."


def shapes() -> Iterator[str]:
    """What fields are made of."""
    seen: dict[type[Struct], None] = {}
    for body in bodies():
        for each in nested(body):
            if each.__name__ not in LINKS and not issubclass(each, Body):
                seen[each] = None
    for each in sorted(seen, key=lambda shape: shape.__name__):
        yield f"### {each.__name__}\n"
        yield f"{plain(first_sentence(each))}\n"
        yield from field_table(each, f"shapes.{each.__name__}")
        yield ""


def envelope() -> Iterator[str]:
    """What surrounds every payload."""
    yield from field_table(pvp.IncomingEnvelope, "envelope")
