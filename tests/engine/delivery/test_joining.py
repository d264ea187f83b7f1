"""Joining, and what may happen during a join."""

import pytest

from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role
from accord.core.room.membership.leaving import SessionLeave
from accord.core.room.state import Presence
from accord.engine.streams import stream_cache
from tests.engine.conftest import Make
from tests.helpers.engine.absent_reader import rejoin_after_absence, send_prompts, stalled_replay
from tests.helpers.engine.harness import FaultyLog, yield_to_loop
from tests.helpers.room.scenario import (
    ALICE,
    BOB,
    CAROL,
    CLAUDE,
    participant_announce,
    prompt_submit,
    session_create,
    session_end,
    session_join,
)
from tests.spec import proves

pytestmark = pytest.mark.usefixtures("small_pages")


# Coming in


@proves("OPEN-30", "PVP-7.1-2")
async def test_new_member_gets_window_own_join_and_live_messages(make: Make) -> None:
    stage = make()
    await stage.open_room(CLAUDE)
    await send_prompts(stage, 3)

    bob = stage.connect(BOB)
    await stage.send(BOB, session_join(BOB, Role.DRIVER), "join")
    await send_prompts(stage, 2, "later")

    assert bob.ids == await stage.ids()
    assert bob.types[-4:] == [
        "session.join",
        "participant.announce",
        "prompt.submit",
        "prompt.submit",
    ]
    assert len(bob.received) == len(bob.ids), (
        "whoever is here is in the window, so nobody is called"
    )


@proves("OPEN-30", "OPEN-37")
async def test_roster_names_members_older_than_the_window(make: Make) -> None:
    stage = make(window=4)
    await stage.open_room(CLAUDE, CAROL)
    await send_prompts(stage, 10)

    bob = stage.connect(BOB)
    await stage.send(BOB, session_join(BOB, Role.DRIVER), "join")

    called = [each for each in bob.received if "seq" not in each]
    assert [each["payload"]["id"] for each in called] == ["alice", "claude", "carol"]
    assert bob.types == ["participant.announce"] * 3 + ["prompt.submit"] * 2 + [
        "session.join",
        "participant.announce",
    ]
    assert bob.ids == (await stage.ids())[-4:]


