"""What was woken, how and why: rows from the records of an agent's attention."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from accord.api.wakes import ListWakes, WakeList, WakeRow
from accord.core.attention.state import Seat, stream_of
from accord.core.attention.waking.outcomes import SENTENCES, WakeAction, WakeCause, WakeResult
from accord.core.attention.waking.state import OpenWake
from accord.core.attention.waking.wake_events import (
    WakeDeferred,
    WakeEnded,
    WakeSkipped,
    WakeStarted,
)
from accord.core.kernel.actor import Actor
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.timestamps import to_iso
from accord.core.room.threads.thread_access import is_leading
from accord.engine.streams.verified_reads import read_rows, verified
from accord.transports.msg.service import ThreadService

Rows = dict[str, WakeRow]  # by wake
MARKERS = (b'"wake.started"', b'"wake.deferred"', b'"wake.skipped"', b'"wake.ended"')
UNDER_WAY = "under_way"


async def list_wakes(service: ThreadService, actor: Actor, request: ListWakes) -> WakeList:
    """What was woken, how, and why; an agent sees its own."""
    service.ensure_open()
    if not is_leading(actor) and request.target_agent_id not in {None, actor.principal}:
        detail = "Only an operator or orchestrator may see the wakes of other agents"
        raise Refused(Reason.NO_AUTHORITY, detail)
    wanted = request.target_agent_id if is_leading(actor) else actor.principal
    rows = [
        row
        for agent, _ in await service.wakes.agents(actor.workspace)
        if wanted in {None, agent}
        for row in await _rows_of(service, Seat(actor.workspace, agent))
        if request.thread_id in {None, row.thread_id}
    ]
    rows.sort(key=lambda row: row.asked_at, reverse=True)
    return WakeList(wakes=tuple(rows[: request.limit]))


async def _rows_of(service: ThreadService, seat: Seat) -> Iterable[WakeRow]:
    rows = read_rows(verified(service.engine.events), stream_of(*seat), 0)
    records = [
        service.engine.decode_row(row).record
        async for row in rows
        if any(marker in row.body for marker in MARKERS)
    ]
    return wake_rows(seat.agent, records)


def wake_rows(agent: str, records: Iterable[Record]) -> Iterable[WakeRow]:
    """One row for each wake, oldest first, as it is after these records."""
    rows: Rows = {}
    for record in records:
        if change := CHANGES.get(type(record.event)):
            change(rows, agent, record, record.event)
    return rows.values()


def _on_started(rows: Rows, agent: str, record: Record, event: WakeStarted) -> None:
    _end_those_that_waited(rows, event.open)
    rows[event.open.wake] = _open_row(agent, event.open, UNDER_WAY)


def _on_deferred(rows: Rows, agent: str, record: Record, event: WakeDeferred) -> None:
    rows[event.open.wake] = _open_row(agent, event.open, WakeResult.DEFERRED.value)


def _on_skipped(rows: Rows, agent: str, record: Record, event: WakeSkipped) -> None:
    at = to_iso(record.at)
    rows[event.wake] = WakeRow(
        wake_id=event.wake,
        target_agent_id=agent,
        thread_id=event.thread,
        asked_by=event.by,
        automatic=event.automatic,
        forced=False,
        reason="",
        action=WakeAction.NONE.value,
        result=WakeResult.SKIPPED.value,
        why=event.cause,
        detail=SENTENCES[event.cause],
        runtime_command=None,
        asked_at=at,
        ended_at=at,
    )


def _on_ended(rows: Rows, agent: str, record: Record, event: WakeEnded) -> None:
    outcome = event.outcome
    if (row := rows.get(outcome.wake)) is not None:
        rows[outcome.wake] = replace(
            row,
            action=outcome.action.value,
            result=outcome.result.value,
            why=outcome.cause,
            detail=outcome.detail or SENTENCES[outcome.cause],
            runtime_command=outcome.command or None,
            ended_at=to_iso(record.at),
        )


def _end_those_that_waited(rows: Rows, started: OpenWake) -> None:
    """What waited for the same thread is part of the one that starts."""
    for wake, row in rows.items():
        same = row.thread_id == started.order.thread and wake != started.wake
        if same and row.result == WakeResult.DEFERRED.value:
            rows[wake] = replace(
                row,
                result=WakeResult.SKIPPED.value,
                why=WakeCause.WAITING,
                detail=f"It became part of the wake {started.wake}",
                ended_at=to_iso(started.started_at or started.asked_at),
            )


def _open_row(agent: str, opened: OpenWake, result: Any) -> WakeRow:
    return WakeRow(
        wake_id=opened.wake,
        target_agent_id=agent,
        thread_id=opened.order.thread,
        asked_by=opened.order.by,
        automatic=opened.order.automatic,
        forced=opened.order.forced,
        reason=opened.order.reason,
        action=opened.action.value,
        result=result,
        why=opened.cause,
        detail=SENTENCES[opened.cause],
        runtime_command=None,
        asked_at=to_iso(opened.asked_at),
        ended_at=None,
    )


CHANGES: Mapping[type, Callable[[Rows, str, Record, Any], None]] = {
    WakeStarted: _on_started,
    WakeDeferred: _on_deferred,
    WakeSkipped: _on_skipped,
    WakeEnded: _on_ended,
}
