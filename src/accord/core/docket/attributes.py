"""Attributes of tags: which there are, what they take, and what a wrong one counts as."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

from accord.core.docket.diags import Diag
from accord.core.docket.model import Header, Input
from accord.core.docket.snapshot import whole
from accord.core.docket.text import BATCH_ID, ids, one_line, resources
from accord.core.docket.word import Word
from accord.core.docket.words import (
    Asking,
    ClosePolicy,
    Flag,
    Profile,
    Reversibility,
    Runtime,
    Scale,
)

Say = Callable[[Diag], None]
W = TypeVar("W", bound=Word)
# A name begins where no name goes on, so that a long word is read once.
_PAIR = re.compile(r'(?<![a-z0-9_])([a-z][a-z0-9_]*+)=("(?:[^"\\]|\\.)*+"|[^\s"]*+)')
_QUOTED = re.compile(r"\\(.)")


def pairs(text: str, line: int, say: Say) -> dict[str, str]:
    """The attributes of a tag; the last of each name counts, an empty one is none."""
    found: dict[str, str] = {}
    seen: set[str] = set()
    for match in _PAIR.finditer(text):
        key, value = match[1], match[2]
        if key in seen:
            say(Diag("ATTR_REPEATED", detail=key, line=line))
        seen.add(key)
        if value.startswith('"'):
            value = _QUOTED.sub(r"\1", value[1:-1])
        found.pop(key, None)
        if value.strip():
            found[key] = value.strip()
    return found


class Reader:
    """Takes attributes out of a table and says what is wrong with them."""

    def __init__(self, values: dict[str, str], line: int, say: Say, item: str = "-") -> None:
        self._values, self._line, self._say, self._item = dict(values), line, say, item

    def word(self, name: str, kind: type[W], otherwise: W | None = None) -> W | None:
        """A word of a list; a wrong one counts as `otherwise`."""
        if not (value := self._values.pop(name, "")):
            return None
        if (found := kind.read(value)) is None:
            self.wrong(name, value, ", ".join(kind))
            return otherwise
        return found

    def flag(self, name: str) -> bool | None:
        """Yes or no."""
        found = self.word(name, Flag)
        return None if found is None else found is Flag.YES

    def days(self, name: str) -> int | None:
        """A number of days from 1."""
        if not (value := self._values.pop(name, "")):
            return None
        if not (found := whole(value)):
            self.wrong(name, value, "a whole number from 1")
        return found or None

    def resources(self, name: str) -> dict[str, int] | None:
        """`ENG:1,GPU:2`."""
        if not (value := self._values.pop(name, "")):
            return None
        found, bad = resources(value)
        for each in bad:
            self.wrong(name, each, "NAME:NUMBER")
        return found

    def ids(self, name: str) -> tuple[str, ...] | None:
        """Ids; `[]` is none at all."""
        if not (value := self._values.pop(name, "")):
            return None
        found, bad = ids(value)
        for each in bad:
            self.wrong(name, each, "ids with commas between")
        return found

    def text(self, name: str) -> str:
        """A line."""
        return one_line(self._values.pop(name, ""))

    def wrong(self, name: str, value: str, takes: str) -> None:
        """Say that a value will not do."""
        detail = f"{name}={one_line(value)}; it takes {takes}"
        self._say(Diag("ATTR_VALUE", self._item, detail, self._line))

    def rest(self) -> None:
        """Whatever nobody asked for."""
        for name in self._values:
            code = "ATTR_DERIVED" if name == "impact" else "ATTR_UNKNOWN"
            self._say(Diag(code, self._item, name, self._line))


def header(text: str, line: int, say: Say) -> Header:
    """The values of `<<<B …>>>`; what guards against harm fails closed."""
    take = Reader(pairs(text, line, say), line, say)
    made = Header(
        keep_open=take.flag("keep_open"),
        expire_days=take.days("expire_days"),
        runtime=take.word("exec_capability", Runtime, Runtime.NO_RUNTIME),
        close_policy=take.word("close_policy", ClosePolicy, ClosePolicy.REAL_ONLY),
        scale=take.word("ssot_scale", Scale, Scale.MIN),
        pool=take.resources("resource_pool"),
        ask_user=take.word("ask_user", Asking, Asking.NONE),
        batch_id=take.text("batch_id"),
    )
    if made.batch_id and not BATCH_ID.fullmatch(made.batch_id):
        take.wrong("batch_id", made.batch_id, "letters, digits, _ . -")
        made.batch_id = ""
    take.rest()
    return made


def item(values: dict[str, str], inp: Input, say: Say) -> None:
    """The values of `<<<I …>>>`."""
    take = Reader(values, inp.line, say, inp.id)
    inp.title = take.text("title")
    inp.keep_open = take.flag("keep_open")
    inp.expire_days = take.days("expire_days")
    inp.depends_on = take.ids("depends_on")
    inp.waive = take.ids("waive") or ()
    inp.uses = take.resources("uses")
    irreversible = Reversibility.IRREVERSIBLE
    inp.reversibility = take.word("reversibility", Reversibility, irreversible)
    inp.profile = take.word("profile", Profile)
    inp.ask_user = take.word("ask_user", Asking) or Asking.INHERIT
    take.rest()


def recover(into: Header, panel: dict[str, str]) -> None:
    """What a snapshot's panel says and the header does not."""
    into.runtime = into.runtime or Runtime.read(panel.get("ExecCapability"))
    into.close_policy = into.close_policy or ClosePolicy.read(panel.get("ClosePolicy"))
    into.scale = into.scale or Scale.read(panel.get("SSOTScale"))
    if into.pool is None and (pool := panel.get("ResourcePool")):
        into.pool = resources(pool)[0]


# For the reference: each attribute, what it takes, and what a wrong value counts as.
TABLE: dict[str, dict[str, tuple[Any, str]]] = {
    "B": {
        "keep_open": (Flag, "unset"),
        "expire_days": ("a whole number from 1", "unset"),
        "exec_capability": (Runtime, "NO_RUNTIME"),
        "close_policy": (ClosePolicy, "REAL_ONLY"),
        "ssot_scale": (Scale, "MIN"),
        "resource_pool": ("NAME:NUMBER with commas between", "dropped"),
        "ask_user": (Asking, "NONE"),
        "batch_id": ("letters, digits, _ . -", "made from the text"),
    },
    "I": {
        "id": ("letters, digits, _ . -", "the item is skipped"),
        "title": ("a line", "the id"),
        "keep_open": (Flag, "unset"),
        "expire_days": ("a whole number from 1", "unset"),
        "depends_on": ("ids with commas between", "dropped"),
        "waive": ("ids with commas between", "dropped"),
        "uses": ("NAME:NUMBER with commas between", "dropped"),
        "reversibility": (Reversibility, "IRREVERSIBLE"),
        "profile": (Profile, "unset"),
        "ask_user": (Asking, "INHERIT"),
    },
}
