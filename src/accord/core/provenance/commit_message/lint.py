"""Checks of commit messages: each finding has its line and how to fix it."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from accord.core.provenance.commit_message import trailer_values, trailers
from accord.core.provenance.commit_message.parser import (
    MAX_MESSAGE_CHARS,
    CommitMessage,
    parse_message,
)
from accord.core.provenance.commit_message.trailers import (
    COMMENT_CHAR,
    MAX_LINE_WIDTH,
    SCISSORS_LINE,
    Trailer,
    split_lines,
)

HEADER_FORM = "<type>(<scope>): <description> [pvp:<ref>]"
# First words in the past or present tense, and the imperative to use (GIT-HEADER-4).
IMPERATIVE_OF = {
    "added": "add",
    "adds": "add",
    "adding": "add",
    "fixed": "fix",
    "fixes": "fix",
    "fixing": "fix",
    "changed": "change",
    "changes": "change",
    "changing": "change",
    "removed": "remove",
    "removes": "remove",
    "removing": "remove",
    "updated": "update",
    "updates": "update",
    "updating": "update",
    "implemented": "implement",
    "implements": "implement",
    "implementing": "implement",
    "moved": "move",
    "moves": "move",
    "made": "make",
    "makes": "make",
    "used": "use",
    "uses": "use",
}


class LintFinding(NamedTuple):
    """One problem and how to fix it (`mend`); only an `error` prevents the commit."""

    line: int
    error: bool
    problem: str
    mend: str

    def __str__(self) -> str:
        return f"line {self.line}: {'error' if self.error else 'warning'}: {self.problem}"


def error(line: int, problem: str, mend: str) -> LintFinding:
    """A finding that prevents the commit."""
    return LintFinding(line, error=True, problem=problem, mend=mend)


def warning(line: int, problem: str, mend: str) -> LintFinding:
    """A finding that does not prevent the commit."""
    return LintFinding(line, error=False, problem=problem, mend=mend)


class LintRules(NamedTuple):
    """The settings of a repository."""

    widest: int = MAX_LINE_WIDTH
    too_long_is_error: bool = True


class LintInput(NamedTuple):
    """A parsed message with its lines and the rules to apply."""

    message: CommitMessage
    lines: tuple[str, ...]
    header_line: int  # the line of the header, counted from 1
    rules: LintRules


def strip_comments(text: str, comment: str = COMMENT_CHAR) -> str:
    """What git keeps of a message file: no comments, nothing below the scissors line.

    Comments stay in a message that is too long to be parsed.
    """
    kept = _above_scissors(text, SCISSORS_LINE.rstrip().replace(COMMENT_CHAR, comment, 1))
    if len(kept) > MAX_MESSAGE_CHARS:
        return kept
    return "".join(line for line in split_lines(kept) if not line.startswith(comment))


def _above_scissors(text: str, scissors: str) -> str:
    """The text above the scissors line; the diff below it can be of any size."""
    begin = f"\n{scissors}"
    at = 0 if text.startswith(scissors) else text.find(begin) + 1 or len(text)
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        if text[at:end].rstrip() == scissors:
            break
        at = text.find(begin, end - 1) + 1 or len(text)
    return text[:at]


def lint(text: str, rules: LintRules | None = None) -> list[LintFinding]:
    """All findings, sorted by line; empty if the message is fine.

    A message does not need any PVP metadata (GIT-COMPAT-1).
    """
    if len(text) > MAX_MESSAGE_CHARS:
        problem = f"The message has {len(text)} characters; at most {MAX_MESSAGE_CHARS} are allowed"
        return [error(1, problem, "Shorten it")]
    lines = tuple(line.rstrip("\n") for line in split_lines(text))
    first = next((n for n, line in enumerate(lines, 1) if line.strip()), 0)
    if not first:
        return [error(1, "The message is empty", f"Write {HEADER_FORM}")]
    message = parse_message(text)
    if message.is_from_first_hooks:
        return []  # history, which is read and never written
    checked = LintInput(message, lines, first, rules or LintRules())
    return sorted(finding for check in CHECKS for finding in check(checked))


def check_header_form(checked: LintInput) -> Iterator[LintFinding]:
    """GIT-HOOK-CM-1, except for headers that git generates (OPEN-66)."""
    header = checked.message.header
    if header.is_generated:
        return
    if header.type is None:
        problem = f"The header is {header.text!r}, not {HEADER_FORM}"
        mend = (
            f"Start with one of {', '.join(trailer_values.COMMIT_TYPES)}, then a colon and a space"
        )
        yield error(checked.header_line, problem, mend)
    elif header.type not in trailer_values.COMMIT_TYPES:
        hint = trailer_values.COMMIT_TYPE_HINTS.get(header.type)
        mend = f"Use {hint}" if hint else f"Use one of {', '.join(trailer_values.COMMIT_TYPES)}"
        yield error(checked.header_line, f"{header.type!r} is not a commit type", mend)


def check_header_length(checked: LintInput) -> Iterator[LintFinding]:
    """GIT-HOOK-CM-2; counts characters, not bytes (OPEN-65)."""
    header, rules = checked.message.header, checked.rules
    if header.is_generated or (length := len(header.text)) <= rules.widest:
        return
    mend = "Remove the reference" if header.ref else "Shorten it"
    problem = f"The header has {length} characters; {rules.widest} are allowed"
    yield LintFinding(checked.header_line, rules.too_long_is_error, problem, mend)


def check_header_mood(checked: LintInput) -> Iterator[LintFinding]:
    """GIT-HEADER-4: imperative mood."""
    header = checked.message.header
    first, _, _ = header.description.partition(" ")
    if header.type and (better := IMPERATIVE_OF.get(first.lower())):
        problem = f"{first!r} is not in the imperative mood"
        yield warning(checked.header_line, problem, f"Write {better!r}")


def check_blank_line(checked: LintInput) -> Iterator[LintFinding]:
    """GIT-STRUCT-1: a blank line after the header."""
    second = checked.lines[checked.header_line : checked.header_line + 1]
    if second and second[0].strip():
        mend = "Insert an empty line below the header"
        yield error(checked.header_line + 1, "There is no empty line between header and body", mend)


def check_body_width(checked: LintInput) -> Iterator[LintFinding]:
    """GIT-BODY-4; single long words, indented lines and trailers may be wider."""
    in_block = {trailer.line for trailer in checked.message.trailers}
    max_width = checked.rules.widest
    for number, line in enumerate(checked.lines, 1):
        wrappable = " " in line.strip() and not line[:1].isspace()
        if (
            number > checked.header_line
            and number not in in_block
            and wrappable
            and len(line) > max_width
        ):
            problem = f"The line has {len(line)} characters; wrap the body at {max_width}"
            yield warning(number, problem, "Break the line")


def check_misplaced_trailers(checked: LintInput) -> Iterator[LintFinding]:
    """OPEN-71: only the last paragraph counts; indented lines are plain text (GIT-EX-4)."""
    in_block = {trailer.line for trailer in checked.message.trailers}
    known = tuple(f"{key.lower()}:" for key in (*trailers.PVP_KEYS, trailers.DECISION_BY_KEY))
    for number, line in enumerate(checked.lines, 1):
        if (
            number > checked.header_line
            and number not in in_block
            and line.lower().startswith(known)
        ):
            key = line.partition(":")[0]
            mend = "Move it to the last paragraph, which must contain only trailers"
            yield warning(number, f"git does not recognize {key} here as a trailer", mend)


def check_confidence(checked: LintInput) -> Iterator[LintFinding]:
    """GIT-HOOK-CM-3, and whether body and trailer agree (OPEN-68)."""
    message = checked.message
    for trailer in _trailers_of(message, trailers.CONFIDENCE_KEY):
        if trailer_values.parse_score(trailer.value) is None:
            problem = f"PVP-Confidence is {trailer.value!r}, not a number from 0.00 to 1.00"
            yield error(trailer.line, problem, "Write a number such as 0.85, or remove the trailer")
    score = message.confidence
    stated = None if score is None else message.sections.confidence
    if score is None or stated is None:
        return
    line_number = next(
        n for n, line in enumerate(checked.lines, 1) if trailer_values.parse_confidence_line(line)
    )
    differs = stated.score is not None and abs(stated.score - score) > 0.005
    if differs or stated.word not in (None, trailer_values.band_of(score)):
        shown = trailer_values.format_score(score)
        problem = f"The confidence in the body differs from the trailer, {shown}"
        yield warning(line_number, problem, f"Write {trailer_values.confidence_line(score)!r}")


def check_decision_type(checked: LintInput) -> Iterator[LintFinding]:
    """GIT-TRAILER-7; words of either vocabulary are allowed."""
    message = checked.message
    for trailer in (
        *_trailers_of(message, trailers.DECISION_TYPE_KEY),
        *_trailers_of(message, trailers.PVP_TYPE_KEY),
    ):
        if trailer.value not in trailer_values.DECISION_TYPES:
            mend = f"Use one of {', '.join(trailer_values.TRAILER_DECISION_TYPES)}"
            yield error(trailer.line, f"{trailer.value!r} is not a decision type", mend)
    exact = message.value(trailers.PVP_TYPE_KEY)
    general = message.value(trailers.DECISION_TYPE_KEY)
    if exact in trailer_values.DECISION_TYPES and general in trailer_values.DECISION_TYPES:
        meant, _ = trailer_values.to_trailer_types(str(exact))
        if meant != trailer_values.to_trailer_types(str(general))[0]:
            line = next(_trailers_of(message, trailers.PVP_TYPE_KEY)).line
            problem = f"PVP-Type {exact} contradicts PVP-Decision-Type {general}"
            yield warning(line, problem, "Remove one of them")


def check_decided_by(checked: LintInput) -> Iterator[LintFinding]:
    """OPEN-70: `Decision-By` is required with PVP metadata."""
    message = checked.message
    if message.has_context and not message.decided_by:
        problem = "There is PVP metadata, but no Decision-By"
        mend = "Add a trailer such as Decision-By: human:<name>"
        yield error(max(len(checked.lines), 1), problem, mend)


def check_participants(checked: LintInput) -> Iterator[LintFinding]:
    """GIT-PART-1; an ordinary `Reviewed-by: Name <mail>` is allowed (OPEN-71)."""
    for key in (trailers.DECISION_BY_KEY, trailers.APPROVED_BY_KEY):
        for trailer in _trailers_of(checked.message, key):
            for raw in trailer_values.parse_participants(trailer.value).raw:
                problem = f"{raw!r} in {trailer.key} is not a participant"
                mend = "Write human:<name>, ai:<name> or agent:<name>"
                yield warning(trailer.line, problem, mend)


def check_empty_values(checked: LintInput) -> Iterator[LintFinding]:
    """Trailers without a value."""
    known = {
        key.lower()
        for key in (*trailers.PVP_KEYS, trailers.DECISION_BY_KEY, trailers.APPROVED_BY_KEY)
    }
    for trailer in checked.message.trailers:
        if not trailer.value and trailer.key.lower() in known:
            mend = "Add a value, or remove the trailer"
            yield error(trailer.line, f"{trailer.key} has no value", mend)


def _trailers_of(message: CommitMessage, key: str) -> Iterator[Trailer]:
    """The trailers of a key that have a value."""
    return (
        trailer
        for trailer in message.trailers
        if trailer.key.lower() == key.lower() and trailer.value
    )


CHECKS: tuple[Callable[[LintInput], Iterator[LintFinding]], ...] = (
    check_header_form,
    check_header_length,
    check_header_mood,
    check_blank_line,
    check_body_width,
    check_misplaced_trailers,
    check_confidence,
    check_decision_type,
    check_decided_by,
    check_participants,
    check_empty_values,
)
