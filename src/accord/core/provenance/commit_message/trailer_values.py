"""The values of trailers, in four parts: participants, types, confidence, references.

Participants and ids are escaped, so that no value can forge another line. There are commit types
and two vocabularies of decision types (OPEN-62, 63). Confidence is a score from 0 to 1, with bands
and questions that suggest a score. A reference `[pvp:<ref>]` names a message, fork, session or
decision by its id or a prefix (OPEN-73). Standard library only, because hooks import this.
"""

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from accord.core.kernel.refusal import Reason, Refused

# Participants

HUMAN, AI, AGENT = "human", "ai", "agent"
PARTICIPANT_KINDS = (HUMAN, AI, AGENT)

# Compiled on first use: hooks import this at every commit.
_UNSAFE = r"[^A-Za-z0-9._@-]"
_ESCAPES = r"(?:%[0-9A-Fa-f]{2})+"
_CONTROL = "[\0-\x1f\x7f-\x9f\u2028\u2029]"
SAFE_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@-"


class Participant(NamedTuple):
    """A person or agent in a trailer, such as `human:alice`."""

    kind: str
    identifier: str

    def __str__(self) -> str:
        return f"{self.kind}:{encode_name(self.identifier)}"

    @property
    def is_agent(self) -> bool:
        """UNI-4: `ai` and `agent` mean the same to a reader."""
        return self.kind != HUMAN


class ParticipantList(NamedTuple):
    """The participants of one trailer, and the parts that are not participants."""

    participants: tuple[Participant, ...]
    raw: tuple[str, ...] = ()


def participant_for(identifier: str, *, human: bool, model: bool = False) -> Participant:
    """The participant for an id; agents that declare a model or provider are `ai` (OPEN-64)."""
    return Participant(HUMAN if human else AI if model else AGENT, identifier)


def encode_name(text: str) -> str:
    """Percent-encodes a name for a trailer (OPEN-72); refuses control characters."""
    if has_control_characters(text) or not text:
        raise Refused(
            Reason.MALFORMED, "A name in a trailer must not be empty or contain control characters"
        )
    try:
        return re.sub(_UNSAFE, _escape, text) if text.strip(SAFE_CHARACTERS) else text
    except UnicodeEncodeError as error:
        raise Refused(Reason.MALFORMED, "A name in a trailer must be valid Unicode") from error


def _escape(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())


def decode_name(text: str) -> str:
    """Reverses `encode_name`; escapes of control characters or invalid UTF-8 are kept."""
    if "%" not in text:
        return text
    try:
        plain = re.sub(_ESCAPES, _unescape, text)
    except UnicodeDecodeError:
        return text
    return text if has_control_characters(plain) else plain


def _unescape(match: re.Match[str]) -> str:
    return bytes.fromhex(match[0].replace("%", "")).decode()


def has_control_characters(text: str) -> bool:
    """Whether the text contains characters that end a line or control a terminal."""
    plain = text.isascii() and text.isprintable()
    return not plain and re.search(_CONTROL, text) is not None


def parse_participant(text: str) -> Participant | None:
    """Parses `<type>:<identifier>`; None for anything else or with control characters."""
    kind, colon, identifier = text.strip().partition(":")
    if (
        not colon
        or kind not in PARTICIPANT_KINDS
        or not identifier.strip()
        or has_control_characters(text)
    ):
        return None
    return Participant(kind, decode_name(identifier.strip()))


def split_list(value: str) -> tuple[str, ...]:
    """The non-empty parts of a comma-separated list."""
    return tuple(part.strip() for part in value.split(",") if part.strip())


def parse_participants(value: str) -> ParticipantList:
    """Parses a comma-separated list; a value without participants is kept whole (OPEN-71)."""
    parsed = {part: parse_participant(part) for part in split_list(value)}
    known = tuple(participant for participant in parsed.values() if participant)
    if not known:
        return ParticipantList((), (value,) if value else ())
    return ParticipantList(
        known, tuple(part for part, participant in parsed.items() if participant is None)
    )


# Commit types and decision types

# GIT-TYPE-1 to 4: the types that `lint` accepts; the parser accepts any word.
COMMIT_TYPES = {
    "feat": "a new capability",
    "fix": "a bug fix",
    "refactor": "restructuring without functional change",
    "explore": "an experiment, or low confidence",
    "revert": "undoing earlier changes",
    "docs": "documentation only",
    "test": "tests",
    "chore": "dependencies, configuration, maintenance",
    "style": "formatting and linting",
}
# Common names in other conventions, and what to use instead (OPEN-67).
COMMIT_TYPE_HINTS = {
    "feature": "feat",
    "bugfix": "fix",
    "hotfix": "fix",
    "perf": "refactor, with the trailer PVP-Type: optimization",
    "doc": "docs",
    "tests": "test",
    "build": "chore",
    "ci": "chore",
    "deps": "chore",
    "format": "style",
}

