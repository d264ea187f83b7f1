"""What is wrong with a commit message: every finding, with its line and how to mend it."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from . import confidence, kinds, participants
from . import message as words
from .message import MOST_READ, CommitMessage, parse
from .trailers import COMMENT, SCISSORS, Trailer, lines_of

WIDEST = 72
EXPECTED = "<type>(<scope>): <description> [pvp:<ref>]"
# First words that tell what was done instead of what the commit does (GIT-HEADER-4).
PAST = {
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


class Finding(NamedTuple):
    """One thing that is wrong; only an `error` keeps a commit from being made."""

    line: int
    error: bool
    problem: str
    mend: str

    def __str__(self) -> str:
        return f"line {self.line}: {'error' if self.error else 'warning'}: {self.problem}"


def error(line: int, problem: str, mend: str) -> Finding:
    """What must be mended."""
    return Finding(line, error=True, problem=problem, mend=mend)


def warning(line: int, problem: str, mend: str) -> Finding:
    """What should be."""
    return Finding(line, error=False, problem=problem, mend=mend)


class Rules(NamedTuple):
    """What a repository may choose."""

    widest: int = WIDEST
    too_long_is_error: bool = True


class Checked(NamedTuple):
    """A message with what the checks look at."""

    message: CommitMessage
    lines: tuple[str, ...]
    first: int  # the line of the header, counted from 1
    rules: Rules


def cleaned(text: str, comment: str = COMMENT) -> str:
    """What git will keep of a message file: no comments, nothing below the scissors.

    One that is too long to be read keeps its comments.
    """
    said = _above(text, SCISSORS.rstrip().replace(COMMENT, comment, 1))
    if len(said) > MOST_READ:
        return said
    return "".join(line for line in lines_of(said) if not line.startswith(comment))


def _above(text: str, scissors: str) -> str:
    """What is above the scissors; below them may be a difference of any length."""
    begin = f"\n{scissors}"
    at = 0 if text.startswith(scissors) else text.find(begin) + 1 or len(text)
    while at < len(text):
        end = text.find("\n", at) + 1 or len(text)
        if text[at:end].rstrip() == scissors:
            break
        at = text.find(begin, end - 1) + 1 or len(text)
    return text[:at]


def check(text: str, rules: Rules | None = None) -> list[Finding]:
    """Everything that is wrong, by line; an empty list is a message to be proud of.

    A message without any PVP metadata is as good as one with (GIT-COMPAT-1).
    """
    if len(text) > MOST_READ:
        problem = f"The message has {len(text)} characters; {MOST_READ} are read at most"
        return [error(1, problem, "Say it in fewer words")]
    lines = tuple(line.rstrip("\n") for line in lines_of(text))
    first = next((n for n, line in enumerate(lines, 1) if line.strip()), 0)
    if not first:
        return [error(1, "The message is empty", f"Write {EXPECTED}")]
    checked = Checked(parse(text), lines, first, rules or Rules())
    return sorted(found for each in CHECKS for found in each(checked))


def header_form(checked: Checked) -> Iterator[Finding]:
    """GIT-HOOK-CM-1, but for what git writes itself (OPEN-66)."""
    header = checked.message.header
    if header.generated:
        return
    if header.type is None:
        problem = f"The header is {header.text!r}, not {EXPECTED}"
        mend = f"Begin with one of {', '.join(kinds.COMMIT_TYPES)}, then a colon and a space"
        yield error(checked.first, problem, mend)
    elif header.type not in kinds.COMMIT_TYPES:
        near = kinds.RELATED.get(header.type)
        mend = f"Use {near}" if near else f"Use one of {', '.join(kinds.COMMIT_TYPES)}"
        yield error(checked.first, f"{header.type!r} is no type of a commit", mend)


def header_length(checked: Checked) -> Iterator[Finding]:
    """GIT-HOOK-CM-2; characters, not bytes (OPEN-65)."""
    header, rules = checked.message.header, checked.rules
    if header.generated or (length := len(header.text)) <= rules.widest:
        return
    mend = "Leave out the reference" if header.ref else "Say it in fewer words"
    problem = f"The header has {length} characters; {rules.widest} are allowed"
    yield Finding(checked.first, rules.too_long_is_error, problem, mend)


def header_mood(checked: Checked) -> Iterator[Finding]:
    """GIT-HEADER-4."""
    header = checked.message.header
    first, _, _ = header.description.partition(" ")
    if header.type and (better := PAST.get(first.lower())):
        problem = f"{first!r} tells what you did, not what the commit does"
        yield warning(checked.first, problem, f"Write {better!r}")


def blank_line(checked: Checked) -> Iterator[Finding]:
    """GIT-STRUCT-1."""
    second = checked.lines[checked.first : checked.first + 1]
    if second and second[0].strip():
        mend = "Put an empty line below the header"
        yield error(checked.first + 1, "The body begins right below the header", mend)


def body_width(checked: Checked) -> Iterator[Finding]:
    """GIT-BODY-4; a word that is too long by itself, what is indented, and trailers may be."""
    trailers = {each.line for each in checked.message.trailers}
    widest = checked.rules.widest
    for number, line in enumerate(checked.lines, 1):
        prose = " " in line.strip() and not line[:1].isspace()
        if number > checked.first and number not in trailers and prose and len(line) > widest:
            problem = f"The line has {len(line)} characters; the body is wrapped at {widest}"
            yield warning(number, problem, "Break the line")


def lost_trailers(checked: Checked) -> Iterator[Finding]:
    """OPEN-71: only the last paragraph counts; what is indented is meant as text (GIT-EX-4)."""
    trailers = {each.line for each in checked.message.trailers}
    known = tuple(f"{key.lower()}:" for key in (*words.PVP_KEYS, words.DECISION_BY))
    for number, line in enumerate(checked.lines, 1):
        if number > checked.first and number not in trailers and line.lower().startswith(known):
            key = line.partition(":")[0]
            mend = "Move it to the last paragraph, which holds nothing but trailers"
            yield warning(number, f"git does not read {key} here", mend)


def number(checked: Checked) -> Iterator[Finding]:
    """GIT-HOOK-CM-3, and whether the body says the same (OPEN-68)."""
    message = checked.message
    for trailer in _of(message, words.CONFIDENCE):
        if confidence.parse(trailer.value) is None:
            problem = f"PVP-Confidence is {trailer.value!r}, no number from 0.00 to 1.00"
            yield error(trailer.line, problem, "Write a number such as 0.85, or leave it out")
    score = message.confidence
    stated = None if score is None else message.sections.confidence
    if score is None or stated is None:
        return
    where = next(n for n, line in enumerate(checked.lines, 1) if confidence.stated(line))
    other = stated.score is not None and abs(stated.score - score) > 0.005
    if other or stated.word not in (None, confidence.band(score)):
        problem = f"The body's confidence is not the trailer's, {confidence.write(score)}"
        yield warning(where, problem, f"Write {confidence.line(score)!r}")


def decision_type(checked: Checked) -> Iterator[Finding]:
    """GIT-TRAILER-7, in either vocabulary."""
    message = checked.message
    for trailer in (*_of(message, words.DECISION_TYPE), *_of(message, words.TYPE)):
        if trailer.value not in kinds.DECISION_TYPES:
            mend = f"Use one of {', '.join(kinds.WRITTEN)}"
            yield error(trailer.line, f"{trailer.value!r} is no type of decision", mend)
    exact = message.value(words.TYPE)
    said = message.value(words.DECISION_TYPE)
    if exact in kinds.DECISION_TYPES and said in kinds.DECISION_TYPES:
        meant, _ = kinds.written(str(exact))
        if meant != kinds.written(str(said))[0]:
            line = next(each.line for each in _of(message, words.TYPE))
            problem = f"PVP-Type {exact} contradicts PVP-Decision-Type {said}"
            yield warning(line, problem, "Leave one of them out")


def who_decided(checked: Checked) -> Iterator[Finding]:
    """OPEN-70: required with PVP context."""
    message = checked.message
    if message.has_context and not message.decided_by:
        problem = "There is PVP metadata, but nobody who decided"
        mend = "Add a trailer such as Decision-By: human:<name>"
        yield error(max(len(checked.lines), 1), problem, mend)


def people(checked: Checked) -> Iterator[Finding]:
    """GIT-PART-1; an ordinary `Reviewed-by: Name <mail>` is nobody's mistake (OPEN-71)."""
    for key in (words.DECISION_BY, words.APPROVED_BY):
        for trailer in _of(checked.message, key):
            for raw in participants.read(trailer.value).raw:
                problem = f"{raw!r} in {trailer.key} is nobody we can name"
                mend = "Write human:<name>, ai:<name> or agent:<name>"
                yield warning(trailer.line, problem, mend)


def empty_values(checked: Checked) -> Iterator[Finding]:
    """A key that says nothing."""
    known = {key.lower() for key in (*words.PVP_KEYS, words.DECISION_BY, words.APPROVED_BY)}
    for trailer in checked.message.trailers:
        if not trailer.value and trailer.key.lower() in known:
            mend = "Give it a value, or leave it out"
            yield error(trailer.line, f"{trailer.key} has no value", mend)


def _of(message: CommitMessage, key: str) -> Iterator[Trailer]:
    """Trailers of a key that say something."""
    return (each for each in message.trailers if each.key.lower() == key.lower() and each.value)


CHECKS: tuple[Callable[[Checked], Iterator[Finding]], ...] = (
    header_form,
    header_length,
    header_mood,
    blank_line,
    body_width,
    lost_trailers,
    number,
    decision_type,
    who_decided,
    people,
    empty_values,
)
