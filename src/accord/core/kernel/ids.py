"""Identifiers, among them ids that follow from a cause so that a repeat is recognised."""

import re
from collections.abc import Iterable
from hashlib import sha256

from .ulid import ulid

SYSTEM = "system"
LONGEST_ID = 128
MAIN = "main"
# OPEN-46: every way to name the conversation that no fork is.
TRUNK = frozenset({None, "", MAIN, "trunk"})

# What a reader would not see, or would see elsewhere: control and format characters, blanks other
# than the space, private use. Plain ranges, so that every dialect of patterns can read them.
UNSEEN = (
    r"[\u0000-\u001f\u007f-\u00a0\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u1680"
    r"\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ue000-\uf8ff\ufeff\ufff0-\ufffb\ufffe-\uffff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
    "\U000f0000-\U0010ffff]"
)
_unseen = re.compile(UNSEEN).search
_ulid = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", re.ASCII).fullmatch
_slug = re.compile(r"[a-z0-9][a-z0-9-]*", re.ASCII).fullmatch


def derived(at: int, *cause: str) -> str:
    """The same id whenever the same cause is told at the same instant."""
    return ulid(at, sha256("\n".join(cause).encode()).digest())


def sequel(id: str, *cause: str) -> str:
    """The same ULID whenever it follows from the same; it sorts as the one that it follows from."""
    digest = sha256("\n".join((*cause, id)).encode()).digest()
    made = ulid(int.from_bytes(digest[10:16], "big"), digest)
    return id[:10] + made[10:] if _ulid(id) else made


def slug(text: str) -> str:
    """An id as Pact and trailers write it (UNI-3); empty where it cannot be one."""
    made = text.lower().replace("_", "-")
    return made if _slug(made) else ""


def aliases(ids: Iterable[str]) -> dict[str, str]:
    """Whom each slug stands for: the id that is one itself, else the only one that becomes it.

    Two that would share a slug are never taken for each other: then it stands for nobody (UNI-3).
    """
    named: dict[str, list[str]] = {}
    for id in ids:
        named.setdefault(slug(id), []).append(id)
    named.pop("", None)
    return {key: each[0] for key, each in named.items() if len(each) == 1} | {
        key: key for key, each in named.items() if key in each
    }


def is_id(text: str) -> bool:
    """OPEN-4: any non-empty id of up to 128 printable characters; what it says is its owner's."""
    return 0 < len(text) <= LONGEST_ID and is_visible(text)


def is_visible(text: str) -> bool:
    """Whether every character can be seen where it stands; the same on every Python."""
    return text.isprintable() if text.isascii() else _unseen(text) is None