# PVP 18.2: the decision types of a DecisionCommit.
RECORD_DECISION_TYPES = (
    *("implementation", "refactor", "bugfix", "exploration", "revert", "documentation"),
    *("test", "configuration", "dependency", "optimization"),
)
MERGE_RESOLUTION = "merge-resolution"
# GIT-DECTYPE-1: the decision types of the trailer.
TRAILER_DECISION_TYPES = (
    *("implementation", "architecture", "exploration", "correction", "reversion"),
    MERGE_RESOLUTION,
)
DECISION_TYPES = tuple(dict.fromkeys((*RECORD_DECISION_TYPES, *TRAILER_DECISION_TYPES)))

_TO_RECORD = {
    "correction": "bugfix",
    "reversion": "revert",
    "architecture": "implementation",
    MERGE_RESOLUTION: "implementation",
}
_TO_TRAILER = {"bugfix": "correction", "revert": "reversion"}

DEFAULT_DECISION_TYPES = {
    "feat": "implementation",
    "fix": "bugfix",
    "refactor": "refactor",
    "style": "refactor",
    "explore": "exploration",
    "revert": "revert",
    "docs": "documentation",
    "test": "test",
    "chore": "configuration",
    "perf": "optimization",  # not one of the nine types, but common elsewhere
}
_DEPENDENCIES = frozenset({"dep", "deps", "deps-dev", "dependency", "dependencies"})


def to_record_type(word: str) -> str:
    """The decision type as a DecisionCommit has it."""
    return _TO_RECORD.get(word, word)


def to_trailer_types(word: str) -> tuple[str, str | None]:
    """The trailer's type, and the exact type if the trailer's is less specific."""
    if word in _TO_TRAILER or word in TRAILER_DECISION_TYPES:
        return _TO_TRAILER.get(word, word), None
    return "implementation", word


def combine_trailer_types(decision_type: str | None, pvp_type: str | None) -> str | None:
    """The type that both trailers state together: the exact one unless they contradict."""
    if decision_type is None or pvp_type is None:
        return decision_type or pvp_type
    return pvp_type if to_trailer_types(pvp_type) == (decision_type, pvp_type) else decision_type


def default_decision_type(commit_type: str, scope: str | None = None) -> str | None:
    """The decision type of a commit that does not state one (OPEN-63)."""
    if commit_type == "chore" and (scope or "").lower() in _DEPENDENCIES:
        return "dependency"
    return DEFAULT_DECISION_TYPES.get(commit_type)


# Confidence

MAX_NUMBER_LENGTH = 32  # longer numbers are refused
_DECIMAL = r"(?:[01](?:\.[0-9]+)?|\.[0-9]+)"
_LINE = (  # compiled on first use: hooks import this at every commit
    r"\[?Confidence\]?:[ \t]*(?P<word>low|medium|high)?\b[ \t]*"
    rf"\(?(?P<number>{_DECIMAL}(?![0-9.%])|[0-9]{{1,3}}(?:\.[0-9]+)?%)?"
)


