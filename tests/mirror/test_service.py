"""From the log to the rooms: everybody reads the tasks, and the reviewer's room is told, once."""

import asyncio
from pathlib import Path

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind
from accord.core.kernel.refusal import Refused, Why
from accord.core.provenance.commits import SessionUnbind
from accord.core.room.content import TASKS
from accord.core.room.lifecycle import SessionEnd
from accord.core.room.pact import reviews
from accord.core.room.state import Lane
from accord.mirror import place as places
from accord.mirror import service, telling
from accord.mirror.copy import Copy
from accord.mirror.record import PACT
from accord.stores.memory import MemoryLog
from tests.core.work.story import ANN, BOB, assigned, line
from tests.helpers.room import ALICE
from tests.mirror.scene import (
    ACCEPTED,
    ASKED,
    ASSIGN,
    ENDED,
    INIT,
    MERGED,
    REPO,
    RETURNED,
    SESSION,
    SHOWN,
    TOLD,
    House,
    Ledger,
    at_work,
)
from tests.spec import proves

REVIEWER = Actor(seat=ANN, kind=Kind.HUMAN)
GUARDED = "tasks.guarded"  # which merges go by, and nobody hears


@proves("UNI-17")
async def test_a_bound_session_reads_the_tasks(ledger: Ledger) -> None:
    house = await at_work(ledger)

    room = await house.room()
    content = room.shelf[""][TASKS].content

    assert isinstance(content, dict)
    assert [each["id"] for each in content["tasks"]] == ["T1"]
    assert room.pact is not None
    assert room.pact.lanes == (Lane("cart", "cart", ("T1",)),)
    await house.mirrors.look()
    assert await house.said() == [TOLD]


async def test_a_session_that_is_bound_later_is_told_at_the_next_look(ledger: Ledger) -> None:
    house = House(MemoryLog())
    await house.open(creator=ALICE)
    await house.place(ledger)
    await house.mirrors.look()
    assert await house.said() == []

    await house.bind()
    await house.mirrors.look()

    assert await house.said() == [TOLD]


async def test_a_checkpoint_is_told_where_its_reviewer_is_and_nowhere_else(ledger: Ledger) -> None:
    house = await at_work(ledger, REVIEWER)
    await house.open(creator=ALICE, session="other")
    await house.bind("other")

    ledger.add(SHOWN)
    await house.mirrors.look()

    assert await house.said() == [TOLD, TOLD, ASKED]
    assert await house.said("other") == [TOLD]
    words = (await house.room()).shelf[""]["review:T1"].content
    assert isinstance(words, str)
    assert "bob shows T1 (cart) for review by ann: 12 pass" in words


async def test_half_of_a_log_is_told_to_nobody(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "BLOCK", 1)
    house = await at_work(ledger.add(SHOWN, ACCEPTED, MERGED), REVIEWER)
    for _ in range(3):
        await house.mirrors.look()
        assert await house.said() == []

    await house.mirrors.look()

    assert await house.said() == [TOLD]


async def test_who_comes_later_is_told_then(ledger: Ledger) -> None:
    house = await at_work(ledger.add(SHOWN))
    assert ASKED not in await house.said()

    await house.join(REVIEWER)
    await house.mirrors.look()

    assert await house.said() == [TOLD, ASKED]


@proves("UNI-11")
async def test_no_restart_tells_a_checkpoint_twice(ledger: Ledger) -> None:
    house = await at_work(ledger.add(SHOWN), REVIEWER)
    for _ in range(3):
        house = await house.again()
        await house.mirrors.look()
        await house.join(Actor(seat="dave", kind=Kind.HUMAN))
        await house.mirrors.look()

    assert await house.said() == [TOLD, ASKED]


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        (ACCEPTED, "ann accepted it"),
        (RETURNED, "ann asks for changes: more"),
        (line("nothing", BOB), ""),
    ],
)
async def test_with_the_verdict_the_review_is_over(
    ledger: Ledger, verdict: dict[str, object], reason: str
) -> None:
    house = await at_work(ledger.add(SHOWN), REVIEWER)

    ledger.add(verdict)
    await house.mirrors.look()

    assert (ENDED in await house.said()) is bool(reason)
    rows = await house.events.read(f"room/{SESSION}")
    assert not reason or any(reason.encode() in row.body for row in rows)
    assert bool(reviews(await house.room())) is not bool(reason)


