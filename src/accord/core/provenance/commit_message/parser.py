"""Parses commit messages: header, body and trailers.

Parsing accepts any text; `lint` reports what is wrong with it, `writer` builds messages.
"""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from accord.core.provenance.commit_message import trailer_values
from accord.core.provenance.commit_message.trailer_values import (
    HUMAN,
    Participant,
    ParticipantList,
    decode_name,
    split_list,
)
from accord.core.provenance.commit_message.trailers import (
    APPROVED_BY_KEY,
    APPROVERS_KEY,
    CONFIDENCE_KEY,
    DECISION_BY_KEY,
    DECISION_KEY,
    DECISION_TYPE_KEY,
    FORK_KEY,
    MESSAGES_KEY,
    META_KEY,
    PARTICIPANTS_KEY,
    PVP_TYPE_KEY,
    REVIEWED_BY_KEY,
    SESSION_KEY,
    TOOLS_KEY,
    Trailer,
    find_meta_block,
    find_trailers,
    split_lines,
)

# OPEN-66: git generates these headers.
GENERATED_HEADERS = ("Merge ", 'Revert "', "fixup! ", "squash! ", "amend! ")

# Compiled on first use: hooks import this at every commit.
_HEAD = r"(?P<type>\w+)(?:\((?P<scope>[^)]+)\))?(?P<breaking>!)?:\s+"
_ALTERNATIVE = r"[-*][ \t]+(?P<what>[^:]+):[ \t]*(?P<why>.*)"
REF_OPENING, LINE_END = "[pvp:", "\n"
MAX_MESSAGE_CHARS = 1 << 20
ALTERNATIVES_LABEL, CONFIDENCE_LABEL, DISCUSSION_LABEL = (
    "alternatives considered",
    "confidence",
    "discussion context",
)


class Header(NamedTuple):
    """The first line; without a `type` it is not conventional and all of it is description."""

    text: str
    type: str | None
    scope: str | None
    breaking: bool
    description: str
    ref: str | None

    @property
    def is_generated(self) -> bool:
        return self.text.startswith(GENERATED_HEADERS)


class BodyAlternative(NamedTuple):
    """An alternative that was considered, and why it was not chosen."""

    what: str
    why: str


class BodySections(NamedTuple):
    """The parts of a body; text without a label is rationale."""

    rationale: str = ""
    alternatives: tuple[BodyAlternative, ...] = ()
    confidence: trailer_values.StatedConfidence | None = None
    discussion: str = ""