class ConfidenceBand(StrEnum):
    """The bands of GIT-CONF-1; every score is in one (OPEN-68)."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class KernelGrade(StrEnum):
    """The grades of the decision kernel (UNI-28)."""

    VERY_LOW = "VERY_LOW"
    LOW = "LOW"
    MED = "MED"
    HIGH = "HIGH"


# The lowest score of each, from the top down.
BAND_MINIMUMS = (
    (0.80, ConfidenceBand.HIGH),
    (0.50, ConfidenceBand.MEDIUM),
    (0.0, ConfidenceBand.LOW),
)
GRADE_MINIMUMS = (
    (0.80, KernelGrade.HIGH),
    (0.50, KernelGrade.MED),
    (0.25, KernelGrade.LOW),
    (0.0, KernelGrade.VERY_LOW),
)
GRADE_SCORES = {
    KernelGrade.VERY_LOW: 0.20,
    KernelGrade.LOW: 0.40,
    KernelGrade.MED: 0.65,
    KernelGrade.HIGH: 0.90,
}


class StatedConfidence(NamedTuple):
    """The band and score that a line of the body states; either may be missing."""

    word: ConfidenceBand | None
    score: float | None


class ConfidenceAnswers(NamedTuple):
    """Answers to the questions of GIT-CONF-3; `risk` is from 0 (none known) to 1 (severe)."""

    validated: bool = False
    agreed: bool = False
    risk: float = 0.0
    reversible: bool = False
    tested: bool = False


def parse_score(text: str) -> float | None:
    """A decimal from 0 to 1, else None (OPEN-68)."""
    if len(text) > MAX_NUMBER_LENGTH or not re.fullmatch(_DECIMAL, text):
        return None
    score = float(text)
    return score if score <= 1.0 else None


def format_score(score: float) -> str:
    return f"{score:.2f}"


def band_of(score: float) -> ConfidenceBand:
    return next(name for minimum, name in BAND_MINIMUMS if score >= minimum)


def grade_of(score: float) -> KernelGrade:
    return next(name for minimum, name in GRADE_MINIMUMS if score >= minimum)


def confidence_line(score: float) -> str:
    """The line for the body; band and score agree even after rounding."""
    return f"Confidence: {band_of(float(format_score(score)))} ({format_score(score)})"


def parse_confidence_line(text: str) -> StatedConfidence | None:
    """Parses `Confidence: high (0.90)` or `Confidence: 90%`, ignoring any text after it."""
    match = re.match(_LINE, text, re.IGNORECASE)
    if match is None or not (match["word"] or match["number"]):
        return None
    word = ConfidenceBand(match["word"].lower()) if match["word"] else None
    return StatedConfidence(word, _parse_number(match["number"]))


def _parse_number(text: str | None) -> float | None:
    if text is None or not text.endswith("%"):
        return parse_score(text) if text else None
    share = float(text[:-1]) / 100
    return share if share <= 1.0 else None


def suggest_score(answers: ConfidenceAnswers) -> float:
    """A suggestion that is never recorded: 0.40 without answers, 1.00 for the best ones."""
    score = 0.40
    score += 0.2 * answers.validated + 0.2 * answers.agreed
    score += 0.1 * answers.reversible + 0.1 * answers.tested
    if answers.risk > 0:
        score -= 0.1 + 0.2 * min(answers.risk, 1.0)
    return round(min(max(score, 0.0), 1.0), 2)


# References

REF_KINDS = {
    "msg": "message",
    "fork": "fork",
    "ses": "session",
    "session": "session",
    "dec": "decision",
}
MIN_PREFIX_LENGTH = 8
_WIRE_PREFIXES = ("ses_", "dec_", "msg_")
BRANCH_PREFIX = "pvp/"
MAX_BRANCH_LENGTH = 120
_unsafe = re.compile(r"[^A-Za-z0-9_-]")


class PvpRef(NamedTuple):
    """A parsed reference; without a `kind` it is opaque."""

    kind: str | None
    id: str
    text: str


def branch_of(fork: str) -> str:
    """The branch of a fork, escaped to a valid git name (OPEN-77)."""
    name = _unsafe.sub(lambda match: f"_{ord(match[0]):x}_", fork)[:MAX_BRANCH_LENGTH]
    return f"{BRANCH_PREFIX}{name}"


def fork_of(branch: str, forks: Iterable[str]) -> str | None:
    """The fork whose branch this is; None for any other branch."""
    return next((fork for fork in forks if branch_of(fork) == branch), None)


def parse_ref(text: str) -> PvpRef:
    """Splits `<kind>-<id or prefix>`; any other text becomes an opaque reference."""
    word, dash, id = text.partition("-")
    known = bool(dash and id) and word in REF_KINDS
    return PvpRef(REF_KINDS[word], id, text) if known else PvpRef(None, text, text)


def strip_id_prefix(id: str) -> str:
    """The id without the prefix that marks its kind."""
    return next((id[len(p) :] for p in _WIRE_PREFIXES if id.startswith(p) and id != p), id)


def matching_ids(ref: PvpRef, ids: Iterable[str]) -> tuple[str, ...]:
    """The ids that match: an exact match, else all that start with the reference."""
    known = tuple(dict.fromkeys(ids))
    exact = tuple(id for id in known if id == ref.text or ref.id in (id, strip_id_prefix(id)))
    if exact or ref.kind is None or len(ref.id) < MIN_PREFIX_LENGTH:
        return exact
    return tuple(
        id for id in known if id.startswith(ref.id) or strip_id_prefix(id).startswith(ref.id)
    )


def shortest_ref(word: str, id: str, others: Iterable[str] = ()) -> str:
    """The shortest reference that matches this id and none of the others."""
    whole = strip_id_prefix(id)
    rest = [strip_id_prefix(other) for other in others if other != id]
    length = MIN_PREFIX_LENGTH
    while length < len(whole) and any(other.startswith(whole[:length]) for other in rest):
        length += 1
    return f"{word}-{whole[:length]}"
