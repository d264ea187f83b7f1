"""The request and result of `list_wakes`: what was woken, how, and why."""

from typing import Annotated, Literal

from msgspec import Meta

from accord.api.responses import ResponseObject
from accord.api.threads import DEFAULT_LISTED, MAX_LISTED, Id, MethodRequest

# `under_way` is for a wake that has no outcome yet.
WakeState = Literal["delivered", "deferred", "fallback_used", "skipped", "failed", "under_way"]


class ListWakes(MethodRequest, frozen=True, kw_only=True, omit_defaults=True):
    """List wakes, newest first: for an operator or orchestrator all, for an agent its own."""

    thread_id: Id | None = None
    target_agent_id: Id | None = None
    workspace_id: Id | None = None
    limit: Annotated[int, Meta(ge=1, le=MAX_LISTED)] = DEFAULT_LISTED


class WakeRow(ResponseObject, frozen=True, kw_only=True):
    """One wake: who asked for whom, what was done, what came of it, and why."""

    wake_id: str
    target_agent_id: str
    thread_id: str
    asked_by: str
    automatic: bool
    forced: bool
    reason: str
    action: Literal["trigger_runtime", "resume_session", "spawn_session", "none"]
    result: WakeState
    why: str
    detail: str
    runtime_command: str | None
    asked_at: str
    ended_at: str | None


class WakeList(ResponseObject, frozen=True, kw_only=True):
    """Wakes, newest first."""

    wakes: tuple[WakeRow, ...]