async def test_what_is_shown_again_is_told_again(ledger: Ledger) -> None:
    again = line("checkpoint", BOB, "T1", "cart", evidence="13 pass", at=4)
    house = await at_work(ledger.add(SHOWN), REVIEWER)

    ledger.add(RETURNED)
    await house.mirrors.look()
    ledger.add(again)
    await house.mirrors.look()

    said = await house.said()
    assert [kind for kind in said if kind != TOLD] == [ASKED, ENDED, ASKED]


async def test_what_waits_again_is_told_again(ledger: Ledger) -> None:
    house = await at_work(ledger.add(SHOWN, ACCEPTED), REVIEWER)
    assert await house.said() == [TOLD]

    ledger.write(INIT, ASSIGN, SHOWN)
    for _ in range(2):  # what is gone is believed at the second look
        await house.mirrors.look()
    await house.mirrors.release(REPO, SESSION)
    await house.say(f"repo/{REPO}", SessionUnbind(SESSION), PACT)
    await house.mirrors.look()
    assert reviews(await house.room()) == {}
    await house.bind()
    await house.mirrors.look()

    said = [kind for kind in await house.said() if kind in {ASKED, ENDED}]
    assert said == [ASKED, ENDED, ASKED]
    assert list(reviews(await house.room())) == ["review:T1"]


async def test_there_is_an_end_to_what_lies_for_review(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telling, "MOST_REVIEWS", 1)
    second = assigned("T2", feature="cart", branch="cart", at=2)
    shown = line("checkpoint", BOB, "T2", "cart", evidence="2 pass", at=2)
    again = line("checkpoint", BOB, "T1", "cart", evidence="13 pass", at=3)
    house = await at_work(ledger.add(SHOWN, second, shown), REVIEWER)
    assert list(reviews(await house.room())) == ["review:T1"]

    ledger.add(again)
    await house.mirrors.look()
    assert await house.said() == [TOLD, ASKED, TOLD, ASKED]
    ledger.add(line("accept", ANN, "T1", "cart", at=4))
    await house.mirrors.look()

    assert list(reviews(await house.room())) == ["review:T2"]


async def test_a_task_that_is_gone_or_begun_anew_waits_for_nobody(ledger: Ledger) -> None:
    house = await at_work(ledger.add(SHOWN), REVIEWER)

    ledger.write(INIT)
    await house.mirrors.look()
    await house.mirrors.look()
    assert reviews(await house.room()) == {}
    ledger.write(INIT, ASSIGN, SHOWN)
    await house.mirrors.look()
    ledger.write(INIT, ASSIGN)
    await house.mirrors.look()
    await house.mirrors.look()

    assert reviews(await house.room()) == {}
    said = [kind for kind in await house.said() if kind in {ASKED, ENDED}]
    assert said == [ASKED, ENDED, ASKED, ENDED]


@proves("UNI-3")
async def test_a_reviewer_with_a_foreign_name_is_known_by_its_alias(tmp_path: Path) -> None:
    foreign = Actor(seat="Ann", kind=Kind.HUMAN)
    twin = Actor(seat="aNN", kind=Kind.HUMAN)
    house = await at_work(Ledger(tmp_path / "p").add(INIT, ASSIGN, SHOWN), foreign)
    confused = await at_work(Ledger(tmp_path / "q").add(INIT, ASSIGN, SHOWN), foreign, twin)

    assert ASKED in await house.said()
    assert ASKED not in await confused.said()


async def test_a_pact_names_its_seats_as_trailers_do(ledger: Ledger) -> None:
    house = await at_work(ledger, REVIEWER)
    alone = House(MemoryLog())
    await alone.place(ledger)

    assert (await house.now(ledger))["names"]["ann"] == "human:ann"
    assert (await alone.now(ledger))["names"]["ann"] == "agent:ann"


