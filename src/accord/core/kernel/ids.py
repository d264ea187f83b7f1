"""Identifiers: ULID text, and ids that follow from a cause so that a repeat is recognised."""

from hashlib import sha256

SYSTEM = "system"
LONGEST_ID = 128
MAIN = "main"
# OPEN-46: every way to name the conversation that no fork is.
TRUNK = frozenset({None, "", MAIN, "trunk"})

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def ulid(at: int, entropy: bytes) -> str:
    """26 characters that sort by the instant `at`; `entropy` gives the last 80 bits."""
    number = (at & 0xFFFF_FFFF_FFFF) << 80 | int.from_bytes(entropy[:10], "big")
    return "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))


def derived(at: int, *cause: str) -> str:
    """The same id whenever the same cause is told at the same instant."""
    return ulid(at, sha256("\n".join(cause).encode()).digest())


def is_id(text: str) -> bool:
    """OPEN-4: any non-empty id of up to 128 printable characters; what it says is its owner's."""
    return 0 < len(text) <= LONGEST_ID and text.isprintable()
