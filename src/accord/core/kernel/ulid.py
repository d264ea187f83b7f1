"""ULIDs as text. Apart from other ids, because hooks make one at every commit of a session."""

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def ulid(at: int, entropy: bytes) -> str:
    """26 characters that sort by the instant `at`; `entropy` gives the last 80 bits."""
    number = (at & 0xFFFF_FFFF_FFFF) << 80 | int.from_bytes(entropy[:10], "big")
    return "".join(_CROCKFORD[(number >> shift) & 31] for shift in range(125, -1, -5))
