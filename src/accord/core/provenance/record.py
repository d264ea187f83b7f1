"""The whole record of a decision, as it goes into a note: redacted, and no larger than allowed."""

from typing import Any

from . import decision as decisions
from . import thread as threads
from .decision import DecisionCommit
from .note import VERSION, Note
from .redaction import Redact, redact, scrub
from .sizing import MOST_BYTES, fitted
from .thread import ConversationThread


def note_of(
    decision: DecisionCommit,
    thread: ConversationThread | None = None,
    clean: Redact = redact,
    most: int = MOST_BYTES,
) -> Note:
    """What is stored; every text in it has passed the filter (UNI-29)."""
    told: Note = {
        "version": VERSION,
        "session": {"id": decision.pvp_session, "name": decision.session_name},
        "decisions": [decisions.to_json(decision)],
        "tools": {"executions": [_tool(each) for each in decision.tool_executions]},
        "alternatives": [_alternative(each) for each in decision.alternatives_considered],
        "metrics": _metrics(decision),
        "conversation": threads.to_json(thread) if thread else {},
    }
    wanted = {key: value for key, value in told.items() if value}
    cleaned: Note = scrub(wanted, clean)
    return fitted(cleaned, most)


def decisions_of(note: Note) -> tuple[DecisionCommit, ...]:
    """The decisions in a note; what another version wrote and we cannot read is left out."""
    found = note.get("decisions")
    return tuple(
        read for each in (found if isinstance(found, list) else ()) if (read := _read(each))
    )


def _read(value: Any) -> DecisionCommit | None:
    try:
        return decisions.from_json(value)
    except decisions.UnreadableError:
        return None


def thread_of(note: Note) -> ConversationThread:
    """The conversation in a note."""
    return threads.from_json(note.get("conversation"))


def _tool(tool: decisions.ToolExecution) -> dict[str, Any]:
    told = {
        "id": tool.id,
        "name": tool.name,
        "path": tool.path or None,
        "approved_by": list(tool.approved_by),
        "duration_ms": tool.duration_ms,
    }
    return {key: value for key, value in told.items() if value is not None}


def _alternative(each: decisions.Alternative) -> dict[str, Any]:
    return {
        "id": each.id,
        "branch": each.branch,
        "reason_abandoned": each.reason,
        "commits": list(each.commits),
    }


def _metrics(decision: DecisionCommit) -> dict[str, Any]:
    return {} if decision.metrics is None else decisions.to_json(decision.metrics)
