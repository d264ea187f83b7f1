"""Talks with a fork that is about to come back."""

from typing import Any

from accord.core.kernel.authority import Role
from accord.core.room.state import Strategy
from tests.helpers.forks import Talk, adds, updates
from tests.helpers.room import BOB, CAROL, CLAUDE, CODEX

ALL = {"alice", "bob", "carol", "claude", "codex"}
PLAIN = [Strategy.APPEND, Strategy.INTERLEAVE, Strategy.MANUAL]


def a_talk(**config: Any) -> Talk:
    """Alice is admin, Bob and Carol drive and approve; two agents."""
    return Talk.of(
        (BOB, Role.ADVERSARY),
        (CAROL, Role.ADVERSARY),
        (CLAUDE, Role.DRIVER),
        (CODEX, Role.DRIVER),
        **config,
    )


def aside(**config: Any) -> Talk:
    """Alice, Bob and Claude are in the fork `aside`, with a copy of `a` and `b`."""
    talk = a_talk(**config)
    for key in ("a", "b"):
        talk.says(BOB, adds(key, "old"))
    talk.fork("Aside", BOB, CLAUDE, copy=True)
    return talk


def changed(talk: Talk, source: str = "aside") -> Talk:
    """`a` was changed on both sides."""
    talk.says(BOB, updates("a", "ours"), fork=source)
    talk.says(CAROL, updates("a", "theirs"))
    return talk
