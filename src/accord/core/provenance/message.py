"""A commit message: header, body and trailers, as anybody may have written them.

Reading never fails and refuses nothing; `check` says what is wrong, `build` writes.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from . import confidence as numbers
from . import kinds, participants
from .participants import HUMAN, Named, Participant, decoded, items
from .trailers import Trailer, find, lines_of

SESSION, DECISION, MESSAGES = "PVP-Session", "PVP-Decision", "PVP-Messages"
FORK, CONFIDENCE, TOOLS, THREAD = "PVP-Fork", "PVP-Confidence", "PVP-Tools", "PVP-Thread"
DECISION_TYPE, DECISION_BY = "PVP-Decision-Type", "Decision-By"
REVIEWED_BY, APPROVED_BY = "Reviewed-By", "Approved-By"
# The same in the other seed's words: read, and written only on request (OPEN-61).
TYPE, APPROVERS = "PVP-Type", "PVP-Approvers"
KEYS = {
    SESSION: "The session, by its id on the wire.",
    DECISION: "The decision; several after a squash.",
    MESSAGES: "The chain from the prompt to the last tool; of a long one both ends.",
    FORK: "The fork it was decided in.",
    CONFIDENCE: "How sure the agent was, from 0.00 to 1.00; left out where it did not say.",
    DECISION_TYPE: "What kind of decision it was.",
    TYPE: "The exact kind, where `PVP-Decision-Type` has no word for it.",
    TOOLS: "Tools that ran, by name.",
    THREAD: "The conversation itself, compressed, in base64. Off unless asked for.",
    DECISION_BY: "Who asked for it and which agents did it. Required with any `PVP-` key.",
    REVIEWED_BY: "Who judged the work afterwards. An approval is no review.",
    APPROVED_BY: "Who said yes at a gate, before it was done.",
    APPROVERS: "Only read: names of people who approved.",
}
PVP_KEYS = tuple(key for key in KEYS if key.startswith("PVP-"))

# OPEN-66: git writes these headers itself.
GENERATED = ("Merge ", 'Revert "', "fixup! ", "squash! ", "amend! ")

# Compiled when they are first needed: hooks load this at every commit.
_HEAD = r"(?P<type>\w+)(?:\((?P<scope>[^)]+)\))?(?P<breaking>!)?:\s+"
_ALTERNATIVE = r"[-*][ \t]+(?P<what>[^:]+):[ \t]*(?P<why>.*)"
REF, LINE_END = "[pvp:", "\n"
MOST_READ = 1 << 20
OPTIONS, SURE, CONTEXT = "alternatives considered", "confidence", "discussion context"


class Header(NamedTuple):
    """The first line; without a `type` it is no conventional one, and all of it description."""

    text: str
    type: str | None
    scope: str | None
    breaking: bool
    description: str
    ref: str | None

    @property
    def generated(self) -> bool:
        """Whether git wrote it."""
        return self.text.startswith(GENERATED)


class Alternative(NamedTuple):
    """Something that was considered and not done."""

    what: str
    why: str


class Sections(NamedTuple):
    """The parts of a body; labels are optional, so what has none is rationale."""

    rationale: str = ""
    alternatives: tuple[Alternative, ...] = ()
    confidence: numbers.Stated | None = None
    discussion: str = ""


class CommitMessage(NamedTuple):
    """What a message says."""

    header: Header
    body: str
    trailers: tuple[Trailer, ...]

    def values(self, key: str) -> tuple[str, ...]:
        """Every value of a key, whatever its case, in the order they stand."""
        return tuple(each.value for each in self.trailers if each.key.lower() == key.lower())

    def value(self, key: str) -> str | None:
        """The last value of a key that says something."""
        found = [value for value in self.values(key) if value]
        return found[-1] if found else None

    def listed(self, key: str) -> tuple[str, ...]:
        """The comma lists of a key together, each item once (OPEN-71)."""
        found = (decoded(item) for value in self.values(key) for item in items(value))
        return tuple(dict.fromkeys(found))

    def named(self, key: str) -> Named:
        """Participants of a key, and what is not written as one."""
        read = [participants.read(value) for value in self.values(key)]
        known = dict.fromkeys(each for one in read for each in one.participants)
        return Named(tuple(known), tuple(raw for one in read for raw in one.raw))

    @property
    def sections(self) -> Sections:
        """The parts of the body."""
        return sections(self.body)

    @property
    def confidence(self) -> float | None:
        """The trailer's number; else the body's, which git may take for a trailer (OPEN-68)."""
        if (value := self.value(CONFIDENCE)) is not None:
            return numbers.parse(value)
        loose = self.value("Confidence")
        stated = numbers.stated(f"Confidence: {loose}") if loose else self.sections.confidence
        return stated.score if stated else None

    @property
    def session_id(self) -> str | None:
        """The wire id of the session."""
        value = self.value(SESSION)
        return decoded(value) if value else None

    @property
    def decision_ids(self) -> tuple[str, ...]:
        """Decisions, several after a squash."""
        return self.listed(DECISION)

    @property
    def message_ids(self) -> tuple[str, ...]:
        """The causal chain; a bare number is how many there were, not an id (OPEN-61)."""
        counts = all(value.isdecimal() for value in self.values(MESSAGES))
        return () if counts else self.listed(MESSAGES)

    @property
    def fork_id(self) -> str | None:
        """The fork it was decided in."""
        value = self.value(FORK)
        return decoded(value) if value else None

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that ran."""
        return self.listed(TOOLS)

    @property
    def decision_type(self) -> str | None:
        """The exact word, of either vocabulary."""
        return kinds.told(self.value(DECISION_TYPE), self.value(TYPE))

    @property
    def decided_by(self) -> tuple[Participant, ...]:
        """Who made the decision."""
        return self.named(DECISION_BY).participants

    @property
    def reviewed_by(self) -> tuple[Participant, ...]:
        """Who reviewed the change."""
        return self.named(REVIEWED_BY).participants

    @property
    def approved_by(self) -> tuple[Participant, ...]:
        """Who approved at a gate; bare names of the other seed are people's."""
        people = (Participant(HUMAN, name) for name in self.listed(APPROVERS))
        return tuple(dict.fromkeys((*self.named(APPROVED_BY).participants, *people)))

    @property
    def breaking(self) -> bool:
        """OPEN-67: by `!`, or in so many words."""
        words = ("BREAKING CHANGE: ", "BREAKING-CHANGE: ")
        said = any(line.startswith(words) for line in self.body.split("\n"))
        return self.header.breaking or said or bool(self.values("BREAKING-CHANGE"))

    @property
    def has_context(self) -> bool:
        """Whether it comes from a session: a `PVP-*` trailer or a `[pvp:]` reference (OPEN-70)."""
        told = any(each.key.lower().startswith("pvp-") for each in self.trailers)
        return told or self.header.ref is not None


