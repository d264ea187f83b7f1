"""Attributes of tags: their names, their values, and what an invalid value counts as."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from accord.core.docket.diagnostics import Diagnostic
from accord.core.docket.model import BatchHeader, ItemInput
from accord.core.docket.text_values import (
    BATCH_ID_PATTERN,
    parse_count,
    parse_ids,
    parse_resources,
    to_one_line,
)
from accord.core.docket.vocabulary import (
    AskUserMode,
    ClosePolicy,
    ExecCapability,
    LenientEnum,
    Profile,
    Reversibility,
    SsotScale,
    YesNo,
)

DiagnosticSink = Callable[[Diagnostic], None]
# The lookbehind keeps a long word from being scanned more than once.
_PAIR = re.compile(r'(?<![a-z0-9_])([a-z][a-z0-9_]*+)=("(?:[^"\\]|\\.)*+"|[^\s"]*+)')
_QUOTED = re.compile(r"\\(.)")


def parse_pairs(text: str, line: int, say: DiagnosticSink) -> dict[str, str]:
    """The attributes of a tag; the last of each name wins, empty ones are dropped."""
    found: dict[str, str] = {}
    seen: set[str] = set()
    for match in _PAIR.finditer(text):
        key, value = match[1], match[2]
        if key in seen:
            say(Diagnostic("ATTR_REPEATED", detail=key, line=line))
        seen.add(key)
        if value.startswith('"'):
            value = _QUOTED.sub(r"\1", value[1:-1])
        found.pop(key, None)
        if value.strip():
            found[key] = value.strip()
    return found


class Attribute(NamedTuple):
    """How an attribute is parsed: to its value, None where it is unset, and the invalid parts."""

    parse: Callable[[str], tuple[Any, list[str]]]
    takes: str | type[LenientEnum]
    invalid_counts_as: str

    @property
    def values(self) -> str:
        return self.takes if isinstance(self.takes, str) else ", ".join(self.takes)


def _word(words: type[LenientEnum], otherwise: LenientEnum | None = None) -> Attribute:
    def parse(text: str) -> tuple[LenientEnum | None, list[str]]:
        found = words.parse(text)
        return (otherwise, [text]) if found is None else (found, [])

    return Attribute(parse, words, otherwise or "unset")


def _parse_flag(text: str) -> tuple[bool | None, list[str]]:
    found = YesNo.parse(text)
    return (None, [text]) if found is None else (found is YesNo.YES, [])


def _parse_days(text: str) -> tuple[int | None, list[str]]:
    return (days, []) if (days := parse_count(text)) else (None, [text])


def _parse_batch_id(text: str) -> tuple[str, list[str]]:
    return (text, []) if BATCH_ID_PATTERN.fullmatch(text) else ("", [text])


def _parse_title(text: str) -> tuple[str, list[str]]:
    return to_one_line(text), []


ID_CHARS = "letters, digits, _ . -"
FLAG = Attribute(_parse_flag, YesNo, "unset")
DAYS = Attribute(_parse_days, "a whole number from 1", "unset")
RESOURCES = Attribute(parse_resources, "NAME:NUMBER with commas between", "dropped")
IDS = Attribute(parse_ids, "ids with commas between", "dropped")
# Invalid safety settings count as the strictest value.
HEADER_ATTRIBUTES: dict[str, Attribute] = {
    "keep_open": FLAG,
    "expire_days": DAYS,
    "exec_capability": _word(ExecCapability, ExecCapability.NO_RUNTIME),
    "close_policy": _word(ClosePolicy, ClosePolicy.REAL_ONLY),
    "ssot_scale": _word(SsotScale, SsotScale.MIN),
    "resource_pool": RESOURCES,
    "ask_user": _word(AskUserMode, AskUserMode.NONE),
    "batch_id": Attribute(_parse_batch_id, ID_CHARS, "made from the text"),
}
ITEM_ATTRIBUTES: dict[str, Attribute] = {
    "title": Attribute(_parse_title, "a line", "the id"),
    "keep_open": FLAG,
    "expire_days": DAYS,
    "depends_on": IDS,
    "waive": IDS,
    "uses": RESOURCES,
    "reversibility": _word(Reversibility, Reversibility.IRREVERSIBLE),
    "profile": _word(Profile),
    "ask_user": _word(AskUserMode, AskUserMode.INHERIT),
}


def _parse_values(
    values: dict[str, str], known: dict[str, Attribute], say: Callable[[str, str], None]
) -> dict[str, Any]:
    """The attributes that are given, by name; `say` gets the code and detail of each problem."""
    found: dict[str, Any] = {}
    for name, attribute in known.items():
        if text := values.get(name):
            found[name], invalid = attribute.parse(text)
            for each in invalid:
                say("ATTR_VALUE", f"{name}={to_one_line(each)}; it takes {attribute.values}")
    for name in values:
        if name not in known:
            say("ATTR_DERIVED" if name == "impact" else "ATTR_UNKNOWN", name)
    return found


def parse_header(text: str, line: int, say: DiagnosticSink) -> BatchHeader:
    """The values of `<<<B …>>>`."""
    pairs = parse_pairs(text, line, say)
    return BatchHeader(
        **_parse_values(
            pairs, HEADER_ATTRIBUTES, lambda code, what: say(Diagnostic(code, "-", what, line))
        )
    )


def apply_item_attributes(values: dict[str, str], inp: ItemInput, say: DiagnosticSink) -> None:
    """The values of `<<<I …>>>`."""
    found = _parse_values(
        values, ITEM_ATTRIBUTES, lambda code, what: say(Diagnostic(code, inp.id, what, inp.line))
    )
    inp.waived_dependencies = found.pop("waive", ())
    for name, value in found.items():
        setattr(inp, name, value)


def recover_header(into: BatchHeader, panel: dict[str, str]) -> None:
    """Fill in from a snapshot's panel what the header leaves out."""
    into.exec_capability = into.exec_capability or ExecCapability.parse(panel.get("ExecCapability"))
    into.close_policy = into.close_policy or ClosePolicy.parse(panel.get("ClosePolicy"))
    into.ssot_scale = into.ssot_scale or SsotScale.parse(panel.get("SSOTScale"))
    if into.resource_pool is None and (pool := panel.get("ResourcePool")):
        into.resource_pool = parse_resources(pool)[0]
