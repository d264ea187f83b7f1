"""What hooks ask of the git bridge, from its own table."""

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from msgspec import Meta

from accord.transports.bridge.actions import ACTIONS, Action
from tools.reference.markdown import code, table
from tools.reference.shapes import fields


def actions() -> Iterator[str]:
    """Every action with its fields."""
    rows = (
        (code(row.method), code(row.path), _said(row), "–" if row.public else "yes", row.summary)
        for row in ACTIONS
    )
    yield from table(("Method", "Path", "Fields", "Token over HTTP", "What it does"), rows)
    yield ""
    said = {name: what for row in ACTIONS for name, what in _meanings(row)}
    yield from table(("Field", "Meaning"), ((code(name), what) for name, what in said.items()))


def _said(row: Action) -> str:
    names = (code(f.name) if f.required else f"[{code(f.name)}]" for f in fields(row.request))
    return " ".join(names) or "–"


def _meanings(row: Action) -> Iterator[tuple[str, str]]:
    for name, hint in get_type_hints(row.request, include_extras=True).items():
        yield name, next(_descriptions(hint), "")


def _descriptions(hint: Any) -> Iterator[str]:
    for each in getattr(hint, "__metadata__", ()):
        if isinstance(each, Meta) and each.description:
            yield each.description
    for inner in get_args(hint):
        yield from _descriptions(inner)