def parse(text: str) -> CommitMessage:
    """The message in this text; blank lines before the header are passed over.

    Of one that nobody can have written by hand both ends are read: the header and the trailers.
    """
    lines = lines_of(text if len(text) <= MOST_READ else _ends(text))
    first = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    block = find("".join(lines[first:]))
    trailers = tuple(each._replace(line=each.line + first) for each in block.trailers)
    rest = lines[first + 1 : first + (block.start if trailers else block.end)]
    header = lines[first] if first < len(lines) else ""
    return CommitMessage(parse_header(header), "".join(rest).strip("\n").rstrip(), trailers)


def _ends(text: str) -> str:
    half = MOST_READ // 2
    return f"{text[:half]}\n\n{text[-half:].partition(LINE_END)[2]}"


def parse_header(line: str) -> Header:
    """Any word is a type, also with `!` (OPEN-67); any length will do (OPEN-65)."""
    text = line.rstrip()
    found = re.match(_HEAD, text, re.ASCII)
    if found is None or found.end() == len(text):
        return Header(text, None, None, breaking=False, description=text, ref=None)
    description, ref = _split_ref(text[found.end() :])
    breaking = found["breaking"] is not None
    return Header(text, found["type"], found["scope"], breaking, description, ref)


def _split_ref(text: str) -> tuple[str, str | None]:
    """A description and the reference at its end, if there is one."""
    if not text.endswith("]"):
        return text, None
    start = text.find(REF, text.rfind("]", 0, -1) + 1)
    while start > 0 and not text[start - 1].isspace():
        start = text.find(REF, start + 1)
    ref = text[start + len(REF) : -1]
    return (text[:start].rstrip(), ref) if start > 0 and ref else (text, None)


def sections(body: str) -> Sections:
    """What stands under the labels of GIT-BODY-2, each as far as the next; indented is not one."""
    found: dict[str, list[str]] = {"": [], OPTIONS: [], CONTEXT: []}
    stated: numbers.Stated | None = None
    label = ""
    for line in body.split("\n"):
        told, rest = _label(line)
        if label == OPTIONS and line[:1] not in ("", "-", "*", " ", "\t"):
            label = ""
        if not told:
            found[label].append(line)
        elif told == SURE:
            stated, label = numbers.stated(line) or stated, ""
        else:
            label = told
            found[label].append(rest)
    options = tuple(_alternatives(found[OPTIONS]))
    rationale, discussion = _paragraphs(found[""]), _paragraphs(found[CONTEXT])
    return Sections(rationale, options, stated, discussion)


def _label(line: str) -> tuple[str, str]:
    """The label that a line begins with, and what follows it; empty where it has none."""
    word, colon, rest = line.partition(":")
    label = word.removeprefix("[").removesuffix("]").lower()
    return (label, rest.lstrip(" \t")) if colon and label in (OPTIONS, SURE, CONTEXT) else ("", "")


def _paragraphs(lines: list[str]) -> str:
    text = "\n".join(lines).strip()
    return re.sub(r"\n{3,}", "\n\n", text) if "\n\n\n" in text else text


def _alternatives(lines: list[str]) -> Iterator[Alternative]:
    """`- <what>: <why>`; a line that is indented goes on with the one before."""
    joined: list[str] = []
    for line in lines:
        if joined and line[:1] in (" ", "\t") and line.strip():
            joined[-1] = f"{joined[-1]} {line.strip()}"
        else:
            joined.append(line)
    for line in joined:
        if found := re.fullmatch(_ALTERNATIVE, line):
            yield Alternative(found["what"].strip(), found["why"].strip())


def metadata(message: CommitMessage) -> dict[str, Any]:
    """PVPCommitMetadata, as other tools know it; what is not there is left out."""
    header = message.header
    told: dict[str, Any] = {
        "type": header.type,
        "scope": header.scope,
        "description": header.description,
        "pvpRef": header.ref,
        "body": message.body,
        "confidence": message.confidence,
        "sessionId": message.session_id,
        "messageIds": list(message.message_ids),
        "forkId": message.fork_id,
        "decisionType": message.decision_type,
        "decisionBy": [_person(each) for each in message.decided_by],
        "reviewedBy": [_person(each) for each in message.reviewed_by],
        "approvedBy": [_person(each) for each in message.approved_by],
        "decisions": list(message.decision_ids),
        "tools": list(message.tools),
        "breaking": message.breaking,
    }
    return {key: value for key, value in told.items() if value not in (None, "", [], False)}


def _person(each: Participant) -> dict[str, str]:
    return {"type": each.kind, "identifier": each.identifier}
