"""What a decision kernel says of a batch, in words that every context understands."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec


class Finding(msgspec.Struct, frozen=True):
    """One item: its verdict, and the only step that may be run now, if one may."""

    verdict: str
    state: str
    confidence: str
    next: str
    allowed: str  # the step that may be run; empty: none
    why: str


class Ruling(msgspec.Struct, frozen=True):
    """A batch, decided. `real` says whether it claims to have seen something itself."""

    snapshot: str
    hash: str
    items: Mapping[str, Finding] = {}
    problem: str = ""  # why it is no decision; empty: it is one
    real: bool = False


class Agreement(msgspec.Struct, frozen=True):
    """How far independent judgements of one item agree."""

    item: str
    kind: str
    next_action: str
    holds: bool  # they are so far apart that nothing may be run


class Ran(NamedTuple):
    """How a step went."""

    item: str
    step: str
    success: bool
    words: str


class Judge(Protocol):
    """A kernel: the same text, the same ruling."""

    def rule(self, text: str, before: str, day: str) -> Ruling:
        """Decide a batch; `before` is the snapshot it goes on from, or nothing."""
        ...

    def after(self, before: str, ran: Ran, day: str) -> Ruling:
        """Decide once more, because a step was run."""
        ...

    def compare(self, snapshots: Sequence[str]) -> tuple[tuple[Agreement, ...], str]:
        """Independent snapshots of one question, and the table for people."""
        ...
