"""The conversation so far, folded from the session's messages, for a model that was not there.

The session replays its history to an agent that joins, so a restarted agent knows what was said,
and one in a fork knows what was said before the fork.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from accord.agents.providers.model import AssistantText, Entry, UserText
from accord.client import Envelope
from accord.core.room.approval.grants import ToolReject
from accord.core.room.approval.tool_proposals import ToolPropose, ToolResult
from accord.core.room.approval.votes import GateReject
from accord.core.room.conversation.prompts import PromptAmend, PromptSubmit
from accord.core.room.conversation.responses import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.forking.forks import ForkCreate
from accord.core.room.shared_context.context_items import ContextAdd

MAX_REMARKS = 2000
MAX_OPEN = 256
MAX_HISTORY_CHARS = 60_000
MAX_REMARK_CHARS = 8_000
MAX_SHOWN_CALL = 300
CHAT_TAG = "chat"
LEFT_OUT = "(Earlier parts of the conversation are left out.)"


class Remark(NamedTuple):
    """Something that was said; `by` is empty for the agent's own words."""

    id: str
    by: str
    text: str
    fork: str | None


class ForkOrigin(NamedTuple):
    """The fork that a fork branched off from, and the message where it did."""

    parent: str | None
    from_point: str


class Conversation:
    """What was said in a session, as far as one agent saw it, bounded in size."""

    def __init__(self, me: str) -> None:
        self._me = me
        self._remarks: deque[Remark] = deque(maxlen=MAX_REMARKS)
        self._streams: dict[str, ResponseStart] = {}
        self._texts: dict[str, list[str]] = {}
        self._calls: dict[str, str] = {}
        self._forks: dict[str, ForkOrigin] = {}
        self._places: dict[str, int] = {}
        self._received = 0

    def receive(self, envelope: Envelope) -> None:
        """Add a message of the session."""
        self._received += 1
        self._places[envelope.id] = self._received
        if len(self._places) > 4 * MAX_REMARKS:
            del self._places[next(iter(self._places))]
        if not self._receive_words(envelope):
            self._receive_call(envelope)

    def _receive_words(self, envelope: Envelope) -> bool:
        """Add prompts, chat and answers; returns whether it was one of them."""
        match envelope.body:
            case PromptSubmit(content=text, target_agent=agent):
                self._add(envelope, self._heading(envelope.sender, agent) + text)
            case PromptAmend(amendment=text):
                self._add(envelope, f"{envelope.sender} added: {text}")
            case ContextAdd(content=str(text), tags=tags) if CHAT_TAG in (tags or ()):
                self._add(envelope, f"{envelope.sender} said: {text}")
            case ResponseStart() as start:
                remember(self._streams, envelope.id, start)
            case ResponseChunk(text=text) if envelope.ref in self._streams:
                self._texts.setdefault(envelope.ref, []).append(text)
            case ResponseEnd() if envelope.ref in self._streams:
                self._end_response(envelope, self._streams.pop(envelope.ref))
            case _:
                return False
        return True

    def _receive_call(self, envelope: Envelope) -> None:
        """Add forks, and what became of the agent's own calls."""
        match envelope.body:
            case ForkCreate(from_point=point) if envelope.fork:
                parent = next((each.fork for each in self._remarks if each.id == point), None)
                remember(self._forks, envelope.fork, ForkOrigin(parent, point))
            case ToolPropose() as call if envelope.sender == self._me:
                remember(self._calls, envelope.id, shown_call(call.tool_name, call.arguments))
            case ToolResult(tool_proposal=id, success=success, error=error) if id in self._calls:
                how = "it succeeded" if success else f"it failed: {error or 'no reason'}"
                self._add_own(envelope, f"[ran {self._calls.pop(id)}; {how}]")
            case ToolReject(tool_proposal=id, reason=why) if id in self._calls:
                self._add_own(envelope, f"[{self._calls.pop(id)} was rejected: {why}]")
            case GateReject(reason=why) if envelope.ref in self._calls:
                self._add_own(envelope, f"[{self._calls.pop(envelope.ref)} was rejected: {why}]")
            case _:
                pass

    def _heading(self, sender: str, agent: str) -> str:
        return f"{sender}: " if agent == self._me else f"{sender} to {agent}: "

    def _add(self, envelope: Envelope, text: str) -> None:
        self._remarks.append(Remark(envelope.id, envelope.sender, cut(text), envelope.fork))

    def _add_own(self, envelope: Envelope, text: str) -> None:
        self._remarks.append(Remark(envelope.id, "", cut(text), envelope.fork))

    def _end_response(self, envelope: Envelope, start: ResponseStart) -> None:
        text = "".join(self._texts.pop(envelope.ref or "", ())).strip()
        if not text:
            return
        if start.agent == self._me:
            self._add_own(envelope, text)
        else:
            self._add(envelope, f"{start.agent} answered: {text}")

    def before(self, prompt: str, fork: str | None) -> tuple[Entry, ...]:
        """What was said before this prompt, in its fork and before that fork branched off."""
        remarks = list(self._lineage(prompt, fork))
        kept: list[Remark] = []
        size = 0
        for remark in reversed(remarks):
            size += len(remark.text)
            if size > MAX_HISTORY_CHARS:
                break
            kept.insert(0, remark)
        entries = list(as_entries(kept))
        is_cut = len(kept) < len(remarks)
        return (UserText(LEFT_OUT), *entries) if is_cut else tuple(entries)

    def summary(self, fork: str | None, max_chars: int, until: str = "") -> str:
        """The end of the conversation as text, for an agent that takes over."""
        lines = [
            f"{self._me}: {each.text}" if not each.by else each.text
            for each in self._lineage(until, fork)
        ]
        text = "\n\n".join(lines)
        return text if len(text) <= max_chars else f"{LEFT_OUT}\n\n…{text[-max_chars:]}"

    def _lineage(self, until: str, fork: str | None) -> Iterator[Remark]:
        """The remarks of a fork and of those it descends from, in order."""
        limits: dict[str | None, int] = {fork: self._places.get(until, self._received + 1)}
        at = fork
        while at is not None and (origin := self._forks.get(at)) is not None:
            if origin.parent in limits:
                break
            end = self._places.get(origin.from_point, 0) + 1
            limits[origin.parent] = min(end, limits[at])
            at = origin.parent
        for remark in self._remarks:
            limit = limits.get(remark.fork)
            if limit is not None and self._places.get(remark.id, 0) < limit:
                yield remark


def as_entries(remarks: list[Remark]) -> Iterator[Entry]:
    """The remarks as turns of a conversation; the agent's own words are the model's."""
    own: list[str] = []
    for remark in remarks:
        if not remark.by:
            own.append(remark.text)
            continue
        if own:
            yield AssistantText("\n".join(own))
            own = []
        yield UserText(remark.text)
    if own:
        yield AssistantText("\n".join(own))


def shown_call(tool: str, arguments: Mapping[str, Any]) -> str:
    """A call in one short line."""
    shown = arguments.get("command") or arguments.get("path")
    if not isinstance(shown, str):
        shown = msgspec.json.encode(arguments).decode()
    return f"{tool} {' '.join(shown.split())}"[:MAX_SHOWN_CALL]


def cut(text: str) -> str:
    """The text, with the middle of a long one left out."""
    half = MAX_REMARK_CHARS // 2
    return text if len(text) <= MAX_REMARK_CHARS else f"{text[:half]}\n…\n{text[-half:]}"


def remember(known: dict[str, Any], key: str, value: Any) -> None:
    """Add an entry, and forget the oldest ones."""
    known[key] = value
    while len(known) > MAX_OPEN:
        del known[next(iter(known))]
