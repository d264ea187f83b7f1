"""Writing a commit message: what goes in can forge nothing and never breaks the 72 (OPEN-65)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from accord.core.kernel.refusal import Refused, Why

from . import confidence as numbers
from . import kinds
from . import message as words
from .message import Alternative
from .participants import encoded, has_control, parse
from .trailers import Trailer

WIDEST = 72
CUT = "…"
MOST_MESSAGES = 64  # ids in a trailer; all of them are in the note

# Compiled when they are first needed: hooks load this at every commit.
_KEY = r"[A-Za-z0-9][A-Za-z0-9-]*"
_CONTROL = "[\0-\x1f\x7f-\x9f\u2028\u2029]+"
_TYPE = r"[A-Za-z0-9_]+"
_REF = r"[^\]\s]+"
# What git would take for a comment, or for the end of the message.
_SPECIAL = r"(?m)^(?=#|---(?:\s|$))"


class Draft(NamedTuple):
    """What a message is made from."""

    type: str
    description: str
    scope: str | None = None
    breaking: bool = False
    ref: str | None = None
    rationale: str = ""
    alternatives: tuple[Alternative, ...] = ()
    confidence: float | None = None
    discussion: str = ""
    trailers: tuple[Trailer, ...] = ()


def build(draft: Draft) -> str:
    """The whole message."""
    parts = (header(draft), body(draft), "\n".join(map(trailer_line, draft.trailers)))
    return "\n\n".join(part for part in parts if part) + "\n"


def header(draft: Draft) -> str:
    """One line of at most 72 characters: the reference goes first, then words."""
    if not re.fullmatch(_TYPE, draft.type):
        raise Refused(Why.MALFORMED, f"{draft.type!r} is no type of a commit")
    description = plain(draft.description)
    if not description:
        raise Refused(Why.MALFORMED, "A commit needs a description")
    head = f"{draft.type}{_scope(draft)}{'!' if draft.breaking else ''}: "
    if draft.ref is not None and not re.fullmatch(_REF, draft.ref):
        raise Refused(Why.MALFORMED, "A reference has no blanks and no brackets")
    tail = f" {words.REF}{draft.ref}]" if draft.ref is not None else ""
    whole = f"{head}{description}{tail}"
    return whole if len(whole) <= WIDEST else shortened(f"{head}{description}", WIDEST)


def _scope(draft: Draft) -> str:
    """Left out where it would leave no room for anything else."""
    scope = plain((draft.scope or "").replace("(", " ").replace(")", " "))
    return f"({scope})" if scope and len(scope) <= WIDEST // 3 else ""


def plain(text: str) -> str:
    """On one line, without what cannot be seen."""
    return " ".join(re.sub(_CONTROL, " ", text).split())


def shortened(text: str, most: int) -> str:
    """As many whole words as there is room for."""
    if len(text) <= most:
        return text
    short = text[: most - len(CUT)]
    at_word, blank, _ = short.rpartition(" ")
    return (at_word if blank and len(at_word) > most // 2 else short).rstrip() + CUT


def body(draft: Draft) -> str:
    """Rationale, alternatives, confidence, discussion (GIT-BODY-2), at most 72 wide."""
    options = (f"- {plain(each.what)}: {plain(each.why)}" for each in draft.alternatives)
    parts = (
        wrapped(draft.rationale),
        _listed("Alternatives considered:", options),
        "" if draft.confidence is None else numbers.line(draft.confidence),
        f"Discussion context:\n{wrapped(draft.discussion)}" if draft.discussion.strip() else "",
    )
    return "\n\n".join(part for part in parts if part)


def _listed(label: str, entries: Iterable[str]) -> str:
    from textwrap import fill  # hooks load this module, and do not write bodies

    lines = [fill(each, WIDEST, subsequent_indent="  ") for each in entries]
    return "\n".join([label, *lines]) if lines else ""


def wrapped(text: str) -> str:
    """Lines of at most 72; lists and what is indented keep their lines."""
    seen = (re.sub(_CONTROL, " ", line.expandtabs(4)) for line in text.strip().splitlines())
    lines = [part for line in seen for part in _wrap(line.rstrip())]
    return re.sub(_SPECIAL, " ", re.sub(r"\n{3,}", "\n\n", "\n".join(lines)))


def _wrap(line: str) -> list[str]:
    """A long line in several; no word is broken, because it may be an address."""
    if len(line) <= WIDEST or line[:1].isspace():
        return [line]
    from textwrap import wrap  # the same

    hang = "  " if line.startswith(("- ", "* ")) else ""
    return wrap(
        line,
        WIDEST - 1,  # one is left for what git would take for a comment
        subsequent_indent=hang,
        break_long_words=False,
        break_on_hyphens=False,
    )


def trailer_line(trailer: Trailer) -> str:
    """`Key: value` on one line, or refused."""
    if not re.fullmatch(_KEY, trailer.key):
        raise Refused(Why.MALFORMED, f"{trailer.key!r} is no key of a trailer")
    value = trailer.value.strip()
    if not value or has_control(value):
        detail = f"The value of {trailer.key} is empty or has control characters"
        raise Refused(Why.MALFORMED, detail)
    return f"{trailer.key}: {value}"


def trailers_of(context: Mapping[str, Any], *, aliases: bool = False) -> tuple[Trailer, ...]:
    """The trailers for what the bridge or the environment told (`decision.context`).

    What is unknown is not written (GIT-HOOK-PCM-3); `aliases` adds the other seed's words.
    """
    found = [Trailer(key, value) for key, value in _told(context) if value]
    if aliases:
        found += [Trailer(key, value) for key, value in _aliases(context, found) if value]
    return tuple(found)


def _told(context: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield words.SESSION, _id(context.get("session"))
    yield words.DECISION, _id(context.get("decision"))
    yield words.MESSAGES, _ids(_ends(_texts(context.get("messages"))))
    yield words.FORK, _id(context.get("fork"))
    score = context.get("confidence")
    known = isinstance(score, int | float) and not isinstance(score, bool) and 0 <= score <= 1
    yield words.CONFIDENCE, numbers.write(float(score)) if known and score is not None else ""
    kind, exact = _kind(context)
    yield words.DECISION_TYPE, kind
    yield words.TYPE, exact
    yield words.TOOLS, _ids(_texts(context.get("tools")))
    yield words.DECISION_BY, people(context.get("decision_by"))
    yield words.REVIEWED_BY, people(context.get("reviewed_by"))
    yield words.APPROVED_BY, people(context.get("approved_by"))


def _aliases(context: Mapping[str, Any], found: list[Trailer]) -> Iterator[tuple[str, str]]:
    kind = context.get("decision_type")
    if kind in kinds.DECISION_TYPES and not any(each.key == words.TYPE for each in found):
        yield words.TYPE, kinds.recorded(str(kind))
    approvers = [parse(each) for each in _texts(context.get("approved_by"))]
    yield words.APPROVERS, _ids([each.identifier for each in approvers if each])


def _kind(context: Mapping[str, Any]) -> tuple[str, str]:
    kind = context.get("decision_type")
    if kind not in kinds.DECISION_TYPES:
        return "", ""
    word, exact = kinds.written(str(kind))
    return word, exact or ""


def _id(value: object) -> str:
    return encoded(value) if isinstance(value, str) and value else ""


def _ids(values: Iterable[str]) -> str:
    return ",".join(encoded(value) for value in dict.fromkeys(values) if value)


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _ends(ids: list[str]) -> list[str]:
    """From the prompt to the last tool; of a long chain the middle is in the note alone."""
    half = MOST_MESSAGES // 2
    return ids if len(ids) <= MOST_MESSAGES else [*ids[:half], *ids[-half:]]


def people(value: object) -> str:
    """Participants as a comma list; what is none is left out."""
    found = dict.fromkeys(parse(each) for each in _texts(value))
    return ",".join(str(each) for each in found if each)
