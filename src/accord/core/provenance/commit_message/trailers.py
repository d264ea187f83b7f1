"""Trailers: their keys, found in a message exactly as git does, and written from a context.

Only the last paragraph counts, and only if it consists of trailers, or contains a line that git
generates and at least a quarter of it are trailers. The first paragraph never counts. What is
written cannot forge another line, and fits in 72 characters where it can (OPEN-65).
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from accord.core.kernel.refusal import Reason, Refused
from accord.core.provenance.commit_message import trailer_values
from accord.core.provenance.commit_message.trailer_values import (
    encode_name,
    has_control_characters,
    parse_participant,
)

SESSION_KEY, DECISION_KEY, MESSAGES_KEY = "PVP-Session", "PVP-Decision", "PVP-Messages"
FORK_KEY, CONFIDENCE_KEY, TOOLS_KEY, THREAD_KEY = (
    "PVP-Fork",
    "PVP-Confidence",
    "PVP-Tools",
    "PVP-Thread",
)
DECISION_TYPE_KEY, DECISION_BY_KEY = "PVP-Decision-Type", "Decision-By"
REVIEWED_BY_KEY, APPROVED_BY_KEY, ASSISTED_BY_KEY = "Reviewed-By", "Approved-By", "Assisted-by"
# The vocabulary of PVP 18: read, and written only on request (OPEN-61).
PVP_TYPE_KEY, APPROVERS_KEY = "PVP-Type", "PVP-Approvers"
# Written by the first PVP hooks: the members of the session at that time.
PARTICIPANTS_KEY = "PVP-Participants"
TRAILER_KEYS = {
    SESSION_KEY: "The session, by its wire id.",
    DECISION_KEY: "The decision; several after a squash.",
    MESSAGES_KEY: "Messages from the prompt to the last tool execution; by default these two.",
    FORK_KEY: "The fork in which it was decided.",
    CONFIDENCE_KEY: "The agent's own confidence, from 0.00 to 1.00; left out if it stated none.",
    DECISION_TYPE_KEY: "The type of the decision.",
    PVP_TYPE_KEY: "The exact type, if `PVP-Decision-Type` has no word for it.",
    TOOLS_KEY: "Names of the tools that ran.",
    THREAD_KEY: "The conversation itself, compressed, in base64. Off by default.",
    DECISION_BY_KEY: "The committer, and agents and prompters of its runs. Required with `PVP-`.",
    REVIEWED_BY_KEY: "Who reviewed the commit afterwards. An approval is not a review.",
    APPROVED_BY_KEY: "Whose approvals at gates cover all of the commit's content.",
    ASSISTED_BY_KEY: "The agents of its runs, with their models where they declare one.",
    APPROVERS_KEY: "The names in `Approved-By`. Read, and written only on request.",
}
PVP_KEYS = tuple(key for key in TRAILER_KEYS if key.startswith("PVP-"))

# `accord.trailers`: which trailers are written; what the environment names is written anyway.
SHORT, FULL, LINK = "short", "full", "link"
_SHORT_KEYS = frozenset(
    {
        *(SESSION_KEY, MESSAGES_KEY, DECISION_KEY, DECISION_TYPE_KEY),
        *(FORK_KEY, CONFIDENCE_KEY, DECISION_BY_KEY, REVIEWED_BY_KEY),
        *(APPROVED_BY_KEY, ASSISTED_BY_KEY),
    }
)
_ALIAS_KEYS = frozenset({PVP_TYPE_KEY, APPROVERS_KEY})
TRAILER_STYLES = {
    SHORT: _SHORT_KEYS,
    FULL: _SHORT_KEYS | _ALIAS_KEYS | {TOOLS_KEY},
    LINK: frozenset({SESSION_KEY, DECISION_KEY, DECISION_BY_KEY}),
}
MAX_LINE_WIDTH = 72
_KEY = r"[A-Za-z0-9][A-Za-z0-9-]*"  # compiled on first use: hooks import this at every commit

COMMENT_CHAR = "#"
SCISSORS_LINE = "# ------------------------ >8 ------------------------\n"
# Lines that git generates; a block with one of them may contain other lines, too.
GENERATED_PREFIXES = ("Signed-off-by: ", "(cherry picked from commit ")
SPACES = " \t\n\r"
# The block that the first PVP hooks appended, which git does not read as trailers because of its
# first line: `---`, `PVP-META: true`, then keys in capitals.
META_RULE, META_KEY = "---\n", "pvp-meta"
KEY_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-"


class Trailer(NamedTuple):
    """A line such as `Decision-By: human:alice`; `line` is its number, counted from 1."""

    key: str
    value: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.key}: {self.value}"


class TrailerBlock(NamedTuple):
    """The trailers in the lines from `start` (inclusive) to `end`, counted from 0."""

    start: int
    end: int
    trailers: tuple[Trailer, ...]


def split_lines(text: str) -> list[str]:
    """The lines including their line feeds; no other character ends a line."""
    *whole, last = text.split("\n")
    return [*(f"{line}\n" for line in whole), *([last] if last else [])]


def find_trailers(text: str) -> TrailerBlock:
    """The trailers of a message and their position."""
    lines = split_lines(text)
    end = _message_end(lines)
    start = _block_start(lines[:end])
    return TrailerBlock(start, end, tuple(_parse(lines[start:end], start)))


def find_meta_block(text: str) -> TrailerBlock | None:
    """The block of the first PVP hooks at the end of a message, if there is one."""
    lines = split_lines(text)
    end = _message_end(lines)
    start = next((n + 1 for n in range(end - 1, 0, -1) if lines[n] == META_RULE), end)
    trailers = tuple(_parse(lines[start:end], start))
    first = trailers[0] if trailers else Trailer("", "")
    is_meta = first.key.lower() == META_KEY and first.line == start + 1
    return TrailerBlock(start - 1, end, trailers) if is_meta else None


def trailers_in(text: str) -> tuple[Trailer, ...]:
    return find_trailers(text).trailers


def _message_end(lines: Sequence[str]) -> int:
    """The end of the message proper: before comments, conflict lists and the scissors line."""
    cut = next((n for n, line in enumerate(lines) if line == SCISSORS_LINE), len(lines))
    tail = 0  # first line of the current run of such lines; 0: no run
    conflicts = False
    for number, line in enumerate(lines[:cut]):
        if line[0] in (COMMENT_CHAR, "\n"):
            tail = tail or number
        elif line == "Conflicts:\n":
            conflicts, tail = True, tail or number
        elif not (conflicts and line[0] == "\t"):
            conflicts, tail = conflicts and not tail, 0
    return tail or cut


def _block_start(lines: Sequence[str]) -> int:
    """The first line of the last paragraph if it is a trailer block; else the end."""
    count = _ParagraphCount()
    for number in range(len(lines) - 1, _title_end(lines) - 1, -1):
        line = lines[number]
        if line[0] == COMMENT_CHAR:
            count.settle()
        elif not line.strip(SPACES):
            if count.any_line:
                return number + 1 if count.is_block() else len(lines)
        else:
            count.add(line)
    return len(lines)


def _title_end(lines: Sequence[str]) -> int:
    """The blank line after the first paragraph."""
    blank = (
        n for n, line in enumerate(lines) if line[0] != COMMENT_CHAR and not line.strip(SPACES)
    )
    return next(blank, len(lines))


class _ParagraphCount:
    """Counts the kinds of lines in a paragraph, read from the last line to the first."""

    def __init__(self) -> None:
        self.any_line = self.generated = False
        self.trailers = self.others = self.indented = 0

    def add(self, line: str) -> None:
        self.any_line = True
        generated = line.startswith(GENERATED_PREFIXES)
        if generated or _key(line):
            # The indented lines below continue this trailer.
            self.generated = self.generated or generated
            self.trailers, self.indented = self.trailers + 1, 0
        elif line[0] in SPACES:
            self.indented += 1
        else:
            self.others += 1
            self.settle()

    def settle(self) -> None:
        """Count pending indented lines as other lines, because no trailer precedes them."""
        self.others, self.indented = self.others + self.indented, 0

    def is_block(self) -> bool:
        self.settle()
        if self.generated and self.trailers * 3 >= self.others:
            return True
        return self.trailers > 0 and self.others == 0


def _parse(lines: Sequence[str], offset: int) -> Iterator[Trailer]:
    """Each trailer with the indented lines that continue it."""
    at = 0
    while at < len(lines):
        key, after = _key(lines[at]), at + 1
        while key and after < len(lines) and lines[after][0] in SPACES:
            after += 1
        if key:
            value = lines[at].partition(":")[2]
            yield Trailer(key, _unfold(value, lines[at + 1 : after]), offset + at + 1)
        at = after


def _key(line: str) -> str:
    """The key if the line starts a trailer, else empty."""
    key, colon, _ = line.partition(":")
    key = key.rstrip(" \t")
    return "" if not colon or key.strip(KEY_CHARACTERS) else key


def _unfold(first: str, more: Sequence[str]) -> str:
    """Join the continuation lines with spaces, dropping empty ones."""
    rest = (line.lstrip(SPACES).removesuffix("\n") for line in more)
    return " ".join([first.removesuffix("\n"), *filter(None, rest)]).strip(SPACES)


# Writing


def trailer_line(trailer: Trailer) -> str:
    """`Key: value`, folded as git does if it is too long; refuses invalid keys and values."""
    if not re.fullmatch(_KEY, trailer.key):
        raise Refused(Reason.MALFORMED, f"{trailer.key!r} is not a valid trailer key")
    value = trailer.value.strip()
    if not value or has_control_characters(value):
        detail = f"The value of {trailer.key} is empty or contains control characters"
        raise Refused(Reason.MALFORMED, detail)
    line = f"{trailer.key}: {value}"
    return line if len(line) <= MAX_LINE_WIDTH else f"{trailer.key}:\n {value}"


def split_trailer(key: str, values: Iterable[str]) -> Iterator[Trailer]:
    """The values, separated by commas; the key repeats where a line would be too long."""
    joined = ""
    for value in values:
        longer = f"{joined},{value}" if joined else value
        if joined and len(f"{key}: {longer}") > MAX_LINE_WIDTH:
            yield Trailer(key, joined)
            longer = value
        joined = longer
    if joined:
        yield Trailer(key, joined)


def trailers_from_context(
    context: Mapping[str, Any],
    *,
    style: str = SHORT,
    named: Collection[str] = (),
    aliases: bool = False,
) -> tuple[Trailer, ...]:
    """The trailers for a decision context from the bridge or the environment.

    Unknown values are left out (GIT-HOOK-PCM-3). `named` are the parts of the context that are
    written in every style; `aliases` adds the vocabulary of PVP 18.
    """
    keys = TRAILER_STYLES.get(style, TRAILER_STYLES[SHORT])
    keys = keys | _ALIAS_KEYS if aliases else keys
    return tuple(
        trailer
        for key, part, values in _trailer_values(context, keys, named)
        if key in keys or part in named
        for trailer in split_trailer(key, values)
    )


def _trailer_values(
    context: Mapping[str, Any], keys: Collection[str], named: Collection[str]
) -> Iterator[tuple[str, str, list[str]]]:
    """Key, part of the context, and values of each trailer, in the order of a message."""
    yield SESSION_KEY, "session", _ids([context.get("session")])
    yield MESSAGES_KEY, "messages", _ids(_chain(context, keys, named))
    yield DECISION_KEY, "decision", _ids([context.get("decision")])
    kind, exact = _trailer_types(context, always=PVP_TYPE_KEY in keys)
    yield DECISION_TYPE_KEY, "decision_type", kind
    yield PVP_TYPE_KEY, "decision_type", exact
    yield FORK_KEY, "fork", _ids([context.get("fork")])
    yield CONFIDENCE_KEY, "confidence", _score(context.get("confidence"))
    yield TOOLS_KEY, "tools", _ids(_texts(context.get("tools")))
    yield DECISION_BY_KEY, "decision_by", participant_values(context.get("decision_by"))
    yield REVIEWED_BY_KEY, "reviewed_by", participant_values(context.get("reviewed_by"))
    yield APPROVED_BY_KEY, "approved_by", participant_values(context.get("approved_by"))
    approvers = [parse_participant(text) for text in _texts(context.get("approved_by"))]
    names = _ids([approver.identifier for approver in approvers if approver])
    yield APPROVERS_KEY, "approved_by", names
    yield ASSISTED_BY_KEY, "assisted_by", _assistants(context.get("assisted_by"))


def _chain(context: Mapping[str, Any], keys: Collection[str], named: Collection[str]) -> list[str]:
    """The whole chain if it is asked for, else its ends alone."""
    whole = _texts(context.get("messages"))
    is_whole = "messages" in named or TOOLS_KEY in keys or "ends" not in context
    return whole if is_whole else _texts(context.get("ends"))


def _score(score: object) -> list[str]:
    if not isinstance(score, int | float) or isinstance(score, bool) or not 0 <= score <= 1:
        return []
    return [trailer_values.format_score(float(score))]


def _assistants(value: object) -> list[str]:
    """`AGENT` or `AGENT:MODEL`, each part escaped."""
    parts = (text.partition(":") for text in _texts(value))
    return [
        f"{encode_name(agent)}:{encode_name(model)}" if model else encode_name(agent)
        for agent, _, model in parts
        if agent
    ]


def _trailer_types(context: Mapping[str, Any], *, always: bool) -> tuple[list[str], list[str]]:
    """The values of `PVP-Decision-Type` and of `PVP-Type`, which is needed for an exact word."""
    kind = context.get("decision_type")
    if kind not in trailer_values.DECISION_TYPES:
        return [], []
    word, exact = trailer_values.to_trailer_types(str(kind))
    alias = trailer_values.to_record_type(str(kind)) if always else None
    return [word], [exact or alias or ""] if exact or alias else []


def _ids(values: Iterable[object]) -> list[str]:
    texts = (value for value in values if isinstance(value, str) and value)
    return [encode_name(value) for value in dict.fromkeys(texts)]


def _texts(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def participant_values(value: object) -> list[str]:
    """Participants as trailers have them; invalid ones are left out."""
    parsed = dict.fromkeys(parse_participant(text) for text in _texts(value))
    return [str(participant) for participant in parsed if participant]
