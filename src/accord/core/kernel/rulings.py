"""What a decision kernel says of a batch, in words that every context understands."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

# Evidence, the weakest first; from HISTORICAL on somebody saw something.
TIERS = ("", "SIMULATED", "DERIVED", "HISTORICAL", "REAL", "EXPERIMENT")


class Finding(msgspec.Struct, frozen=True):
    """One item: its verdict, and the only step that may be run now, if one may."""

    verdict: str
    state: str
    confidence: str
    next: str
    allowed: str  # the step that may be run; empty: none
    why: str
    tier: str = ""  # what a run of that step shows


class Claim(msgspec.Struct, frozen=True):
    """What a text says of one item, for those who ask whether its sender may say it."""

    item: str
    tier: str = ""  # the best evidence it says there is; empty: none beyond a guess
    saw: tuple[str, ...] = ()  # steps it says were run, by their output; empty: no step of it
    judges: bool = False  # it says what to think of the item, or what the item is


class Ruling(msgspec.Struct, frozen=True):
    """A batch, decided; `claims` are what its text says, `rules` whether it sets any itself."""

    snapshot: str
    hash: str
    items: Mapping[str, Finding] = {}
    problem: str = ""  # why it is no decision; empty: it is one
    claims: tuple[Claim, ...] = ()
    rules: bool = False


class Agreement(msgspec.Struct, frozen=True):
    """How far independent judgements of one item agree."""

    item: str
    kind: str
    next_action: str
    holds: bool  # they are so far apart that nothing may be run


class Ran(NamedTuple):
    """How a step went; `value` is what it measured, `fault` what kept it from being run."""

    item: str
    step: str
    success: bool
    words: str
    value: str = ""
    fault: str = ""


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
