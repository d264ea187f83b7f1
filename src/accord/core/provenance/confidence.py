"""How sure somebody is: a number from 0 to 1, its words, and questions that help to find it."""

import re
from enum import StrEnum
from typing import NamedTuple

LONGEST = 32  # a number with more digits says no more
_DECIMAL = r"(?:[01](?:\.[0-9]+)?|\.[0-9]+)"
_LINE = (  # compiled when it is first needed: hooks load this at every commit
    r"\[?Confidence\]?:[ \t]*(?P<word>low|medium|high)?\b[ \t]*"
    rf"\(?(?P<number>{_DECIMAL}(?![0-9.%])|[0-9]{{1,3}}(?:\.[0-9]+)?%)?"
)


class Band(StrEnum):
    """GIT-CONF-1; every number has one (OPEN-68)."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Grade(StrEnum):
    """The words of the decision kernel (UNI-28)."""

    VERY_LOW = "VERY_LOW"
    LOW = "LOW"
    MED = "MED"
    HIGH = "HIGH"


# The least number of each, from the top down.
BANDS = ((0.80, Band.HIGH), (0.50, Band.MEDIUM), (0.0, Band.LOW))
GRADES = ((0.80, Grade.HIGH), (0.50, Grade.MED), (0.25, Grade.LOW), (0.0, Grade.VERY_LOW))
SCORES = {Grade.VERY_LOW: 0.20, Grade.LOW: 0.40, Grade.MED: 0.65, Grade.HIGH: 0.90}


class Stated(NamedTuple):
    """What a line of the body says, as far as it does."""

    word: Band | None
    score: float | None


class Answers(NamedTuple):
    """The questions of GIT-CONF-3; `risk` runs from 0, none known, to 1, grave."""

    validated: bool = False
    agreed: bool = False
    risk: float = 0.0
    reversible: bool = False
    tested: bool = False


def parse(text: str) -> float | None:
    """Any decimal from 0 to 1 (OPEN-68)."""
    if len(text) > LONGEST or not re.fullmatch(_DECIMAL, text):
        return None
    score = float(text)
    return score if score <= 1.0 else None


def write(score: float) -> str:
    """Two decimals."""
    return f"{score:.2f}"


def band(score: float) -> Band:
    """The word for a number."""
    return next(word for least, word in BANDS if score >= least)


def grade(score: float) -> Grade:
    """The decision kernel's word for a number."""
    return next(word for least, word in GRADES if score >= least)


def line(score: float) -> str:
    """As the body says it; word and number agree, also after rounding."""
    return f"Confidence: {band(float(write(score)))} ({write(score)})"


def stated(text: str) -> Stated | None:
    """What a line says of confidence: `high (0.90)`, `90%`, with any words after it."""
    found = re.match(_LINE, text, re.IGNORECASE)
    if found is None or not (found["word"] or found["number"]):
        return None
    word = Band(found["word"].lower()) if found["word"] else None
    return Stated(word, _number(found["number"]))


def _number(text: str | None) -> float | None:
    if text is None or not text.endswith("%"):
        return parse(text) if text else None
    share = float(text[:-1]) / 100
    return share if share <= 1.0 else None


def assess(answers: Answers) -> float:
    """Advice, never a record: no risk and every yes is 1.00, and nothing known is 0.40."""
    score = 0.40
    score += 0.2 * answers.validated + 0.2 * answers.agreed
    score += 0.1 * answers.reversible + 0.1 * answers.tested
    if answers.risk > 0:
        score -= 0.1 + 0.2 * min(answers.risk, 1.0)
    return round(min(max(score, 0.0), 1.0), 2)
