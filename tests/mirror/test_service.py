"""From the log to the rooms: everybody reads the tasks, and the reviewer's room is told, once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind
from accord.core.kernel.refusal import Refused, Why
from accord.core.provenance.commits import LedgerRemove, SessionUnbind
from accord.core.room.content import TASKS
from accord.core.room.lifecycle import SessionEnd
from accord.core.room.pact import reviews
from accord.core.room.state import Lane, Pact, Room
from accord.core.views import tasks
from accord.engine.ports import StoreError
from accord.mirror import place as places
from accord.mirror import service, telling
from accord.mirror.copy import Copy
from accord.mirror.record import PACT
from accord.stores.memory import MemoryLog
from tests.core.work.story import ANN, BOB, assigned, line
from tests.helpers.engine import turns
from tests.helpers.room import ALICE
from tests.mirror.scene import (
    ACCEPTED,
    ASSIGN,
    INIT,
    MERGED,
    REPO,
    RETURNED,
    SESSION,
    SHOWN,
    House,
    Ledger,
)
from tests.spec import proves

REVIEWER = Actor(seat=ANN, kind=Kind.HUMAN)
ASKED, ENDED, TOLD = "review.asked", "review.ended", "tasks.mirrored"
GUARDED = "tasks.guarded"  # which merges go by, and nobody hears


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / ".pact").add(INIT, ASSIGN)


async def at_work(ledger: Ledger, *members: Actor) -> House:
    """A session that is bound to the repository."""
    house = House(MemoryLog())
    await house.open(*members, creator=ALICE)
    await house.place(ledger)
    await house.bind()
    await house.mirrors.look()
    return house


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


@pytest.mark.parametrize("directory", ["", ".pact", "/a/../b", "/a\0b"])
def test_a_place_is_named_by_its_whole_path(directory: str) -> None:
    with pytest.raises(Refused, match="whole path") as no:
        House(MemoryLog()).mirrors.check(REPO, directory)
    assert no.value.why is Why.MALFORMED


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
    async with asyncio.timeout(10):
        async for batch in house.events.tail(0):
            if any(ASKED.encode() in row.body for _, row in batch):
                break

    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


# Where a pact lies


async def lying(house: House, *ledgers: Ledger) -> None:
    for each in ledgers:
        await house.place(each)
    await house.mirrors.look()


async def places_of(house: House) -> dict[str, tuple[int, int, str]]:
    found = await house.mirrors.seen(await house.engine.state(f"repo/{REPO}"))
    return {
        Path(each["directory"]).name: (each["events"], each["alone"], each["trouble"])
        for each in found
    }


async def test_what_lies_where_is_told_apart(tmp_path: Path) -> None:
    one = Ledger(tmp_path / "one").add(INIT, ASSIGN)
    two = Ledger(tmp_path / "two").add(INIT, SHOWN)
    with two.path.open("ab") as file:
        file.write(b"nonsense\n")
    house = House(MemoryLog())
    assert await house.mirrors.seen(await house.engine.state(f"repo/{REPO}")) == []
    await lying(house, one, two)

    assert await places_of(house) == {"one": (2, 1, ""), "two": (2, 1, "")}
    assert ((await house.now(one))["unread"], (await house.now(two))["unread"]) == ([], [3])
    one.path.unlink()
    assert (await house.now(one))["trouble"] == places.UNREADABLE
    assert (await house.now(two))["trouble"] == ""
    assert (await house.mirrors.now(REPO, "/nowhere"))["trouble"] == ""


async def test_what_lay_in_a_place_that_is_gone_still_counts_after_a_restart(
    tmp_path: Path,
) -> None:
    one = Ledger(tmp_path / "one").add(INIT, ASSIGN)
    two = Ledger(tmp_path / "two").add(INIT, assigned("T2", feature="cart", branch="cart"))
    house = House(MemoryLog())
    await lying(house, one, two)

    two.path.unlink()
    house = await house.again()
    for _ in range(3):
        await house.mirrors.look()
    assert list(house.mirrors.pacts[REPO].copy.book.tasks) == ["T1", "T2"]
    assert await places_of(house) == {"one": (2, 2, ""), "two": (0, 1, places.UNREADABLE)}

    await house.say(f"repo/{REPO}", LedgerRemove(str(two.directory)), PACT)
    await house.mirrors.look()
    await house.mirrors.look()
    assert list(house.mirrors.pacts[REPO].copy.book.tasks) == ["T1"]


async def test_a_place_makes_way_only_if_it_is_gone_and_nobody_would_miss_it(
    tmp_path: Path,
) -> None:
    one = Ledger(tmp_path / "one").add(INIT, ASSIGN, SHOWN)
    two, three = Ledger(tmp_path / "two").add(INIT), Ledger(tmp_path / "three").add(INIT, SHOWN)
    alone = Ledger(tmp_path / "alone").add(INIT, MERGED)
    house = House(MemoryLog())
    await lying(house, one, two, three, alone)

    async def needless() -> list[str]:
        repo = await house.engine.state(f"repo/{REPO}")
        return [Path(each).name for each in await house.mirrors.needless(repo)]

    assert await needless() == []
    alone.path.unlink()
    assert await needless() == []
    two.path.unlink()
    three.path.unlink()
    assert await needless() == ["two"]


async def test_nobody_takes_away_what_a_session_goes_by(tmp_path: Path) -> None:
    one, two = Ledger(tmp_path / "one").add(INIT, ASSIGN), Ledger(tmp_path / "two").add(INIT)
    house = await at_work(one)
    repo = await house.engine.state(f"repo/{REPO}")
    with pytest.raises(Refused, match="2 events of the pact") as no:
        await house.mirrors.check_away(repo, str(one.directory))
    assert (no.value.why, no.value.details) == (Why.WRONG_STATE, {"alone": 2})

    await lying(house, two)
    repo = await house.engine.state(f"repo/{REPO}")
    await house.mirrors.check_away(repo, str(two.directory))
    await house.say(f"repo/{REPO}", LedgerRemove(str(two.directory)), PACT)
    empty = House(MemoryLog())
    await lying(empty, Ledger(tmp_path / "empty"))
    with pytest.raises(Refused, match="the last one"):
        await empty.mirrors.check_away(
            await empty.engine.state(f"repo/{REPO}"), str(tmp_path / "empty")
        )


# However much there is


def many(number: int, words: str = "") -> list[dict[str, Any]]:
    """So many features, each with a task."""
    names = [f"f{n}{words}" for n in range(number)]
    return [assigned(f"T{n}", feature=each, branch=each) for n, each in enumerate(names)]


@proves("UNI-17", "UNI-21")
async def test_however_long_a_pact_is_a_session_is_told_so_much_and_heeds_all_of_it(
    ledger: Ledger,
) -> None:
    house = await at_work(ledger.add(*many(2000, words="x" * 200)))
    while house.mirrors.pacts[REPO].copy.more:
        await house.mirrors.look()
    room = await house.room()

    assert room.pact is not None
    assert room.pact.trouble == telling.TOO_MANY
    rows = await house.events.read(f"room/{SESSION}")
    assert max(len(row.body) for row in rows) < telling.LARGEST_LANES + tasks.LARGEST + 5000
    content = room.shelf[""][TASKS].content
    assert isinstance(content, dict)
    assert content["trouble"] == telling.TOO_MANY
    assert len(content["tasks"]) + content["left_out"] == 2000


async def test_a_session_hears_that_a_feature_is_merged_and_then_nothing_more(
    ledger: Ledger,
) -> None:
    house = await at_work(ledger.add(SHOWN, ACCEPTED))
    assert lanes_in(await house.room()) == (Lane("cart", "cart"),)

    ledger.add(MERGED)
    await house.mirrors.look()
    assert lanes_in(await house.room()) == (Lane("cart", "cart", shipped=True),)
    ledger.add(line("join", BOB, roles=[], at=7))
    await house.mirrors.look()

    assert await house.said() == [TOLD, TOLD]
    ledger.add(assigned("T5", feature="till", branch="till", at=8))
    await house.mirrors.look()
    merged = Lane("cart", "cart", shipped=True)
    assert lanes_in(await house.room()) == (Lane("till", "till", ("T5",)), merged)


def lanes_in(room: Room) -> tuple[Lane, ...]:
    assert room.pact is not None
    return room.pact.lanes


async def test_a_feature_of_a_branch_that_no_fork_can_have_is_not_told(ledger: Ledger) -> None:
    long = "b" * (telling.LONGEST_BRANCH + 1)
    tasks = [assigned(f"T{n}", feature="cart", branch="cart") for n in range(20, 40)]
    house = await at_work(ledger.add(assigned("T9", feature="far", branch=long), *tasks))

    (lane,) = lanes_in(await house.room())

    assert (lane.feature, len(lane.open)) == ("cart", telling.MOST_OPEN)
    assert (await house.room()).pact == Pact(REPO, (lane,))


@proves("UNI-21")
async def test_a_session_whose_pact_cannot_be_followed_is_told_so(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = await at_work(ledger)

    (place,) = house.mirrors.pacts[REPO].copy.places.values()
    monkeypatch.setattr(place, "_most", 10)
    ledger.add(SHOWN)
    await house.mirrors.look()

    room = await house.room()
    assert room.pact is not None
    assert room.pact.trouble == places.TOO_LARGE.format(most=0)
    assert room.pacts[REPO].trouble == room.pact.trouble
    monkeypatch.undo()
    ledger.add(ACCEPTED)
    await house.mirrors.look()
    room = await house.room()
    assert room.pact is not None
    assert room.pact.trouble == ""


async def test_what_fails_in_the_middle_of_a_long_log_waits_for_the_next_look(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = await at_work(ledger)
    house.mirrors.pause = 60
    house.mirrors.pacts[REPO].copy.more = True  # the look before was not the last
    asked = list[str]()

    async def state(stream: str) -> Any:
        asked.append(stream)
        raise StoreError("the disk does not answer")

    monkeypatch.setattr(house.engine, "state", state)
    running = asyncio.create_task(house.mirrors.run())
    await turns(100)
    tries = len(asked)
    await turns(100)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert tries
    assert len(asked) == tries