@proves("PVP-6.1-3", "OPEN-6", "OPEN-30")
async def test_join_pipelined_after_create_succeeds(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    log.hold("append")
    alice = stage.connect(ALICE)

    stage.submit(ALICE, session_create(), "create")
    stage.submit(ALICE, session_join(ALICE, Role.ADMIN), "join")
    stage.submit(ALICE, participant_announce(ALICE), "announce")
    await yield_to_loop()
    log.release()
    await stage.wait_until_idle()
    await stage.send(CLAUDE, session_join(CLAUDE, Role.DRIVER))

    assert alice.ids == await stage.ids()
    assert alice.seqs == list(range(1, 8))


async def test_create_and_join_queue_while_the_stream_is_read(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    log.hold("snapshot", "read")
    alice, bob = stage.connect(ALICE), stage.connect(BOB)

    replies = [
        stage.submit(ALICE, session_create(), "create"),
        stage.submit(ALICE, session_join(ALICE, Role.ADMIN), "join"),
        stage.submit(BOB, session_join(BOB, Role.DRIVER), "bob"),
        stage.submit(BOB, prompt_submit(), "nobody to ask"),
    ]
    await yield_to_loop()
    log.release()
    await stage.wait_until_idle()

    assert [bool(reply.refusal) for reply in replies] == [False, False, False, True]
    assert alice.ids == bob.ids == await stage.ids()


async def test_pipelined_join_and_leave_delivers_both(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE)
    bob = stage.connect(BOB)

    log.hold("append")
    stage.submit(ALICE, prompt_submit(), "before")
    stage.submit(BOB, session_join(BOB, Role.DRIVER), "join")
    stage.submit(BOB, SessionLeave(), "leave")
    stage.submit(ALICE, prompt_submit(), "after")
    log.release()
    await stage.wait_until_idle()

    assert bob.ids[-1] == "leave"
    assert bob.seqs == sorted(set(bob.seqs))
    assert "after" not in bob.ids
    assert not stage.engine.delivery.is_subscribed("room/r", bob)
    assert stage.peers["alice"].ids == await stage.ids()


async def test_pipelined_leave_and_join_rejoins(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(BOB, CLAUDE)
    bob = stage.peers["bob"]
    last = bob.ids[-1]

    log.hold("append")
    stage.submit(BOB, SessionLeave(), "leave")
    stage.submit(ALICE, prompt_submit(), "unheard")
    stage.submit(BOB, session_join(BOB, Role.DRIVER), "join", "leave")
    log.release()
    await stage.wait_until_idle()
    await stage.send(ALICE, prompt_submit(), "live")

    assert last in bob.ids
    assert bob.ids == await stage.ids()


@proves("OPEN-49", "PVP-6.4-2")
async def test_no_connection_of_a_leaver_gets_later_messages(make: Make) -> None:
    stage = make()
    await stage.open_room(BOB, CLAUDE)
    first = stage.peers["bob"]
    second = stage.connect(BOB)
    await stage.send(BOB, session_join(BOB, Role.DRIVER))

    await stage.send(BOB, SessionLeave(), "leave")
    await stage.send(ALICE, prompt_submit(), "secret")
    with pytest.raises(Refused) as no:
        await stage.send(BOB, prompt_submit())

    assert no.value.reason is Reason.NO_MEMBER
    assert first.ids[-1] == second.ids[-1] == "leave"
    assert stage.peers["claude"].ids[-1] == "secret"


# What may happen on the way in


@proves("OPEN-32")
async def test_connection_lost_before_the_join_is_answered_is_absent(make: Make) -> None:
    log = FaultyLog()
    stage = make(log)
    await stage.open_room(CLAUDE)
    bob = stage.connect(BOB)

    log.hold("append")
    stage.submit(BOB, session_join(BOB, Role.DRIVER), "join")
    bob.disconnect()
    log.release()
    await stage.wait_until_idle()

    assert (await stage.state()).members["bob"].presence is Presence.DISCONNECTED
    assert bob.received == []
    assert bob not in stage.engine.delivery.streams_of


@proves("OPEN-32")
async def test_connection_lost_during_a_long_replay_is_absent(make: Make) -> None:
    log = FaultyLog()
    stage = make(log, window=5)
    await stage.open_room(CLAUDE)
    _, bob = await stalled_replay(stage, 30)
    read = log.calls["read"]

    bob.disconnect()
    await stage.wait_until_idle()

    assert (await stage.state()).members["bob"].presence is Presence.DISCONNECTED
    assert stage.engine.delivery.catching_up == stage.engine.delivery.streams_of.get(bob, {}) == {}
    assert log.calls["read"] - read < 5, "nobody reads on for who is gone"


@proves("OPEN-49")
async def test_leave_during_a_long_replay_ends_it_at_the_leave(make: Make) -> None:
    stage = make(window=5)
    await stage.open_room(CLAUDE)
    _, bob = await stalled_replay(stage, 30)

    stage.submit(BOB, SessionLeave(), "leave")
    await yield_to_loop()
    stage.submit(ALICE, prompt_submit(), "secret")
    await yield_to_loop()
    bob.resume_reading()
    await stage.wait_until_idle()
    await stage.send(ALICE, prompt_submit(), "secret too")

    everything = await stage.ids()
    first = everything.index(bob.ids[0])
    assert bob.ids == everything[first : everything.index("leave") + 1]
    assert not stage.engine.delivery.has_listeners(
        "room/r"
    ) or not stage.engine.delivery.is_subscribed("room/r", bob)


async def test_second_join_during_a_long_replay_changes_nothing(make: Make) -> None:
    stage = make(window=5)
    await stage.open_room(CLAUDE)
    before, bob = await stalled_replay(stage, 30)

    again = stage.submit(BOB, session_join(BOB, Role.DRIVER), "impatient", before.ids[-1])
    await yield_to_loop()
    bob.resume_reading()
    await stage.wait_until_idle()
    await stage.send(ALICE, prompt_submit(), "live")

    assert again.records
    assert [*before.ids, *bob.ids] == (await stage.ids())[-len(before.ids) - len(bob.ids) :]


async def test_unreadable_history_closes_the_connection_for_reconnect(make: Make) -> None:
    log = FaultyLog()
    stage = make(log, window=5, check=False)
    await stage.open_room(CLAUDE)
    before, bob = await rejoin_after_absence(stage, 30)

    log.failing.add("read")
    log.successes_before_failure["read"] = 1  # to find what was seen last
    stage.submit(BOB, session_join(BOB, Role.DRIVER), "back", before.ids[-1])
    await yield_to_loop()
    log.failing.clear()
    await stage.wait_until_idle()

    assert bob.close_reason
    assert bob.reconnect_invited
    assert (await stage.state()).members["bob"].presence is Presence.DISCONNECTED
    after = stage.connect(BOB)
    await stage.send(BOB, session_join(BOB, Role.DRIVER), "now", before.ids[-1])
    assert [*before.ids, *after.ids] == (await stage.ids())[-len(before.ids) - len(after.ids) :]


async def test_stream_with_a_joining_connection_is_not_evicted(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = make(window=5)
    await stage.open_room(CLAUDE)
    before, bob = await rejoin_after_absence(stage, 30)
    for seat in ("alice", "claude"):
        stage.peers[seat].disconnect()
    await stage.wait_until_idle()
    bob.stop_reading()
    stage.submit(BOB, session_join(BOB, Role.DRIVER), "back", before.ids[-1])
    await yield_to_loop()

    monkeypatch.setattr(stream_cache, "MAX_STREAMS", 1)
    stage.submit(CAROL, session_create(), room="other")
    await yield_to_loop()
    stage.submit(ALICE, prompt_submit(), "meanwhile", ear=stage.connect(ALICE))
    await yield_to_loop()
    bob.resume_reading()
    await stage.wait_until_idle()

    assert bob.ids[-1] == "meanwhile"


@proves("OPEN-27")
async def test_ended_session_refuses_joins(make: Make) -> None:
    stage = make()
    await stage.open_room(BOB, CLAUDE)
    await stage.send(ALICE, session_end())

    for who, why in ((BOB, Reason.ENDED), (CAROL, Reason.NO_ROOM)):
        with pytest.raises(Refused) as no:
            await stage.send(who, session_join(who, Role.DRIVER), ear=stage.connect(who))
        assert no.value.reason is why


async def test_pipelined_rejoin_and_leave_after_long_absence_misses_nothing(make: Make) -> None:
    log = FaultyLog()
    stage = make(log, window=5)
    await stage.open_room(CLAUDE)
    before, bob = await rejoin_after_absence(stage, 30)

    log.hold("append")
    stage.submit(BOB, session_join(BOB, Role.DRIVER), "back", before.ids[-1])
    stage.submit(BOB, SessionLeave(), "leave")
    stage.submit(CAROL, session_join(CAROL), "secret")
    await yield_to_loop()
    log.release()
    await stage.wait_until_idle()

    everything = await stage.ids()
    after = everything.index(before.ids[-1]) + 1
    assert bob.ids == everything[after : everything.index("leave") + 1]
    assert len(bob.received) == len(bob.ids), "nobody calls the roll for who is gone"
    assert stage.engine.delivery.catching_up == {}
    assert not stage.engine.delivery.is_subscribed("room/r", bob)
