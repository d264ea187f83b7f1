"""A word of a closed list: what it is to be one, to be read as one, and to come before another."""

from enum import StrEnum
from functools import cache
from typing import Self


class Word(StrEnum):
    """A word of a closed list. It is written in one way and read in any."""

    @classmethod
    def read(cls, value: object) -> Self | None:
        """The word meant, whatever the case and with `_` or a blank; None where it is none."""
        if isinstance(value, bool):
            value = "YES" if value else "NO"
        if not isinstance(value, str):
            return None
        exact = cls._value2member_map_.get(value)
        return exact or _spellings(cls).get(_plain(value))  # type: ignore[return-value]  # of `cls` all


def _plain(text: str) -> str:
    return " ".join(text.upper().replace("_", " ").split())


@cache
def _spellings(cls: type[Word]) -> dict[str, Word]:
    return {_plain(each.value): each for each in cls}


class Rank(Word):
    """Words in an order, the least first; `rank` says how far up, from 0."""

    rank: int

    def __init__(self, _: str) -> None:
        self.rank = len(type(self).__members__)

    def _other(self, other: str) -> int:
        return other.rank if isinstance(other, type(self)) else type(self)(other).rank

    def __lt__(self, other: str) -> bool:
        """Whether it comes before."""
        return self.rank < self._other(other)

    def __le__(self, other: str) -> bool:
        """Whether it does not come after."""
        return self.rank <= self._other(other)

    def __gt__(self, other: str) -> bool:
        """Whether it comes after."""
        return self.rank > self._other(other)

    def __ge__(self, other: str) -> bool:
        """Whether it does not come before."""
        return self.rank >= self._other(other)
