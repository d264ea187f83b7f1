"""ULIDs as text, new or derived; git hooks import this at every commit, so it imports little."""

import re
from collections.abc import Callable

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [one + other for one in _CROCKFORD for other in _CROCKFORD]
_DIGIT_OF_BYTE = (_CROCKFORD * 8).encode()
_TIME_DIGITS, _RANDOM_DIGITS = 10, 16
_BLOCK = 64
_ULID = r"[0-7][0-9A-HJKMNP-TV-Z]{25}"


def ulid(at: int, entropy: bytes) -> str:
    """26 characters that sort by the instant `at`; the last 80 bits come from `entropy`."""
    number = (at & 0xFFFF_FFFF_FFFF) << 80 | int.from_bytes(entropy[:10], "big")
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in range(120, -1, -10)])


def ulid_generator(now: Callable[[], int], entropy: Callable[[int], bytes]) -> Callable[[], str]:
    """Returns ULIDs of the current time; `entropy` returns that many random bytes.

    Randomness is taken for many ULIDs at once, because asking for it is a system call. Each byte
    gives one digit: 256 is a multiple of 32, so all digits are equally likely.
    """
    at_of_prefix, prefix = -1, ""
    digits: list[str] = []

    def generate() -> str:
        nonlocal at_of_prefix, prefix
        if (at := now()) != at_of_prefix:
            at_of_prefix, prefix = at, ulid(at, bytes(10))[:_TIME_DIGITS]
        if not digits:
            random = entropy(_RANDOM_DIGITS * _BLOCK).translate(_DIGIT_OF_BYTE).decode()
            digits.extend(map("".join, zip(*[iter(random)] * _RANDOM_DIGITS, strict=True)))
        return prefix + digits.pop()

    return generate


def derive_ulid(at: int, *cause: str) -> str:
    """A ULID that depends only on the instant and the cause."""
    from hashlib import sha256

    return ulid(at, sha256("\n".join(cause).encode()).digest())


def derive_ulid_after(id: str, *cause: str) -> str:
    """A ULID that depends only on `id` and the cause, with the timestamp of `id`."""
    from hashlib import sha256

    digest = sha256("\n".join((*cause, id)).encode()).digest()
    derived = ulid(int.from_bytes(digest[10:16], "big"), digest)
    return id[:10] + derived[10:] if re.fullmatch(_ULID, id) else derived
