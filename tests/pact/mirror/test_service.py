"""From the log to the rooms: everybody reads the tasks, and the reviewer's room is told, once."""

import asyncio
from pathlib import Path

import pytest

from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.provenance.commit_links import SessionUnbind
from accord.core.room.forking.fork_state import PactFeature
from accord.core.room.forking.pact_tasks import pending_reviews
from accord.core.room.session_lifecycle import SessionEnd
from accord.core.room.shared_context.item_content import TASKS_KEY
from accord.pact.mirror import replication, room_updates, service
from accord.pact.mirror.recorder import PACT_ACTOR
from accord.pact.mirror.replication import Replica
from accord.stores.memory import MemoryLog
from tests.core.work.story import ANN, BOB, assigned, line
from tests.helpers.engine.harness import FaultyLog
from tests.helpers.room.scenario import ALICE
from tests.pact.mirror.scene import (
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
    ids,
)
from tests.spec import proves

REVIEWER = Actor(principal=ANN, kind=Kind.HUMAN)
GUARDED = "tasks.guarded"  # which merges go by, and nobody hears


@proves("UNI-17")
async def test_a_bound_session_reads_the_tasks(ledger: Ledger) -> None:
    house = await at_work(ledger)

    room = await house.room()
    content = room.shelf[""][TASKS_KEY].content

    assert isinstance(content, dict)
    assert [each["id"] for each in content["tasks"]] == ["T1"]
    assert room.pact is not None
    assert room.pact.lanes == (PactFeature("cart", "cart", ("T1",)),)
    await house.mirrors.sync_all()
    assert await house.said() == [TOLD]


async def test_a_session_that_is_bound_later_is_told_at_the_next_look(ledger: Ledger) -> None:
    house = House(MemoryLog())
    await house.open(creator=ALICE)
    await house.place(ledger)
    await house.mirrors.sync_all()
    assert await house.said() == []

    await house.bind()
    await house.mirrors.sync_all()

    assert await house.said() == [TOLD]


async def test_a_checkpoint_is_told_where_its_reviewer_is_and_nowhere_else(ledger: Ledger) -> None:
    house = await at_work(ledger, REVIEWER)
    await house.open(creator=ALICE, session="other")
    await house.bind("other")

    ledger.add(SHOWN)
    await house.mirrors.sync_all()

    assert await house.said() == [TOLD, TOLD, ASKED]
    assert await house.said("other") == [TOLD]
    words = (await house.room()).shelf[""]["review:T1"].content
    assert isinstance(words, str)
    assert "bob submits T1 (cart) for review by ann: 12 pass" in words


async def test_half_of_a_log_is_told_to_nobody(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication, "BATCH_EVENTS", 1)
    events = FaultyLog()
    house = House(events)
    await house.open(REVIEWER, creator=ALICE)
    await house.place(ledger.add(SHOWN, ACCEPTED, MERGED))
    await house.bind()
    events.failing, events.successes_before_failure["append"] = {"append"}, 3
    await house.mirrors.sync_all()
    assert await house.said() == []
    assert await house.recorded() == ids(INIT, ASSIGN, SHOWN)

    events.failing = set()
    await house.mirrors.sync_all()

    assert await house.said() == [TOLD]


async def test_who_comes_later_is_told_then(ledger: Ledger) -> None:
    house = await at_work(ledger.add(SHOWN))
    assert ASKED not in await house.said()

    await house.join(REVIEWER)
    await house.mirrors.sync_all()

    assert await house.said() == [TOLD, ASKED]


@proves("UNI-11")
async def test_no_restart_tells_a_checkpoint_twice(ledger: Ledger) -> None:
    house = await at_work(ledger.add(SHOWN), REVIEWER)
    for _ in range(3):
        house = await house.again()
        await house.mirrors.sync_all()
        await house.join(Actor(principal="dave", kind=Kind.HUMAN))
        await house.mirrors.sync_all()

    assert await house.said() == [TOLD, ASKED]


@pytest.mark.parametrize(
    ("verdict", "reason"),
    [
        (ACCEPTED, "ann accepted it"),
        (RETURNED, "ann requested changes: more"),
        (line("nothing", BOB), ""),
    ],
)
async def test_with_the_verdict_the_review_is_over(
    ledger: Ledger, verdict: dict[str, object], reason: str
) -> None:
    house = await at_work(ledger.add(SHOWN), REVIEWER)

    ledger.add(verdict)
    await house.mirrors.sync_all()

    assert (ENDED in await house.said()) is bool(reason)
    rows = await house.events.read(f"room/{SESSION}")
    assert not reason or any(reason.encode() in row.body for row in rows)
    assert bool(pending_reviews(await house.room())) is not bool(reason)


async def test_what_is_shown_again_is_told_again(ledger: Ledger) -> None:
    again = line("checkpoint", BOB, "T1", "cart", evidence="13 pass", at=4)
    house = await at_work(ledger.add(SHOWN), REVIEWER)

    ledger.add(RETURNED)
    await house.mirrors.sync_all()
    ledger.add(again)
    await house.mirrors.sync_all()

    said = await house.said()
    assert [kind for kind in said if kind != TOLD] == [ASKED, ENDED, ASKED]


