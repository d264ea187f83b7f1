"""Secret values reach their recipients and nothing that is stored."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role
from accord.core.kernel.timestamps import MS_PER_SECOND, to_iso
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.shared_context.secrets import SecretRevoke, SecretShare
from accord.engine.delivery import joining as arrivals_module
from accord.engine.streams import snapshots as snapshots_module
from accord.stores.sqlite import SqliteLog
from accord.transports.http.sessions import SessionReader
from tests.engine.conftest import Make
from tests.engine.test_two_processes import following, quiet
from tests.helpers.engine.harness import EngineHarness, FaultyLog, RecordingPeer, yield_to_loop
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    OPEN_POLICY,
    STREAM,
    T0,
    prompt_submit,
    session_end,
    session_join,
)
from tests.spec import proves

VALUE = "mem:hunter2-71c9"
NEWER = "mem:tr0ub4dor-e8a1"
NOTHING_HELD = "Vault(0 values)"


def shares(*scope: Actor, key: str = "k", value: str = VALUE, **more: Any) -> SecretShare:
    seats = tuple(who.principal for who in scope)
    return SecretShare(key=key, scope=seats, value_ref=value, **more)


def told(ear: RecordingPeer) -> list[str]:
    """The values somebody was sent."""
    shared = [each for each in ear.received if each["type"] == "secret.share"]
    return [each["payload"]["value_ref"] for each in shared if each["payload"]["value_ref"]]


def revocations(ear: RecordingPeer) -> list[str]:
    """The reasons somebody was told."""
    return [e["payload"]["reason"] for e in ear.received if e["type"] == "secret.revoke"]


def bytes_in(folder: Path) -> bytes:
    """Everything that is in any file."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def held(stage: EngineHarness) -> str:
    """How many values are in memory."""
    return repr(stage.engine.vault)


async def shared(stage: EngineHarness, **more: Any) -> None:
    """Alice has told Bob a secret; Carol and Claude are there, too."""
    await stage.open_room(BOB, CAROL, CLAUDE)
    await stage.send(ALICE, shares(BOB, **more), "s")


async def back(stage: EngineHarness, who: Actor, ref: str | None = None) -> RecordingPeer:
    """Somebody comes in on a new connection."""
    ear = stage.connect(who)
    await stage.send(who, session_join(who, Role.DRIVER), ref=ref)
    return ear


@proves("PVP-10-3", "PVP-20.3-2", "OPEN-42", "UNI-12")
async def test_value_is_delivered_to_scope_and_sharer_only(
    stage: EngineHarness,
) -> None:
    await shared(stage)

    assert told(stage.peers["alice"]) == told(stage.peers["bob"]) == [VALUE]
    for outsider in ("carol", "claude"):
        assert "secret.share" not in stage.peers[outsider].types


@proves("PVP-10-3", "OPEN-42")
async def test_unsubscribed_sharer_gets_the_value_back(
    stage: EngineHarness,
) -> None:
    await shared(stage)
    aside = stage.connect(ALICE)

    await stage.send(ALICE, shares(CAROL, value=NEWER), ear=aside)

    assert told(aside) == [NEWER]
    assert told(stage.peers["carol"]) == [NEWER]


@proves("PVP-10-2", "PVP-20.3-1", "OPEN-42")
async def test_value_is_in_no_row_snapshot_or_transcript(
    stage: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots_module, "SNAPSHOT_INTERVAL_RECORDS", 1)
    await shared(stage)
    await stage.send(ALICE, prompt_submit())
    kept = await stage.log.snapshot(STREAM)
    archive = SessionReader(stage.engine)

    assert kept is not None
    assert VALUE.encode() not in kept.blob
    assert all(VALUE.encode() not in row.body for row in await stage.log.read(STREAM))
    for who in (ALICE, BOB, CAROL):
        page = await archive.read_transcript(
            await archive.readable_room("r", who), who.principal, 0, 200
        )
        assert all(VALUE.encode() not in frame for frame in page.frames)
        names = [json.loads(frame)["id"] for frame in page.frames]
        assert ("s" in names) is (who is not CAROL)


@proves("PVP-10-2", "PVP-20.3-1", "OPEN-42")
async def test_value_is_in_no_file(make: Make, tmp_path: Path) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    stage = make(log)
    await shared(stage)
    await stage.send(ALICE, shares(BOB, CAROL, value=NEWER))
    await stage.send(ALICE, SecretRevoke("k", "Leaked"))
    await stage.wait_until_idle()

    kept = bytes_in(tmp_path)
    assert b"secret.shared" in kept
    assert VALUE.encode() not in kept
    assert NEWER.encode() not in kept
    await log.close()


