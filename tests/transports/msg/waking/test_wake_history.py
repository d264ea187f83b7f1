"""`list_wakes`: a row for each wake with the cause of what came of it, for those who may see it."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from accord.api.wakes import WakeRow
from accord.core.attention.waking.outcomes import (
    SENTENCES,
    WakeAction,
    WakeCause,
    WakeOutcome,
    WakeResult,
)
from accord.core.attention.waking.state import OpenWake, WakeOrder, WakePhase
from accord.core.attention.waking.wake_events import (
    WakeDeferred,
    WakeEnded,
    WakeSkipped,
    WakeStarted,
)
from accord.core.kernel.records import Event, Record
from accord.transports.msg.waking.wake_history import wake_rows
from tests.helpers.servers.server_process import run_server
from tests.helpers.threads.method_client import MethodClient
from tests.helpers.threads.thread_rules import T0

ORDER = WakeOrder(thread="th_1", by="olga", reason="the release waits", autonomous=False)
RUNNING = OpenWake(
    wake="W1",
    order=ORDER,
    phase=WakePhase.RUNNING,
    cause=WakeCause.UNREAD,
    asked_at=T0,
    started_at=T0 + 1000,
    next_at=T0 + 2000,
    action=WakeAction.TRIGGER_RUNTIME,
)
WAITING = replace(
    RUNNING, phase=WakePhase.DEFERRED, cause=WakeCause.HUMAN_INPUT, action=WakeAction.NONE
)


def rows(*events: Event) -> list[WakeRow]:
    stream = "attention/default/coder"
    return [
        *wake_rows(
            "coder",
            (
                Record(
                    stream, number, 0, f"E{number}", T0 + number, "system", "", "", "system", event
                )
                for number, event in enumerate(events)
            ),
        )
    ]


@pytest.mark.parametrize("cause", WakeCause)
def test_each_cause_of_an_end_is_shown_with_its_sentence(cause: WakeCause) -> None:
    outcome = WakeOutcome(
        wake="W1",
        action=WakeAction.RESUME_SESSION,
        result=WakeResult.FAILED,
        cause=cause,
        triggered_at=T0,
        command="codex exec resume",
    )
    (row,) = rows(WakeStarted(open=RUNNING), WakeEnded(thread="th_1", outcome=outcome))
    assert (row.action, row.result, row.why) == ("resume_session", "failed", cause)
    assert (row.detail, row.runtime_command) == (SENTENCES[cause], "codex exec resume")
    assert (row.asked_by, row.reason, row.automatic) == ("olga", "the release waits", False)
    assert row.ended_at is not None


@pytest.mark.parametrize("cause", WakeCause)
def test_each_cause_of_a_skip_is_shown_with_its_sentence(cause: WakeCause) -> None:
    (row,) = rows(WakeSkipped(thread="th_1", wake="W1", by="olga", cause=cause, automatic=True))
    assert (row.action, row.result, row.why) == ("none", "skipped", cause)
    assert (row.detail, row.automatic) == (SENTENCES[cause], True)


def test_a_wake_that_is_not_over_is_under_way_or_deferred() -> None:
    (row,) = rows(WakeDeferred(open=WAITING))
    assert (row.result, row.why, row.ended_at) == ("deferred", "human_input_busy", None)
    (row,) = rows(WakeDeferred(open=WAITING), WakeStarted(open=RUNNING))
    assert (row.result, row.action, row.ended_at) == ("under_way", "trigger_runtime", None)


def test_what_waited_for_the_same_thread_became_part_of_the_wake_that_started() -> None:
    other = replace(WAITING, wake="W0")
    elsewhere = replace(WAITING, wake="W2", order=replace(ORDER, thread="th_2"))
    found = rows(WakeDeferred(open=other), WakeDeferred(open=elsewhere), WakeStarted(open=RUNNING))
    assert [(row.wake_id, row.result) for row in found] == [
        ("W0", "skipped"),
        ("W2", "deferred"),
        ("W1", "under_way"),
    ]
    assert found[0].detail == "It became part of the wake W1"


def test_operators_see_all_wakes_newest_first_and_an_agent_its_own(tmp_path: Path) -> None:
    with (
        run_server(tmp_path) as server,
        MethodClient.of(server, "olga", kind="human", roles=["admin"]) as olga,
        MethodClient.of(server, "coder") as coder,
        MethodClient.of(server, "other") as other,
    ):
        threads = []
        for client in (coder, other, coder):
            client.ok("heartbeat_session", runtime="codex_cli", status="active")
            threads.append(olga.thread("olga", client.id))
            olga.post(threads[-1], "look")
            target = {"thread_id": threads[-1], "target_agent_id": client.id}
            assert olga.ok("trigger_participant", **target)["why"] == "already_active"

        def seen(reader: MethodClient, **only: object) -> list[tuple[str, str]]:
            found = reader.ok("list_wakes", **only)["wakes"]
            return [(each["target_agent_id"], each["thread_id"]) for each in found]

        first, second, third = threads
        assert seen(olga) == [("coder", third), ("other", second), ("coder", first)]
        assert seen(olga, limit=1) == [("coder", third)]
        assert seen(olga, target_agent_id="other") == [("other", second)]
        assert seen(olga, thread_id=first) == [("coder", first)]
        assert seen(coder) == [("coder", third), ("coder", first)]
        assert seen(coder, target_agent_id="coder", thread_id=first) == [("coder", first)]
        refused = coder.refused("list_wakes", target_agent_id="other")
        assert refused == (403, "INSUFFICIENT_AUTHORITY")
        assert seen(other, thread_id=first) == []
        row = olga.ok("list_wakes", limit=1)["wakes"][0]
        assert (row["result"], row["why"], row["asked_by"]) == (
            "skipped",
            "already_active",
            "olga",
        )
