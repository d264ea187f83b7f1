"""Participants and ids in trailers: `human:alice`, and nothing that could forge another line."""

import re
from typing import NamedTuple

from accord.core.kernel.refusal import Refused, Why

HUMAN, AI, AGENT = "human", "ai", "agent"
KINDS = (HUMAN, AI, AGENT)

# Compiled when they are first needed: hooks load this at every commit.
_UNSAFE = r"[^A-Za-z0-9._@-]"
_ESCAPES = r"(?:%[0-9A-Fa-f]{2})+"
_CONTROL = "[\0-\x1f\x7f-\x9f\u2028\u2029]"
SAFE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@-"


class Participant(NamedTuple):
    """Somebody as a trailer names them."""

    kind: str
    identifier: str

    def __str__(self) -> str:
        return f"{self.kind}:{encoded(self.identifier)}"

    @property
    def is_agent(self) -> bool:
        """UNI-4: `ai` and `agent` are the same to a reader."""
        return self.kind != HUMAN


class Named(NamedTuple):
    """What one trailer says of people: participants, and what is not written as one."""

    participants: tuple[Participant, ...]
    raw: tuple[str, ...] = ()


def participant(identifier: str, *, human: bool, model: bool = False) -> Participant:
    """How somebody is written: agents that declare a model or a provider are `ai` (OPEN-64)."""
    return Participant(HUMAN if human else AI if model else AGENT, identifier)


def encoded(text: str) -> str:
    """Safe in any trailer (OPEN-72); control characters are refused, not hidden."""
    if has_control(text) or not text:
        raise Refused(
            Why.MALFORMED, "A name in a trailer has no control characters and is not empty"
        )
    try:
        return re.sub(_UNSAFE, _escaped, text) if text.strip(SAFE) else text
    except UnicodeEncodeError as error:
        raise Refused(Why.MALFORMED, "A name in a trailer is valid Unicode") from error


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


def decoded(text: str) -> str:
    """As `encoded` had it; what stands for control characters or is no UTF-8 stays as written."""
    if "%" not in text:
        return text
    try:
        plain = re.sub(_ESCAPES, _unescaped, text)
    except UnicodeDecodeError:
        return text
    return text if has_control(plain) else plain


def _unescaped(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("%", "")).decode()


def has_control(text: str) -> bool:
    """Whether something in it could end a line or steer a terminal."""
    plain = text.isascii() and text.isprintable()
    return not plain and re.search(_CONTROL, text) is not None


def parse(text: str) -> Participant | None:
    """`<type>:<identifier>`, or None for anything else and what could not be shown."""
    kind, colon, identifier = text.strip().partition(":")
    if not colon or kind not in KINDS or not identifier.strip() or has_control(text):
        return None
    return Participant(kind, decoded(identifier.strip()))


def items(value: str) -> tuple[str, ...]:
    """The parts of a comma list, without empty ones."""
    return tuple(part.strip() for part in value.split(",") if part.strip())


def read(value: str) -> Named:
    """A comma list of participants; a value with none is kept whole (OPEN-71)."""
    found = {part: parse(part) for part in items(value)}
    known = tuple(each for each in found.values() if each)
    if not known:
        return Named((), (value,) if value else ())
    return Named(known, tuple(part for part, each in found.items() if each is None))
