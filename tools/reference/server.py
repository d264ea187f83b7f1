"""What a running server offers, obeys and leaves on disk."""

import ast
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import accord
from accord.client.session_defaults import DEFAULT_CONFIG
from accord.core.dialects import nesting, pvp, stored_records
from accord.core.dialects.error_codes import ERROR_CODES
from accord.core.kernel.ids import MAX_ID_LENGTH
from accord.core.kernel.limits import LIMITS, LimitSpec
from accord.core.kernel.records import Event
from accord.core.room.room_settings import SessionConfig
from accord.identity import token_signing
from accord.pact import scaffold
from accord.server.app import Server
from accord.server.options import ServerOptions
from accord.settings.server import ALL_SETTINGS, LIMIT_SETTINGS, SETTINGS
from accord.stores.memory import MemoryLog
from accord.stores.sqlite import schema
from accord.telemetry import metrics
from accord.transports import rate_limit
from accord.transports.edge import http_protocol
from accord.transports.websocket import connection, protocol, registry
from tools.reference.markdown import capital, code, codes, fenced, plain, table
from tools.reference.shapes import describe_type, fields, first_sentence, format_default
from tools.reference.words import sentences_of

SOURCE = Path(accord.__file__).parent
VARIABLE = re.compile(r"\b(ACCORD_[A-Z]+|PACT_AGENT_ID|PACT_DIR|NO_COLOR|FORCE_COLOR)\b")
ENVELOPE = frozenset({"said", "ref", "to"})

MIB = 1 << 20
FIXED = {
    "sign-in": f"{connection.SIGN_IN_TIMEOUT_S} s",
    "silence": f"{protocol.PING_INTERVAL_S} s",
    "messages": "200 a second",
    "message burst": f"{rate_limit.BURST_SECONDS} seconds' worth",
    "requests in a row": str(http_protocol.MAX_PIPELINED),
    "token": f"{token_signing.MAX_TOKEN_BYTES:,} bytes",
    "token life": (
        f"{token_signing.MIN_TOKEN_LIFE_S} s to {token_signing.MAX_TOKEN_LIFE_S // 86_400} days"
    ),
    "causal refs": str(pvp.MAX_CAUSAL_REFS),
    "id": f"{MAX_ID_LENGTH} characters",
    "depth": f"{nesting.MAX_NESTING_DEPTH} levels",
    "pact file": f"{scaffold.MAX_TEXT_BYTES // MIB} MiB",
}


def routes() -> Iterator[str]:
    """Every path with its methods."""
    found = sorted(_routes())
    said = sentences_of("http", [f"{method} {path}" for path, method in found])
    rows = ((code(method), code(path), said[f"{method} {path}"]) for path, method in found)
    yield from table(("Method", "Path", "What it does"), rows)


def _routes() -> Iterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as home:
        app = Server(ServerOptions(home=Path(home)), MemoryLog()).asgi_app()
    inner: Any = app
    while not hasattr(inner, "routes"):  # behind its guards
        inner = inner.app
    for route in inner.routes:
        for method in getattr(route, "methods", None) or ():
            if method != "HEAD":
                yield getattr(route, "path", ""), method
    yield from ((path, "upgrade") for path in registry.WEBSOCKET_PATHS)


def measured() -> Iterator[str]:
    """Every metric with its labels."""
    rows = (
        (code(row.name), row.kind, codes(row.labels) or "–", row.help) for row in metrics.METRICS
    )
    yield from table(("Metric", "Kind", "Labels", "What it says"), rows)


def session_config() -> Iterator[str]:
    """The rules of a session, and their defaults."""
    said = sentences_of("config", SessionConfig.__struct_fields__)
    rows = (
        (
            code(field.name),
            describe_type(field.type),
            _usual(field.name),
            said[field.name],
        )
        for field in fields(SessionConfig)
    )
    yield from table(("Field", "Type", "Usual", "Meaning"), rows)


def _usual(name: str) -> str:
    value = getattr(DEFAULT_CONFIG, name)
    return "every category but `file_read`" if isinstance(value, tuple) else format_default(value)


def settings() -> Iterator[str]:
    """Every setting of a server, however it is set."""
    rows = (
        (
            code(each.key),
            code(each.flag) if each.info.has_flag else "–",
            code(each.variable),
            each.default_text,
            each.allowed_text,
            f"{capital(each.info.description)}.",
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
            _amount(limit.default, limit.spec),
            " to ".join(_amount(each, limit.spec) for each in limit.spec[:2]),
            code(ERROR_CODES[limit.spec.reason].pvp),
            limit.spec.description,
        )
        for name, limit in LIMITS.items()
    )
    heads = ("Limit", "Environment", "Usually", "May be", "Past it", "Meaning")
    yield from table(heads, rows)


def _amount(number: int, bound: LimitSpec) -> str:
    for unit, size in (("MiB", MIB), ("KiB", 1 << 10)):
        if bound.in_bytes and number >= size and number % size == 0:
            return f"{number // size:,} {unit}"
    return f"{number:,} bytes" if bound.in_bytes else f"{number:,}"


def fixed() -> Iterator[str]:
    """How much is too much, whoever runs the server."""
    said = sentences_of("fixed limits", FIXED)
    yield from table(
        ("Limit", "Value", "Past it"),
        ((capital(name), value, said[name]) for name, value in FIXED.items()),
    )


def environment() -> Iterator[str]:
    """Every variable that the code reads."""
    text = "\n".join(
        text for file in sorted(SOURCE.rglob("*.py")) for text in _string_literals(file)
    )
    names = sorted(set(VARIABLE.findall(text)) - {each.variable for each in ALL_SETTINGS})
    said = sentences_of("environment", names)
    yield from table(("Variable", "Meaning"), ((code(name), said[name]) for name in names))


def _string_literals(file: Path) -> Iterator[str]:
    """Only strings name variables of the environment; `ACCORD_VARIABLE` may be a constant."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def events() -> Iterator[str]:
    """Every kind of record."""
    rows = (
        (
            code(event.name),
            plain(first_sentence(event)),
            _said(event),
            codes(name for name in event.__struct_fields__ if name not in ENVELOPE) or "–",
        )
        for event in stored_records.EVENTS.values()
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
    version = schema.newest_version()
    yield f"Format {version} (`PRAGMA user_version`); the application id is"
    yield f"`{schema.APPLICATION_ID:#x}`.\n"
    statements = "\n".join(text for _, text in schema.MIGRATIONS)
    lines = [line.removeprefix("        ") for line in statements.splitlines()]
    yield from fenced("\n".join(line for line in lines if line.strip()), "sql")
