"""`[pvp:<ref>]`: a message, fork, session or decision, by its id or how that begins (OPEN-73)."""

import re
from collections.abc import Iterable
from typing import NamedTuple

KINDS = {
    "msg": "message",
    "fork": "fork",
    "ses": "session",
    "session": "session",
    "dec": "decision",
}
SHORTEST = 8
_WIRE_PREFIXES = ("ses_", "dec_", "msg_")
BRANCHES = "pvp/"
LONGEST_BRANCH = 120
_unsafe = re.compile(r"[^A-Za-z0-9_-]")


class Ref(NamedTuple):
    """What a reference points at; without a `kind` it is opaque."""

    kind: str | None
    id: str
    text: str


def branch_of(fork: str) -> str:
    """The branch that stands for a fork, safe as a name in git (OPEN-77)."""
    name = _unsafe.sub(lambda found: f"_{ord(found[0]):x}_", fork)[:LONGEST_BRANCH]
    return f"{BRANCHES}{name}"


def fork_of(branch: str, forks: Iterable[str]) -> str | None:
    """The one of these forks that a branch stands for; None for any other branch."""
    return next((fork for fork in forks if branch_of(fork) == branch), None)


def parse(text: str) -> Ref:
    """The kind and the id, or its beginning; any other text is kept as it is."""
    word, dash, id = text.partition("-")
    known = bool(dash and id) and word in KINDS
    return Ref(KINDS[word], id, text) if known else Ref(None, text, text)


def bare(id: str) -> str:
    """An id without the prefix that only tells its kind."""
    return next((id[len(p) :] for p in _WIRE_PREFIXES if id.startswith(p) and id != p), id)


def matches(ref: Ref, ids: Iterable[str]) -> tuple[str, ...]:
    """Every id that is meant: the one that is named in full, else those that begin so."""
    known = tuple(dict.fromkeys(ids))
    exact = tuple(id for id in known if id == ref.text or ref.id in (id, bare(id)))
    if exact or ref.kind is None or len(ref.id) < SHORTEST:
        return exact
    return tuple(id for id in known if id.startswith(ref.id) or bare(id).startswith(ref.id))


def short(word: str, id: str, others: Iterable[str] = ()) -> str:
    """The shortest reference that means this id and none of the others."""
    whole = bare(id)
    rest = [bare(other) for other in others if other != id]
    length = SHORTEST
    while length < len(whole) and any(other.startswith(whole[:length]) for other in rest):
        length += 1
    return f"{word}-{whole[:length]}"
