"""The state of forks and merges, and of the pacts that merges respect."""

from enum import StrEnum

import msgspec

from accord.core.kernel.messages import Instant


class MergeStrategy(StrEnum):
    """How a fork is merged back (PVP 16.3)."""

    REPLACE = "replace"
    APPEND = "append"
    INTERLEAVE = "interleave"
    MANUAL = "manual"


class Fork(msgspec.Struct, frozen=True):
    """A branch of the conversation. `base`: the stream version at which it left its parent."""

    id: str
    name: str
    parent: str | None
    from_point: str
    members: frozenset[str]
    readers: frozenset[str]
    created_by: str
    created_at: Instant
    base: int
    merged: bool = False
    into: str | None = None
    strategy: MergeStrategy | None = None


class Merge(msgspec.Struct, frozen=True):
    """A merge that was proposed and not executed yet."""

    id: str
    source: str
    target: str | None
    strategy: MergeStrategy
    gated: bool
    needs_approval: bool = False
    head: str = ""  # the commit that is to be merged; empty: not said
    changed: str = ""  # what changed in the source since, which voids the approval


class PactFeature(msgspec.Struct, frozen=True):
    """A feature of the repository's pact: its branch, and its tasks that are not accepted yet."""

    feature: str
    branch: str
    open: tuple[str, ...] = ()
    shipped: bool = False


class PactSummary(msgspec.Struct, frozen=True):
    """What the pact of the session's repository says about merges.

    `trouble`: why the server's copy of the pact may be incomplete.
    """

    repo: str
    lanes: tuple[PactFeature, ...] = ()
    trouble: str = ""