class CommitMessage(NamedTuple):
    header: Header
    body: str
    trailers: tuple[Trailer, ...]

    def values(self, key: str) -> tuple[str, ...]:
        """All values of a key, in order; keys are case-insensitive."""
        return tuple(
            trailer.value for trailer in self.trailers if trailer.key.lower() == key.lower()
        )

    def value(self, key: str) -> str | None:
        """The last non-empty value of a key."""
        values = [value for value in self.values(key) if value]
        return values[-1] if values else None

    def items_of(self, key: str) -> tuple[str, ...]:
        """The items of all comma-separated values of a key, without duplicates (OPEN-71)."""
        items = (decode_name(item) for value in self.values(key) for item in split_list(value))
        return tuple(dict.fromkeys(items))

    def participants_of(self, key: str) -> ParticipantList:
        """The participants of a key, and the values that are not participants."""
        lists = [trailer_values.parse_participants(value) for value in self.values(key)]
        known = dict.fromkeys(name for parsed in lists for name in parsed.participants)
        return ParticipantList(tuple(known), tuple(raw for parsed in lists for raw in parsed.raw))

    @property
    def sections(self) -> BodySections:
        return parse_sections(self.body)

    @property
    def confidence(self) -> float | None:
        """The score of the trailer, else of the body; git may take that for a trailer (OPEN-68)."""
        if (value := self.value(CONFIDENCE_KEY)) is not None:
            return trailer_values.parse_score(value)
        body_line = self.value("Confidence")
        stated = (
            trailer_values.parse_confidence_line(f"Confidence: {body_line}")
            if body_line
            else self.sections.confidence
        )
        return stated.score if stated else None

    @property
    def session_id(self) -> str | None:
        """The wire id of the session."""
        value = self.value(SESSION_KEY)
        return decode_name(value) if value else None

    @property
    def decision_ids(self) -> tuple[str, ...]:
        """Decision ids; several after a squash."""
        return self.items_of(DECISION_KEY)

    @property
    def message_ids(self) -> tuple[str, ...]:
        """Ids of the causal chain; a bare number is a count, not an id (OPEN-61)."""
        counts = all(value.isdecimal() for value in self.values(MESSAGES_KEY))
        return () if counts else self.items_of(MESSAGES_KEY)

    @property
    def fork_id(self) -> str | None:
        """The fork in which it was decided."""
        value = self.value(FORK_KEY)
        return decode_name(value) if value else None

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of the tools that ran; the first PVP hooks added a count, `shell:5`."""
        names = self.items_of(TOOLS_KEY)
        if not self.is_from_first_hooks:
            return names
        return tuple(dict.fromkeys(name.partition(":")[0] for name in names))

    @property
    def decision_type(self) -> str | None:
        """The most exact type stated, of either vocabulary."""
        return trailer_values.combine_trailer_types(
            self.value(DECISION_TYPE_KEY), self.value(PVP_TYPE_KEY)
        )

    @property
    def decided_by(self) -> tuple[Participant, ...]:
        """Who made the decision."""
        return self.participants_of(DECISION_BY_KEY).participants

    @property
    def reviewed_by(self) -> tuple[Participant, ...]:
        """Who reviewed the change."""
        return self.participants_of(REVIEWED_BY_KEY).participants

    @property
    def approved_by(self) -> tuple[Participant, ...]:
        """Who approved at a gate; bare names in `PVP-Approvers` are humans."""
        people = (Participant(HUMAN, name) for name in self.items_of(APPROVERS_KEY))
        return tuple(dict.fromkeys((*self.participants_of(APPROVED_BY_KEY).participants, *people)))

    @property
    def breaking(self) -> bool:
        """OPEN-67: marked with `!` or by a `BREAKING CHANGE` line."""
        markers = ("BREAKING CHANGE: ", "BREAKING-CHANGE: ")
        stated = any(line.startswith(markers) for line in self.body.split("\n"))
        return self.header.breaking or stated or bool(self.values("BREAKING-CHANGE"))

    @property
    def is_from_first_hooks(self) -> bool:
        """Whether the first PVP hooks completed it; their block has counts and no decision."""
        return any(trailer.key.lower() == META_KEY for trailer in self.trailers)

    @property
    def present(self) -> tuple[str, ...]:
        """Who was in the session, as the first PVP hooks wrote it; not who decided."""
        return self.items_of(PARTICIPANTS_KEY)

    @property
    def has_context(self) -> bool:
        """Whether it has PVP metadata: a `PVP-*` trailer or a `[pvp:]` reference (OPEN-70)."""
        has_trailer = any(trailer.key.lower().startswith("pvp-") for trailer in self.trailers)
        return has_trailer or self.header.ref is not None


def parse_message(text: str) -> CommitMessage:
    """Parses a message; blank lines before the header are skipped.

    Of an oversized message only the beginning and the end are parsed: header and trailers.
    """
    lines = split_lines(text if len(text) <= MAX_MESSAGE_CHARS else _both_ends(text))
    first = next((n for n, line in enumerate(lines) if line.strip()), len(lines))
    rest_of_text = "".join(lines[first:])
    block = find_trailers(rest_of_text)
    if not any(trailer.key.lower().startswith("pvp-") for trailer in block.trailers):
        block = find_meta_block(rest_of_text) or block
    trailers = tuple(trailer._replace(line=trailer.line + first) for trailer in block.trailers)
    rest = lines[first + 1 : first + (block.start if trailers else block.end)]
    header = lines[first] if first < len(lines) else ""
    return CommitMessage(parse_header(header), "".join(rest).strip("\n").rstrip(), trailers)


def _both_ends(text: str) -> str:
    half = MAX_MESSAGE_CHARS // 2
    return f"{text[:half]}\n\n{text[-half:].partition(LINE_END)[2]}"


def parse_header(line: str) -> Header:
    """Accepts any word as a type, with or without `!` (OPEN-67), and any length (OPEN-65)."""
    text = line.rstrip()
    match = re.match(_HEAD, text, re.ASCII)
    if match is None or match.end() == len(text):
        return Header(text, None, None, breaking=False, description=text, ref=None)
    description, ref = _split_ref(text[match.end() :])
    breaking = match["breaking"] is not None
    return Header(text, match["type"], match["scope"], breaking, description, ref)


def _split_ref(text: str) -> tuple[str, str | None]:
    """The description, and the reference at its end if there is one."""
    if not text.endswith("]"):
        return text, None
    start = text.find(REF_OPENING, text.rfind("]", 0, -1) + 1)
    while start > 0 and not text[start - 1].isspace():
        start = text.find(REF_OPENING, start + 1)
    ref = text[start + len(REF_OPENING) : -1]
    return (text[:start].rstrip(), ref) if start > 0 and ref else (text, None)


def parse_sections(body: str) -> BodySections:
    """Splits the body at the labels of GIT-BODY-2; an indented label does not count."""
    sections: dict[str, list[str]] = {"": [], ALTERNATIVES_LABEL: [], DISCUSSION_LABEL: []}
    stated: trailer_values.StatedConfidence | None = None
    label = ""
    for line in body.split("\n"):
        new_label, rest = _label(line)
        if label == ALTERNATIVES_LABEL and line[:1] not in ("", "-", "*", " ", "\t"):
            label = ""
        if not new_label:
            sections[label].append(line)
        elif new_label == CONFIDENCE_LABEL:
            stated, label = trailer_values.parse_confidence_line(line) or stated, ""
        else:
            label = new_label
            sections[label].append(rest)
    options = tuple(_alternatives(sections[ALTERNATIVES_LABEL]))
    rationale, discussion = _paragraphs(sections[""]), _paragraphs(sections[DISCUSSION_LABEL])
    return BodySections(rationale, options, stated, discussion)


def _label(line: str) -> tuple[str, str]:
    """The label at the start of a line and the text after it; both empty if there is none."""
    word, colon, rest = line.partition(":")
    label = word.removeprefix("[").removesuffix("]").lower()
    return (
        (label, rest.lstrip(" \t"))
        if colon and label in (ALTERNATIVES_LABEL, CONFIDENCE_LABEL, DISCUSSION_LABEL)
        else ("", "")
    )


def _paragraphs(lines: list[str]) -> str:
    text = "\n".join(lines).strip()
    return re.sub(r"\n{3,}", "\n\n", text) if "\n\n\n" in text else text


def _alternatives(lines: list[str]) -> Iterator[BodyAlternative]:
    """Parses `- <what>: <why>`; an indented line continues the one before."""
    joined: list[str] = []
    for line in lines:
        if joined and line[:1] in (" ", "\t") and line.strip():
            joined[-1] = f"{joined[-1]} {line.strip()}"
        else:
            joined.append(line)
    for line in joined:
        if match := re.fullmatch(_ALTERNATIVE, line):
            yield BodyAlternative(match["what"].strip(), match["why"].strip())


def commit_metadata(message: CommitMessage) -> dict[str, Any]:
    """The message as PVPCommitMetadata, for other tools; empty fields are left out."""
    header = message.header
    metadata: dict[str, Any] = {
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
        "decisionBy": [_person(member) for member in message.decided_by],
        "reviewedBy": [_person(member) for member in message.reviewed_by],
        "approvedBy": [_person(member) for member in message.approved_by],
        "decisions": list(message.decision_ids),
        "tools": list(message.tools),
        "participants": list(message.present),
        "breaking": message.breaking,
    }
    return {key: value for key, value in metadata.items() if value not in (None, "", [], False)}


def _person(participant: Participant) -> dict[str, str]:
    return {"type": participant.kind, "identifier": participant.identifier}
