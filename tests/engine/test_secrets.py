"""Secrets: a value reaches those it is for, and nothing that is kept."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Role
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import SECOND, iso
from accord.core.room.members import SessionLeave
from accord.core.room.secrets import SecretRevoke, SecretShare
from accord.engine import arrivals as arrivals_module
from accord.engine import snapshots as snapshots_module
from accord.stores.sqlite import SqliteLog
from accord.transports.archive import Archive
from tests.engine.conftest import Make
from tests.engine.test_two_engines import following, quiet
from tests.helpers.engine import Ear, Stage, Tricky, turns
from tests.helpers.room import ALICE, BOB, CAROL, CLAUDE, STREAM, T0, ends, joins, prompts
from tests.spec import proves

VALUE = "mem:hunter2-71c9"
NEWER = "mem:tr0ub4dor-e8a1"
NOTHING_HELD = "Vault(0 values)"


def shares(*scope: Actor, key: str = "k", value: str = VALUE, **more: Any) -> SecretShare:
    seats = tuple(who.seat for who in scope)
    return SecretShare(key=key, scope=seats, value_ref=value, **more)


def told(ear: Ear) -> list[str]:
    """The values somebody was sent."""
    shared = [each for each in ear.heard if each["type"] == "secret.share"]
    return [each["payload"]["value_ref"] for each in shared if each["payload"]["value_ref"]]


def revocations(ear: Ear) -> list[str]:
    """The reasons somebody was told."""
    return [e["payload"]["reason"] for e in ear.heard if e["type"] == "secret.revoke"]


def bytes_in(folder: Path) -> bytes:
    """Everything that is in any file."""
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def held(stage: Stage) -> str:
    """How many values are in memory."""
    return repr(stage.engine.vault)


async def shared(stage: Stage, **more: Any) -> None:
    """Alice has told Bob a secret; Carol and Claude are there, too."""
    await stage.open(BOB, CAROL, CLAUDE)
    await stage.say(ALICE, shares(BOB, **more), "s")


async def back(stage: Stage, who: Actor, ref: str | None = None) -> Ear:
    """Somebody comes in on a new connection."""
    ear = stage.connect(who)
    await stage.say(who, joins(who, Role.DRIVER), ref=ref)
    return ear


@proves("PVP-10-3", "PVP-20.3-2", "OPEN-42", "UNI-12")
async def test_the_value_reaches_scope_and_sharer_live_and_nobody_else(stage: Stage) -> None:
    await shared(stage)

    assert told(stage.ears["alice"]) == told(stage.ears["bob"]) == [VALUE]
    for outsider in ("carol", "claude"):
        assert "secret.share" not in stage.ears[outsider].types


@proves("PVP-10-3", "OPEN-42")
async def test_a_sharer_who_is_not_in_the_room_hears_it_as_it_was_said(stage: Stage) -> None:
    await shared(stage)
    aside = stage.connect(ALICE)

    await stage.say(ALICE, shares(CAROL, value=NEWER), ear=aside)

    assert told(aside) == [NEWER]
    assert told(stage.ears["carol"]) == [NEWER]


@proves("PVP-10-2", "PVP-20.3-1", "OPEN-42")
async def test_no_row_no_snapshot_and_no_transcript_holds_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots_module, "EVERY", 1)
    await shared(stage)
    await stage.say(ALICE, prompts())
    kept = await stage.log.snapshot(STREAM)
    archive = Archive(stage.engine)

    assert kept is not None
    assert VALUE.encode() not in kept.blob
    assert all(VALUE.encode() not in row.body for row in await stage.log.read(STREAM))
    for who in (ALICE, BOB, CAROL):
        page = await archive.transcript(await archive.room("r", who), who.seat, 0, 200)
        assert all(VALUE.encode() not in frame for frame in page.frames)
        names = [json.loads(frame)["id"] for frame in page.frames]
        assert ("s" in names) is (who is not CAROL)


@proves("PVP-10-2", "PVP-20.3-1", "OPEN-42")
async def test_no_byte_on_disk_holds_it(make: Make, tmp_path: Path) -> None:
    log = await SqliteLog.open(str(tmp_path / "log.db"))
    stage = make(log)
    await shared(stage)
    await stage.say(ALICE, shares(BOB, CAROL, value=NEWER))
    await stage.say(ALICE, SecretRevoke("k", "Leaked"))
    await stage.settle()

    kept = bytes_in(tmp_path)
    assert b"secret.shared" in kept
    assert VALUE.encode() not in kept
    assert NEWER.encode() not in kept
    await log.close()


@proves("PVP-10-2", "PVP-20.3-1", "OPEN-42")
async def test_no_log_line_and_no_refusal_holds_it(
    make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    log = Tricky()
    stage = make(log)
    await shared(stage)
    past = iso(T0 - SECOND)
    bad = [shares(BOB, expires_at=past), shares(Actor("nobody", BOB.kind)), shares(BOB, key="")]
    refusals = []
    for body in bad[:2]:
        with pytest.raises(Refused) as no:
            await stage.say(ALICE, body)
        refusals.append(no.value)
    with pytest.raises(Refused) as taken:
        await stage.say(BOB, shares(CAROL), "s2")
    log.failing.add("append")
    with pytest.raises(Refused) as lost:
        await stage.say(ALICE, shares(BOB, value=NEWER), "s3")
    log.failing.clear()

    for each in (*refusals, taken.value, lost.value):
        assert VALUE not in repr((each.detail, each.details, each))
    lines = "".join(f"{vars(record)}" for record in caplog.records)
    assert "append fails" in lines
    assert VALUE not in lines
    assert NEWER not in lines
    assert VALUE not in repr(bad)


@proves("OPEN-42", "UNI-12")
async def test_what_could_not_be_stored_is_not_held_either(make: Make) -> None:
    log = Tricky()
    stage = make(log)
    await stage.open(BOB)
    log.failing.add("append")

    with pytest.raises(Refused):
        await stage.say(ALICE, shares(BOB))
    log.failing.clear()

    assert held(stage) == NOTHING_HELD
    assert told(stage.ears["bob"]) == []


@proves("OPEN-42", "OPEN-37", "UNI-12")
@pytest.mark.parametrize("ref", [None, "s"])
async def test_who_comes_back_is_whispered_it_again_and_the_replay_is_blank(
    stage: Stage, ref: str | None
) -> None:
    await shared(stage)
    await stage.say(ALICE, prompts())
    stage.ears["bob"].hang_up()

    ear = await back(stage, BOB, ref)

    assert told(ear) == [VALUE]
    (whisper,) = (e for e in ear.heard if VALUE in str(e))
    assert whisper["ref"] == "s"
    assert "seq" not in whisper
    assert ear.ids.count("s") == (0 if ref else 1)
    assert told(stage.ears["alice"]) == [VALUE]


@proves("OPEN-42", "UNI-12")
@pytest.mark.parametrize("who", [CAROL, CLAUDE])
async def test_nobody_else_who_comes_back_hears_of_it(stage: Stage, who: Actor) -> None:
    await shared(stage)
    ear = await back(stage, who)

    assert VALUE not in str(ear.heard)
    assert "s" not in ear.ids


@proves("OPEN-42", "OPEN-37")
async def test_who_is_told_page_by_page_is_whispered_what_is_shared_meanwhile(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals_module, "PAGE", 2)
    log = Tricky()
    stage = make(log, window=3)
    await shared(stage)
    first = stage.ears["bob"].ids[0]
    stage.ears["bob"].hang_up()
    await stage.settle()
    log.hold("read")
    ear = stage.connect(BOB)
    stage.ask(BOB, joins(BOB, Role.DRIVER), ref=first)
    await turns()
    stage.ask(ALICE, shares(BOB, key="k2", value=NEWER), "s2")
    await turns()
    log.release()
    await stage.settle()

    assert sorted(told(ear)) == sorted([VALUE, NEWER])
    assert ear.ids[-1] == "s2"


@proves("OPEN-42", "OPEN-36")
async def test_a_retry_whispers_nothing_a_second_time(stage: Stage) -> None:
    await shared(stage)
    before = {seat: len(ear.heard) for seat, ear in stage.ears.items()}

    again = await stage.say(ALICE, shares(BOB), "s")

    assert [sealed.record.id for sealed in again] == ["s"]
    assert VALUE.encode() not in (again[0].frame or b"")
    assert {seat: len(ear.heard) for seat, ear in stage.ears.items()} == before


# The end of it


@proves("OPEN-42", "PVP-10-4")
async def test_revoked_it_is_forgotten_and_those_who_had_it_are_told(stage: Stage) -> None:
    await shared(stage)
    await stage.say(ALICE, SecretRevoke("k", "Leaked"))

    assert held(stage) == NOTHING_HELD
    assert revocations(stage.ears["alice"]) == revocations(stage.ears["bob"]) == ["Leaked"]
    assert revocations(stage.ears["carol"]) == []
    assert told(await back(stage, BOB)) == []


@proves("OPEN-42")
async def test_expired_it_is_forgotten(stage: Stage) -> None:
    await shared(stage, expires_at=iso(T0 + 60 * SECOND))
    await stage.wait(59)
    assert held(stage) != NOTHING_HELD
    await stage.wait(1)

    assert held(stage) == NOTHING_HELD
    assert revocations(stage.ears["bob"]) == ["It has expired"]


@proves("OPEN-42")
async def test_when_the_last_holder_leaves_it_is_forgotten(stage: Stage) -> None:
    await shared(stage)
    await stage.say(BOB, SessionLeave())

    assert held(stage) == NOTHING_HELD
    assert revocations(stage.ears["alice"]) == ["bob left"]
    assert told(await back(stage, BOB)) == []


@proves("OPEN-42", "OPEN-32")
async def test_when_all_holders_overstay_at_once_it_is_forgotten_and_said_once(
    stage: Stage,
) -> None:
    await stage.open(BOB, CAROL, CLAUDE)
    expires = iso(T0 + 300 * SECOND)
    await stage.say(ALICE, shares(BOB, CAROL, expires_at=expires), "s")
    for seat in ("bob", "carol"):
        stage.ears[seat].hang_up()
    await stage.settle()
    await stage.wait(300)

    assert len((await stage.state()).members) == 2
    assert held(stage) == NOTHING_HELD
    assert len(revocations(stage.ears["alice"])) == 1
    assert (await stage.state()).secrets == {}


@proves("OPEN-42", "OPEN-27")
async def test_it_ends_with_the_session(stage: Stage) -> None:
    await shared(stage)
    await stage.say(ALICE, ends())

    assert held(stage) == NOTHING_HELD
    assert revocations(stage.ears["bob"]) == ["The session has ended"]


@proves("OPEN-42", "OPEN-31")
async def test_a_restart_forgets_it_and_says_so(make: Make) -> None:
    one = make()
    await shared(one)
    last = one.ears["bob"].ids[-1]
    two = make(one.log, clock=one.clock)

    await two.engine.start()
    ear = await back(two, BOB, last)

    assert held(two) == NOTHING_HELD
    assert told(ear) == []
    assert [why for why in revocations(ear) if "restarted" in why]
    assert (await two.state()).secrets == {}


# Two processes


@proves("OPEN-42", "UNI-12", "UNI-9")
async def test_a_value_of_this_process_is_never_told_for_one_of_another(make: Make) -> None:
    one = make()
    await shared(one)
    two = one.again()
    carol = await back(two, CAROL)
    aside = two.connect(ALICE)
    async with following(one, two):
        await quiet(one, two)
        await two.say(ALICE, shares(CAROL, value=NEWER), ear=aside)
        await quiet(one, two)

    assert held(one) == NOTHING_HELD
    assert told(one.ears["carol"]) == []
    assert told(carol) == [NEWER]
    assert VALUE not in str(carol.heard)
    assert told(await back(one, CAROL)) == []
    await two.close()


@proves("OPEN-42", "UNI-9")
async def test_what_another_process_revokes_is_forgotten_here(make: Make) -> None:
    one = make()
    await shared(one)
    two = one.again()
    async with following(one, two):
        await two.say(ALICE, SecretRevoke("k", "Leaked"), ear=two.connect(ALICE))
        await quiet(one, two)

    assert held(one) == NOTHING_HELD
    assert revocations(one.ears["bob"]) == ["Leaked"]
    await two.close()


@proves("OPEN-42", "UNI-9")
async def test_a_share_that_loses_a_race_is_decided_again_and_held_once(make: Make) -> None:
    one = make()
    await one.open(BOB, CAROL, CLAUDE)
    two = one.again()
    await two.say(CAROL, prompts())

    await one.say(ALICE, shares(BOB), "s")

    assert held(one) == "Vault(1 values)"
    assert told(one.ears["bob"]) == [VALUE]
    late = one.ask(BOB, shares(CAROL, value=NEWER), "s2")
    await one.settle()
    assert late.refused
    assert late.refused.why is Why.WRONG_STATE
    await two.close()
