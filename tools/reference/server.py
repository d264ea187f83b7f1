"""What a running server offers, obeys and leaves on disk."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import accord
from accord.app import Options, Server
from accord.client.config import USUAL
from accord.config import ALL, LIMIT_SETTINGS, SETTINGS
from accord.core.dialects import canonical, nesting, pvp
from accord.core.dialects.codes import CODES
from accord.core.kernel.ids import LONGEST_ID
from accord.core.kernel.limits import LIMITS, Bound
from accord.core.kernel.log import Event
from accord.core.room.state import SessionConfig
from accord.pact import scaffold
from accord.stores.memory import MemoryLog
from accord.stores.sqlite import schema
from accord.transports import bucket, connection, hall, head, identity, metrics, websocket
from tools.reference.markdown import capital, code, codes, fenced, plain, table
from tools.reference.shapes import fields, in_words, promise, shown
from tools.reference.words import words

SOURCE = Path(accord.__file__).parent
VARIABLE = re.compile(r"\b(ACCORD_[A-Z]+|PACT_AGENT_ID|PACT_DIR|NO_COLOR|FORCE_COLOR)\b")
ENVELOPE = frozenset({"said", "ref", "to"})

MIB = 1 << 20
FIXED = {
    "sign-in": f"{connection.SIGN_IN_SECONDS} s",
    "silence": f"{websocket.PING_SECONDS} s",
    "messages": "200 a second",
    "message burst": f"{bucket.BURST_SECONDS} seconds' worth",
    "requests in a row": str(head.MOST_AT_ONCE),
    "token": f"{identity.LONGEST_TOKEN:,} bytes",
    "token life": f"{identity.SHORTEST_LIFE} s to {identity.LONGEST_LIFE // 86_400} days",
    "causal refs": str(pvp.MOST_REFS),
    "id": f"{LONGEST_ID} characters",
    "depth": f"{nesting.DEEPEST} levels",
    "pact file": f"{scaffold.LARGEST_TEXT // MIB} MiB",
}


def routes() -> Iterator[str]:
    """Every path with its methods."""
    found = sorted(_routes())
    said = words("http", [f"{method} {path}" for path, method in found])
    rows = ((code(method), code(path), said[f"{method} {path}"]) for path, method in found)
    yield from table(("Method", "Path", "What it does"), rows)


def _routes() -> Iterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as home:
        app = Server(Options(home=Path(home)), MemoryLog()).app()
    inner: Any = app
    while not hasattr(inner, "routes"):  # behind its guards
        inner = inner.app
    for route in inner.routes:
        for method in getattr(route, "methods", None) or ():
            if method != "HEAD":
                yield getattr(route, "path", ""), method
    yield from ((path, "upgrade") for path in hall.PATHS)


def measured() -> Iterator[str]:
    """Every metric with its labels."""
    rows = (
        (code(row.name), row.kind, codes(row.labels) or "–", row.help) for row in metrics.METRICS
    )
    yield from table(("Metric", "Kind", "Labels", "What it says"), rows)


def session_config() -> Iterator[str]:
    """The rules of a session, and what they are where nobody says otherwise."""
    said = words("config", SessionConfig.__struct_fields__)
    rows = (
        (
            code(field.name),
            in_words(field.type),
            _usual(field.name),
            said[field.name],
        )
        for field in fields(SessionConfig)
    )
    yield from table(("Field", "Type", "Usual", "Meaning"), rows)


def _usual(name: str) -> str:
    value = getattr(USUAL, name)
    return "every category but `file_read`" if isinstance(value, tuple) else shown(value)


def settings() -> Iterator[str]:
    """Every setting of a server, however it is set."""
    rows = (
        (
            code(each.key),
            code(each.flag) if each.says.flag else "–",
            code(each.variable),
            each.usually,
            each.allowed,
            f"{capital(each.says.sentence)}.",
        )
        for each in SETTINGS.values()
    )
    heads = ("In the file", "Flag", "Environment", "Usually", "May be", "Meaning")
    yield from table(heads, rows)


def limits() -> Iterator[str]:
    """How much is too much, as far as an operator may say."""
    rows = (
        (
            code(name),
            code(LIMIT_SETTINGS[name].variable),
            _amount(limit.usual, limit.bound),
            " to ".join(_amount(each, limit.bound) for each in limit.bound[:2]),
            code(CODES[limit.bound.why].pvp),
            limit.bound.says,
        )
        for name, limit in LIMITS.items()
    )
    heads = ("Limit", "Environment", "Usually", "May be", "Past it", "Meaning")
    yield from table(heads, rows)


def _amount(number: int, bound: Bound) -> str:
    for unit, size in (("MiB", MIB), ("KiB", 1 << 10)):
        if bound.bytes and number >= size and number % size == 0:
            return f"{number // size:,} {unit}"
    return f"{number:,} bytes" if bound.bytes else f"{number:,}"


def fixed() -> Iterator[str]:
    """How much is too much, whoever runs the server."""
    said = words("fixed limits", FIXED)
    yield from table(
        ("Limit", "Value", "Past it"),
        ((capital(name), value, said[name]) for name, value in FIXED.items()),
    )


def environment() -> Iterator[str]:
    """Every variable that the code reads."""
    text = "\n".join(file.read_text("utf-8") for file in sorted(SOURCE.rglob("*.py")))
    names = sorted(set(VARIABLE.findall(text)) - {each.variable for each in ALL})
    said = words("environment", names)
    yield from table(("Variable", "Meaning"), ((code(name), said[name]) for name in names))


def events() -> Iterator[str]:
    """Every kind of record."""
    rows = (
        (
            code(event.name),
            plain(promise(event)),
            _said(event),
            codes(name for name in event.__struct_fields__ if name not in ENVELOPE) or "–",
        )
        for event in canonical.EVENTS.values()
    )
    yield from table(("`kind`", "What happened", "Heard as", "Fields of `fact`"), rows)


def _said(event: type[Event]) -> str:
    for field in fields(event):
        if field.name == "said":
            cls = getattr(field.type, "cls", None)
            return code(cls.type) if cls and hasattr(cls, "type") else "the vote as it was cast"
    return "–"


def tables() -> Iterator[str]:
    """The tables of the database."""
    version = schema.newest()
    yield f"Format {version} (`PRAGMA user_version`); the application id is"
    yield f"`{schema.APPLICATION_ID:#x}`.\n"
    statements = "\n".join(text for _, text in schema.MIGRATIONS)
    lines = [line.removeprefix("        ") for line in statements.splitlines()]
    yield from fenced("\n".join(line for line in lines if line.strip()), "sql")