async def test_a_session_that_leaves_its_repository_has_its_tasks_for_itself(
    ledger: Ledger,
) -> None:
    house = await at_work(ledger.add(SHOWN), REVIEWER)

    await house.mirrors.release("unknown", SESSION)
    await house.mirrors.release(REPO, SESSION)
    await house.mirrors.release(REPO, SESSION)

    room = await house.room()
    assert (room.pact, dict(room.shelf[""])) == (None, {})
    assert await house.said() == [TOLD, ASKED, "tasks.released", ENDED]


async def test_a_session_that_is_over_is_left_alone_and_one_of_another_repository_hears_nothing(
    ledger: Ledger, tmp_path: Path
) -> None:
    house = await at_work(ledger)
    other = Ledger(tmp_path / "other").add(INIT, ASSIGN, SHOWN)
    await house.place(other, "other")
    await house.bind(repo="other")
    await house.mirrors.look()
    assert await house.said() == [TOLD, GUARDED]

    done = SessionEnd(reason="done", final_state="completed")
    await house.say(f"room/{SESSION}", done, ALICE)
    ledger.add(SHOWN, ACCEPTED, MERGED)
    await house.mirrors.look()
    assert await house.said() == [TOLD, GUARDED]
    house = await house.again()
    await house.mirrors.look()
    assert await house.said() == [TOLD, GUARDED]


async def test_a_pact_of_a_later_version_is_mirrored_and_not_interpreted(tmp_path: Path) -> None:
    later = {**INIT, "payload": {**INIT["payload"], "protocol_version": 2}}

    house = await at_work(Ledger(tmp_path / ".pact").add(later, ASSIGN), REVIEWER)

    assert len(await house.recorded()) == 2
    assert await house.said() == []


async def test_asking_at_once_says_what_was_found(ledger: Ledger) -> None:
    house = await at_work(ledger, REVIEWER)
    with ledger.path.open("ab") as file:
        file.write(b"nonsense\n")

    answer = await house.now(ledger)

    assert answer == {
        "repo": REPO,
        "sessions": [SESSION],
        "names": {ANN: "human:ann", BOB: "agent:bob"},
        "events": 2,
        "unread": [3],
        "trouble": "",
    }


async def test_there_is_an_end_to_the_pacts(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MOST_REPOS", 1)
    house = await at_work(ledger)

    with pytest.raises(Refused, match="followed here already") as no:
        await house.place(ledger, "one-more")
    assert no.value.why is Why.FULL


async def test_a_log_that_takes_long_holds_up_no_other_repository(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "LONG_S", 0.01)
    house, read, began = House(MemoryLog()), asyncio.Event(), list[str]()
    await house.place(ledger, "long")
    other = Ledger(tmp_path / "other").add(INIT)
    await house.place(other, REPO)
    slow, whole = house.mirrors.pacts["long"].copy, Copy._learn

    async def learn(copy: Copy) -> None:
        if copy is slow:
            began.append(copy.repo)
            await read.wait()
        await whole(copy)

    monkeypatch.setattr(Copy, "_learn", learn)
    while not await house.recorded(REPO):
        await house.mirrors.look()
    other.add(ASSIGN)
    while len(await house.recorded(REPO)) < 2:
        await house.mirrors.look()

    assert began == ["long"], "and it is not asked twice meanwhile"
    read.set()
    while not await house.recorded("long"):
        await house.mirrors.look()


async def test_it_goes_on_by_itself(ledger: Ledger) -> None:
    house = await at_work(ledger, REVIEWER)
    house.mirrors.pause = 60.0
    running = asyncio.create_task(house.mirrors.run())
    ledger.add(SHOWN)

    await house.join(Actor(seat="dave", kind=Kind.HUMAN))  # which is a reason to look
    async with asyncio.timeout(60):
        async for batch in house.events.tail(0):
            if any(ASKED.encode() in row.body for _, row in batch):
                break

    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
