"""Identifiers: which texts are ids, and their form in Pact and trailers."""

import re
from collections.abc import Iterable

SYSTEM = "system"
MAX_ID_LENGTH = 128
MAIN_FORK = "main"
# OPEN-46: every accepted name for the trunk, the conversation outside all forks.
TRUNK_NAMES = frozenset({None, "", MAIN_FORK, "trunk"})

# Characters that are invisible or change how their neighbours are displayed: control and format
# characters, blanks other than the space, private use. Plain ranges, so that every regular
# expression dialect accepts them.
INVISIBLE_CHARACTERS = (
    r"[\u0000-\u001f\u007f-\u00a0\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890-\u0891\u08e2\u1680"
    r"\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ue000-\uf8ff\ufeff\ufff0-\ufffb\ufffe-\uffff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
    "\U000f0000-\U0010ffff]"
)
_find_invisible = re.compile(INVISIBLE_CHARACTERS).search
_slug = re.compile(r"[a-z0-9][a-z0-9-]*", re.ASCII).fullmatch


def slug(text: str) -> str:
    """The id in the form of Pact and trailers (UNI-3); empty if it has no such form."""
    candidate = text.lower().replace("_", "-")
    return candidate if _slug(candidate) else ""


def ids_by_slug(ids: Iterable[str]) -> dict[str, str]:
    """Maps each slug to the id that equals it, else to the only id that has it.

    A slug that several other ids share is ambiguous and is left out (UNI-3).
    """
    by_slug: dict[str, list[str]] = {}
    for id in ids:
        by_slug.setdefault(slug(id), []).append(id)
    by_slug.pop("", None)
    return {key: same[0] for key, same in by_slug.items() if len(same) == 1} | {
        key: key for key, same in by_slug.items() if key in same
    }


def is_id(text: str) -> bool:
    """OPEN-4: 1 to 128 printable characters; their meaning is up to the client."""
    return 0 < len(text) <= MAX_ID_LENGTH and is_visible(text)


def is_visible(text: str) -> bool:
    """Whether all characters are visible; does not depend on the Unicode version of Python."""
    return text.isprintable() if text.isascii() else _find_invisible(text) is None
