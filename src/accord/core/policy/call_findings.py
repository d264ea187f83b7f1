"""What the parts of a call mean, and how they add up to one classification."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from accord.core.room.room_settings import Category
from accord.core.room.state import CallSubject, Risk


def names(text: str) -> frozenset[str]:
    """The words of a text, for tables that are easier to read as one."""
    return frozenset(text.split())


RISKS = tuple(Risk)
# From the least to the most serious, to name a call by what matters most about it.
SEVERITY = (
    Category.FILE_READ,
    Category.FILE_WRITE,
    Category.SHELL_EXECUTE,
    Category.NETWORK_REQUEST,
    Category.EXTERNAL_API,
    Category.FILE_DELETE,
    Category.DATABASE,
    Category.SECRET_ACCESS,
    Category.DEPLOY,
    Category.ALL,
)
MAX_REASONS = 8


class Finding(NamedTuple):
    """One thing that a call does."""

    category: Category
    risk: Risk
    why: str
    refusal: str = ""


class Classification(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a call is. `refusal`: why no approval would help; empty if it is not refused.

    `categories` are all that it belongs to, of which `category` is the most serious. `subjects` are
    the commands and files of which it consists beside reads, for the patterns of standing grants;
    empty if it cannot be taken apart to the last word.
    """

    category: Category
    risk: Risk
    explanation: str
    categories: tuple[Category, ...] = ()
    refusal: str = ""
    subjects: tuple[CallSubject, ...] = ()

    @property
    def is_read(self) -> bool:
        """Whether it only reads what it may, which needs no gate and no policy."""
        return self.category is Category.FILE_READ and self.risk is Risk.LOW and not self.refusal


def read(why: str) -> Finding:
    """A finding that something only reads."""
    return Finding(Category.FILE_READ, Risk.LOW, why)


def refused(why: str) -> Finding:
    """A finding that an agent may never do this."""
    return Finding(Category.SHELL_EXECUTE, Risk.CRITICAL, why, why)


NOTHING_FOUND = Finding(Category.SHELL_EXECUTE, Risk.HIGH, "what it does cannot be read")


def combine(findings: Iterable[Finding]) -> Classification:
    """One classification of everything that was found; where that is nothing, it is gated."""
    found = list(findings) or [NOTHING_FOUND]
    risk = max((each.risk for each in found), key=RISKS.index)
    categories = sorted({each.category for each in found}, key=SEVERITY.index)
    category = categories[-1]
    more = [each for each in found if each.category is not Category.FILE_READ] or found
    more.sort(key=lambda each: (-RISKS.index(each.risk), -SEVERITY.index(each.category)))
    reasons = list(dict.fromkeys(each.why for each in more))
    rest = [f"and {len(reasons) - MAX_REASONS} more"] if len(reasons) > MAX_REASONS else []
    listed = (
        categories
        if category is Category.FILE_READ
        else [each for each in categories if each is not Category.FILE_READ]
    )
    return Classification(
        category=category,
        risk=risk,
        explanation="; ".join([*reasons[:MAX_REASONS], *rest]),
        categories=tuple(listed),
        refusal=next((each.refusal for each in found if each.refusal), ""),
    )
