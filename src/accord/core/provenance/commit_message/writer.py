"""Writes commit messages: values cannot forge other lines, and lines fit in 72 (OPEN-65)."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from accord.core.kernel.refusal import Reason, Refused
from accord.core.provenance.commit_message import parser as words
from accord.core.provenance.commit_message import trailer_values
from accord.core.provenance.commit_message.parser import BodyAlternative
from accord.core.provenance.commit_message.trailers import MAX_LINE_WIDTH, Trailer, trailer_line

ELLIPSIS = "…"
# Compiled on first use: hooks import this at every commit.
_CONTROL = "[\0-\x1f\x7f-\x9f\u2028\u2029]+"
_TYPE = r"[A-Za-z0-9_]+"
_REF = r"[^\]\s]+"
# Lines that git would treat as a comment or as the end of the message.
_SPECIAL = r"(?m)^(?=#|---(?:\s|$))"


class MessageDraft(NamedTuple):
    """The parts of a message to write."""

    type: str
    description: str
    scope: str | None = None
    breaking: bool = False
    ref: str | None = None
    rationale: str = ""
    alternatives: tuple[BodyAlternative, ...] = ()
    confidence: float | None = None
    discussion: str = ""
    trailers: tuple[Trailer, ...] = ()


def write_message(draft: MessageDraft) -> str:
    parts = (write_header(draft), write_body(draft), "\n".join(map(trailer_line, draft.trailers)))
    return "\n\n".join(part for part in parts if part) + "\n"


def write_header(draft: MessageDraft) -> str:
    """At most 72 characters: if needed the reference is dropped, then the text is cut."""
    if not re.fullmatch(_TYPE, draft.type):
        raise Refused(Reason.MALFORMED, f"{draft.type!r} is not a commit type")
    description = one_line(draft.description)
    if not description:
        raise Refused(Reason.MALFORMED, "A commit needs a description")
    head = f"{draft.type}{_scope(draft)}{'!' if draft.breaking else ''}: "
    if draft.ref is not None and not re.fullmatch(_REF, draft.ref):
        raise Refused(Reason.MALFORMED, "A reference must not contain spaces or brackets")
    tail = f" {words.REF_OPENING}{draft.ref}]" if draft.ref is not None else ""
    whole = f"{head}{description}{tail}"
    return (
        whole if len(whole) <= MAX_LINE_WIDTH else shorten(f"{head}{description}", MAX_LINE_WIDTH)
    )


def _scope(draft: MessageDraft) -> str:
    """The scope in parentheses; empty if it would leave too little room."""
    scope = one_line((draft.scope or "").replace("(", " ").replace(")", " "))
    return f"({scope})" if scope and len(scope) <= MAX_LINE_WIDTH // 3 else ""


def one_line(text: str) -> str:
    """The text on one line, without control characters."""
    return " ".join(re.sub(_CONTROL, " ", text).split())


def shorten(text: str, max_length: int) -> str:
    """The text cut to `max_length`, at the end of a word if possible."""
    if len(text) <= max_length:
        return text
    short = text[: max_length - len(ELLIPSIS)]
    at_word, blank, _ = short.rpartition(" ")
    return (at_word if blank and len(at_word) > max_length // 2 else short).rstrip() + ELLIPSIS


def write_body(draft: MessageDraft) -> str:
    """Rationale, alternatives, confidence, discussion (GIT-BODY-2), wrapped at 72."""
    options = (
        f"- {one_line(option.what)}: {one_line(option.why)}" for option in draft.alternatives
    )
    parts = (
        wrap_text(draft.rationale),
        _labelled_list("Alternatives considered:", options),
        "" if draft.confidence is None else trailer_values.confidence_line(draft.confidence),
        f"Discussion context:\n{wrap_text(draft.discussion)}" if draft.discussion.strip() else "",
    )
    return "\n\n".join(part for part in parts if part)


def _labelled_list(label: str, entries: Iterable[str]) -> str:
    from textwrap import fill  # slow to import, and hooks do not write bodies

    lines = [fill(entry, MAX_LINE_WIDTH, subsequent_indent="  ") for entry in entries]
    return "\n".join([label, *lines]) if lines else ""


def wrap_text(text: str) -> str:
    """Wraps at 72; list items and indented lines are not joined."""
    cleaned = (re.sub(_CONTROL, " ", line.expandtabs(4)) for line in text.strip().splitlines())
    lines = [part for line in cleaned for part in _wrap(line.rstrip())]
    return re.sub(_SPECIAL, " ", re.sub(r"\n{3,}", "\n\n", "\n".join(lines)))


def _wrap(line: str) -> list[str]:
    """Wraps one line; words are not broken, because they may be URLs."""
    if len(line) <= MAX_LINE_WIDTH or line[:1].isspace():
        return [line]
    from textwrap import wrap  # slow to import, see above

    hang = "  " if line.startswith(("- ", "* ")) else ""
    return wrap(
        line,
        MAX_LINE_WIDTH - 1,  # room for the space before what git would treat as a comment
        subsequent_indent=hang,
        break_long_words=False,
        break_on_hyphens=False,
    )