async def test_what_waits_again_is_told_again(ledger: Ledger) -> None:
    house = await at_work(ledger.add(SHOWN, ACCEPTED), REVIEWER)
    assert await house.said() == [TOLD]

    ledger.write(INIT, ASSIGN, SHOWN)
    for _ in range(2):  # what is gone is believed at the second look
        await house.mirrors.sync_all()
    await house.mirrors.release_session(REPO, SESSION)
    await house.say(f"repo/{REPO}", SessionUnbind(SESSION), PACT_ACTOR)
    await house.mirrors.sync_all()
    assert pending_reviews(await house.room()) == {}
    await house.bind()
    await house.mirrors.sync_all()

    said = [kind for kind in await house.said() if kind in {ASKED, ENDED}]
    assert said == [ASKED, ENDED, ASKED]
    assert list(pending_reviews(await house.room())) == ["review:T1"]


async def test_there_is_an_end_to_what_lies_for_review(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room_updates, "MAX_REVIEWS", 1)
    second = assigned("T2", feature="cart", branch="cart", at=2)
    shown = line("checkpoint", BOB, "T2", "cart", evidence="2 pass", at=2)
    again = line("checkpoint", BOB, "T1", "cart", evidence="13 pass", at=3)
    house = await at_work(ledger.add(SHOWN, second, shown), REVIEWER)
    assert list(pending_reviews(await house.room())) == ["review:T1"]

    ledger.add(again)
    await house.mirrors.sync_all()
    assert await house.said() == [TOLD, ASKED, TOLD, ASKED]
    ledger.add(line("accept", ANN, "T1", "cart", at=4))
    await house.mirrors.sync_all()

    assert list(pending_reviews(await house.room())) == ["review:T2"]


async def test_a_task_that_is_gone_or_begun_anew_waits_for_nobody(ledger: Ledger) -> None:
    house = await at_work(ledger.add(SHOWN), REVIEWER)

    ledger.write(INIT)
    await house.mirrors.sync_all()
    await house.mirrors.sync_all()
    assert pending_reviews(await house.room()) == {}
    ledger.write(INIT, ASSIGN, SHOWN)
    await house.mirrors.sync_all()
    ledger.write(INIT, ASSIGN)
    await house.mirrors.sync_all()
    await house.mirrors.sync_all()

    assert pending_reviews(await house.room()) == {}
    said = [kind for kind in await house.said() if kind in {ASKED, ENDED}]
    assert said == [ASKED, ENDED, ASKED, ENDED]


@proves("UNI-3")
async def test_a_reviewer_with_a_foreign_name_is_known_by_its_alias(tmp_path: Path) -> None:
    foreign = Actor(principal="Ann", kind=Kind.HUMAN)
    twin = Actor(principal="aNN", kind=Kind.HUMAN)
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

    await house.mirrors.release_session("unknown", SESSION)
    await house.mirrors.release_session(REPO, SESSION)
    await house.mirrors.release_session(REPO, SESSION)

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
    await house.mirrors.sync_all()
    assert await house.said() == [TOLD, GUARDED]

    done = SessionEnd(reason="done", final_state="completed")
    await house.say(f"room/{SESSION}", done, ALICE)
    ledger.add(SHOWN, ACCEPTED, MERGED)
    await house.mirrors.sync_all()
    assert await house.said() == [TOLD, GUARDED]
    house = await house.again()
    await house.mirrors.sync_all()
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
    monkeypatch.setattr(service, "MAX_REPOS", 1)
    house = await at_work(ledger)

    with pytest.raises(Refused, match="already mirrors") as no:
        await house.place(ledger, "one-more")
    assert no.value.reason is Reason.FULL


async def test_a_log_that_takes_long_holds_up_no_other_repository(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "SYNC_WAIT_S", 0.01)
    house, read, began = House(MemoryLog()), asyncio.Event(), list[str]()
    await house.place(ledger, "long")
    other = Ledger(tmp_path / "other").add(INIT)
    await house.place(other, REPO)
    slow, whole = house.mirrors.pacts["long"].replica, Replica._read_stream

    async def learn(copy: Replica) -> None:
        if copy is slow:
            began.append(copy.repo)
            await read.wait()
        await whole(copy)

    monkeypatch.setattr(Replica, "_read_stream", learn)
    while not await house.recorded(REPO):
        await house.mirrors.sync_all()
    other.add(ASSIGN)
    while len(await house.recorded(REPO)) < 2:
        await house.mirrors.sync_all()

    assert began == ["long"], "and it is not asked twice meanwhile"
    read.set()
    while not await house.recorded("long"):
        await house.mirrors.sync_all()


async def test_it_goes_on_by_itself(ledger: Ledger) -> None:
    house = await at_work(ledger, REVIEWER)
    house.mirrors.poll_interval = 60.0
    running = asyncio.create_task(house.mirrors.run())
    ledger.add(SHOWN)

    await house.join(Actor(principal="dave", kind=Kind.HUMAN))  # which is a reason to look
    async with asyncio.timeout(60):
        async for batch in house.events.tail(0):
            if any(ASKED.encode() in row.body for _, row in batch):
                break

    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