@proves("PVP-10-2", "PVP-20.3-1", "OPEN-42")
async def test_value_is_in_no_log_line_or_refusal(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    log = FaultyLog()
    stage = make(log)
    await shared(stage)
    past = to_iso(T0 - MS_PER_SECOND)
    bad = [shares(BOB, expires_at=past), shares(Actor("nobody", BOB.kind)), shares(BOB, key="")]
    refusals = []
    for body in bad[:2]:
        with pytest.raises(Refused) as no:
            await stage.send(ALICE, body)
        refusals.append(no.value)
    with pytest.raises(Refused) as taken:
        await stage.send(BOB, shares(CAROL), "s2")
    log.failing.add("append")
    with pytest.raises(Refused) as lost:
        await stage.send(ALICE, shares(BOB, value=NEWER), "s3")
    log.failing.clear()

    for each in (*refusals, taken.value, lost.value):
        assert VALUE not in repr((each.detail, each.details, each))
    lines = "".join(f"{vars(record)}" for record in caplog.records)
    assert "append fails" in lines
    assert VALUE not in lines
    assert NEWER not in lines
    assert VALUE not in repr(bad)


@proves("OPEN-42", "UNI-12")
async def test_value_is_not_held_if_the_record_was_not_stored(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(BOB)
    log.failing.add("append")

    with pytest.raises(Refused):
        await stage.send(ALICE, shares(BOB))
    log.failing.clear()

    assert held(stage) == NOTHING_HELD
    assert told(stage.peers["bob"]) == []


@proves("OPEN-42", "OPEN-37", "UNI-12")
@pytest.mark.parametrize("ref", [None, "s"])
async def test_returning_recipient_gets_the_value_again_and_replay_is_blank(
    stage: EngineHarness, ref: str | None
) -> None:
    await shared(stage)
    await stage.send(ALICE, prompt_submit())
    stage.peers["bob"].disconnect()

    ear = await back(stage, BOB, ref)

    assert told(ear) == [VALUE]
    (whisper,) = (e for e in ear.received if VALUE in str(e))
    assert whisper["ref"] == "s"
    assert "seq" not in whisper
    assert ear.ids.count("s") == (0 if ref else 1)
    assert told(stage.peers["alice"]) == [VALUE]


@proves("OPEN-42", "UNI-12")
@pytest.mark.parametrize("who", [CAROL, CLAUDE])
async def test_returning_non_recipient_gets_no_value(stage: EngineHarness, who: Actor) -> None:
    await shared(stage)
    ear = await back(stage, who)

    assert VALUE not in str(ear.received)
    assert "s" not in ear.ids


@proves("OPEN-42", "OPEN-37")
async def test_paged_replay_ends_with_values_shared_meanwhile(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals_module, "PAGE_ROWS", 2)
    log = FaultyLog()
    stage = make(log, window=3)
    await shared(stage)
    first = stage.peers["bob"].ids[0]
    stage.peers["bob"].disconnect()
    await stage.wait_until_idle()
    log.hold("read")
    ear = stage.connect(BOB)
    stage.submit(BOB, session_join(BOB, Role.DRIVER), ref=first)
    await yield_to_loop()
    stage.submit(ALICE, shares(BOB, key="k2", value=NEWER), "s2")
    await yield_to_loop()
    log.release()
    await stage.wait_until_idle()

    assert sorted(told(ear)) == sorted([VALUE, NEWER])
    assert ear.ids[-1] == "s2"


@proves("OPEN-42", "OPEN-36")
async def test_retry_does_not_deliver_the_value_again(stage: EngineHarness) -> None:
    await shared(stage)
    before = {seat: len(ear.received) for seat, ear in stage.peers.items()}

    again = await stage.send(ALICE, shares(BOB), "s")

    assert [sealed.record.id for sealed in again] == ["s"]
    assert VALUE.encode() not in (again[0].frame or b"")
    assert {seat: len(ear.received) for seat, ear in stage.peers.items()} == before


# The end of it


@proves("OPEN-42", "PVP-10-4")
async def test_revoked_value_is_dropped_and_recipients_are_notified(stage: EngineHarness) -> None:
    await shared(stage)
    await stage.send(ALICE, SecretRevoke("k", "Leaked"))

    assert held(stage) == NOTHING_HELD
    assert revocations(stage.peers["alice"]) == revocations(stage.peers["bob"]) == ["Leaked"]
    assert revocations(stage.peers["carol"]) == []
    assert told(await back(stage, BOB)) == []


@proves("OPEN-42")
async def test_expired_value_is_dropped(stage: EngineHarness) -> None:
    await shared(stage, expires_at=to_iso(T0 + 60 * MS_PER_SECOND))
    await stage.advance_time(59)
    assert held(stage) != NOTHING_HELD
    await stage.advance_time(1)

    assert held(stage) == NOTHING_HELD
    assert revocations(stage.peers["bob"]) == ["It has expired"]


@proves("OPEN-42")
async def test_value_is_dropped_when_the_last_recipient_leaves(stage: EngineHarness) -> None:
    await shared(stage)
    await stage.send(BOB, SessionLeave())

    assert held(stage) == NOTHING_HELD
    assert revocations(stage.peers["alice"]) == ["bob left"]
    assert told(await back(stage, BOB)) == []


@proves("OPEN-42", "OPEN-32")
async def test_value_is_dropped_once_when_all_recipients_time_out(make: Make) -> None:
    stage = make(policy=OPEN_POLICY)
    await stage.open_room(BOB, CAROL, CLAUDE)
    expires = to_iso(T0 + 300 * MS_PER_SECOND)
    await stage.send(ALICE, shares(BOB, CAROL, expires_at=expires), "s")
    for seat in ("bob", "carol"):
        stage.peers[seat].disconnect()
    await stage.wait_until_idle()
    await stage.advance_time(300)

    assert len((await stage.state()).members) == 2
    assert held(stage) == NOTHING_HELD
    assert len(revocations(stage.peers["alice"])) == 1
    assert (await stage.state()).secrets == {}


@proves("OPEN-42", "OPEN-27")
async def test_value_is_dropped_when_the_session_ends(stage: EngineHarness) -> None:
    await shared(stage)
    await stage.send(ALICE, session_end())

    assert held(stage) == NOTHING_HELD
    assert revocations(stage.peers["bob"]) == ["The session has ended"]


@proves("OPEN-42", "OPEN-31")
async def test_restart_drops_values_and_records_it(make: Make) -> None:
    one = make()
    await shared(one)
    last = one.peers["bob"].ids[-1]
    two = make(one.log, clock=one.clock)

    await two.engine.start()
    ear = await back(two, BOB, last)

    assert held(two) == NOTHING_HELD
    assert told(ear) == []
    assert [why for why in revocations(ear) if "restarted" in why]
    assert (await two.state()).secrets == {}


# Two processes


@proves("OPEN-42", "UNI-12", "UNI-9")
async def test_value_held_here_is_not_sent_for_a_share_elsewhere(make: Make) -> None:
    one = make()
    await shared(one)
    two = one.restart()
    carol = await back(two, CAROL)
    aside = two.connect(ALICE)
    async with following(one, two):
        await quiet(one, two)
        await two.send(ALICE, shares(CAROL, value=NEWER), ear=aside)
        await quiet(one, two)

    assert held(one) == NOTHING_HELD
    assert told(one.peers["carol"]) == []
    assert told(carol) == [NEWER]
    assert VALUE not in str(carol.received)
    assert told(await back(one, CAROL)) == []
    await two.close()


@proves("OPEN-42", "UNI-9")
async def test_value_revoked_by_another_process_is_dropped(make: Make) -> None:
    one = make()
    await shared(one)
    two = one.restart()
    async with following(one, two):
        await two.send(ALICE, SecretRevoke("k", "Leaked"), ear=two.connect(ALICE))
        await quiet(one, two)

    assert held(one) == NOTHING_HELD
    assert revocations(one.peers["bob"]) == ["Leaked"]
    await two.close()


@proves("OPEN-42", "UNI-9")
async def test_conflicting_share_is_decided_again_and_held_once(make: Make) -> None:
    one = make()
    await one.open_room(BOB, CAROL, CLAUDE)
    two = one.restart()
    await two.send(CAROL, prompt_submit())

    await one.send(ALICE, shares(BOB), "s")

    assert held(one) == "Vault(1 values)"
    assert told(one.peers["bob"]) == [VALUE]
    late = one.submit(BOB, shares(CAROL, value=NEWER), "s2")
    await one.wait_until_idle()
    assert late.refusal
    assert late.refusal.reason is Reason.WRONG_STATE
    await two.close()
