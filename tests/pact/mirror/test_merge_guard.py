"""Once a session was bound, its merges go by that pact, whatever is unbound or started anew.

`ACCORD_LONG=1` tries many more sequences, and others each time.
"""

import asyncio
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.kernel.actor import Actor
from accord.core.kernel.messages import Message
from accord.core.kernel.refusal import Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.kernel.timestamps import to_iso
from accord.core.provenance.commit_links import Repo, SessionUnbind
from accord.core.room.forking.fork_state import PactFeature, PactSummary
from accord.core.room.state import Room
from accord.core.room.visibility import lineage
from accord.engine.ports import StoreError
from accord.pact.mirror import ledger_file as places
from accord.pact.mirror import service
from accord.pact.mirror.recorder import PACT_ACTOR
from accord.pact.mirror.replication import Replica
from accord.stores.memory import MemoryLog
from tests.core.work.story import ANN, BOB, assigned, folded, line
from tests.helpers.room.logged_room import START_ID, merge_execute, merge_propose
from tests.helpers.room.logged_room import fork_create as branches_off
from tests.helpers.room.scenario import ALICE, CLAUDE, prompt_submit
from tests.pact.mirror.scene import (
    ACCEPTED,
    ASSIGN,
    INIT,
    MERGED,
    REPO,
    SESSION,
    SHOWN,
    House,
    Ledger,
)
from tests.pact.mirror.test_background_call import hanging
from tests.spec import proves

LONG = bool(os.environ.get("ACCORD_LONG"))
OTHER = "market-2"
OPEN = PactFeature("cart", "cart", ("T1",))
ROOM = f"room/{SESSION}"
BOBBY = Actor(principal="bobby", kind=Kind.HUMAN)


class Scene:
    """A server, a session, a repository with a pact, and one whose pact has no tasks."""

    def __init__(self, folder: Path) -> None:
        self.house = House(MemoryLog())
        self.ledgers = {REPO: Ledger(folder / "a"), OTHER: Ledger(folder / "b").add(INIT)}

    async def begin(self) -> "Scene":
        await self.house.open(CLAUDE, creator=ALICE)
        await self.says(prompt_submit(CLAUDE), START_ID)
        for repo, ledger in self.ledgers.items():
            await self.house.place(ledger, repo)
        return self

    async def says(self, body: Any, id: str, fork: str | None = None) -> None:
        now = to_iso(self.house.engine.clock.now())
        message = Message(id, now, SESSION, ALICE.principal, body, fork=fork)
        await self.house.engine.handle(message, ALICE, stream=ROOM)

    async def bind(self, repo: str = REPO) -> None:
        await self.house.bind(repo=repo)

    async def unbind(self, repo: str = REPO) -> None:
        """As the bridge does it for `accord git unbind`."""
        await self.house.mirrors.release_session(repo, SESSION)
        await self.house.say(f"repo/{repo}", SessionUnbind(SESSION), PACT_ACTOR)

    async def restart(self) -> None:
        self.house = await self.house.again()

    async def look(self) -> None:
        """What is gone is believed at the second look."""
        for _ in range(2):
            await self.house.mirrors.sync_all()

    async def fork(self, name: str, inside: str | None = None) -> str:
        before = set((await self.room()).forks)
        await self.says(branches_off(name), self.house.engine.new_id(), inside)
        (made,) = set((await self.room()).forks) - before
        return made

    async def room(self) -> Room:
        return await self.house.room()


@pytest.fixture
async def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path)
    made.ledgers[REPO].add(INIT, ASSIGN)
    return await made.begin()


@proves("UNI-21")
@pytest.mark.parametrize("again", [False, True])
async def test_unbinding_frees_no_fork_and_no_restart_does(scene: Scene, again: bool) -> None:
    await scene.bind()
    await scene.look()
    fork = await scene.fork("cart")
    await scene.unbind()
    await scene.look()
    if again:
        await scene.restart()
        await scene.look()

    with pytest.raises(Refused, match=r"Rule 2: cart.*still counts for work that was forked") as no:
        await scene.says(merge_propose(fork), "merge")
    assert f"`accord git bind {SESSION}`" in no.value.detail
    assert (await scene.room()).pact is None

    scene.ledgers[REPO].add(SHOWN, ACCEPTED, MERGED)
    await scene.look()
    await scene.says(merge_propose(fork), "merge")
    await scene.says(merge_execute("merge"), "done")
    assert (await scene.room()).forks[fork].merged


@proves("UNI-21")
async def test_who_left_before_anybody_looked_is_bound_too(scene: Scene) -> None:
    await scene.bind()
    await scene.unbind()
    await scene.look()

    assert (await scene.room()).pacts[REPO].lanes == (OPEN,)
    assert await scene.house.said() == ["tasks.guarded"]


# From the first moment


async def heed(scene: Scene) -> None:
    """As the bridge does before it binds a session."""
    await scene.house.mirrors.guard_merges(await scene.house.engine.state(f"repo/{REPO}"), SESSION)


@proves("UNI-21")
async def test_a_session_goes_by_the_pact_before_it_is_bound(scene: Scene) -> None:
    fork = await scene.fork("cart")

    await heed(scene)

    with pytest.raises(Refused, match="Rule 2: cart"):
        await scene.says(merge_propose(fork), "merge")
    assert await scene.house.said() == ["tasks.guarded"]
    await scene.bind()
    await scene.look()
    assert await scene.house.said() == ["tasks.guarded", "tasks.mirrored"]


@proves("UNI-21")
@pytest.mark.parametrize("again", [False, True])
async def test_while_a_long_pact_is_read_nothing_is_merged(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    monkeypatch.setattr(service, "REQUEST_WAIT_S", 0)  # reading takes longer than that
    fork = await scene.fork("another")
    await heed(scene)
    if again:
        await scene.restart()

    with pytest.raises(Refused, match="the server is still reading the pact; try again"):
        await scene.says(merge_propose(fork), "merge")

    await scene.bind()
    await scene.look()
    await scene.says(merge_propose(fork), "merge")
    await scene.says(merge_execute("merge"), "done")
    assert (await scene.room()).forks[fork].merged


@proves("UNI-21")
async def test_a_look_that_fails_or_takes_long_frees_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = asyncio.Event()

    async def look(_: Replica) -> bool:
        await held.wait()
        raise StoreError("the disk is away")

    monkeypatch.setattr(service, "REQUEST_WAIT_S", 0)
    with monkeypatch.context() as patch:
        patch.setattr(Replica, "sync", look)
        await heed(scene)
        assert (await scene.room()).pacts[REPO].trouble == service.STILL_READING_NOTICE
        held.set()
        monkeypatch.setattr(service, "REQUEST_WAIT_S", 60)
        await heed(scene)
        assert (await scene.room()).pacts[REPO].trouble == service.STILL_READING_NOTICE

    await heed(scene)
    assert (await scene.room()).pacts[REPO] == PactSummary(REPO, (OPEN,))


@proves("UNI-21")
async def test_who_is_bound_again_while_nobody_can_look_is_freed_by_the_next_look(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.bind()
    await scene.look()
    with monkeypatch.context() as patch:
        patch.setattr(service, "REQUEST_WAIT_S", 0)
        await heed(scene)
    assert (await scene.room()).pacts[REPO] == PactSummary(
        REPO, (OPEN,), service.STILL_READING_NOTICE
    )

    await scene.look()

    assert (await scene.room()).pacts[REPO] == PactSummary(REPO, (OPEN,))
    assert (await scene.house.said()).count("tasks.mirrored") == 1, "nobody hears it twice"


@proves("UNI-21")
async def test_a_disk_that_never_answered_may_hold_tasks(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = hanging(scene.ledgers[REPO], monkeypatch)
    await heed(scene)
    await scene.bind()
    await scene.look()
    assert (await scene.room()).pacts[REPO].trouble == places.NO_ANSWER_NOTICE

    answers()
    while (await scene.room()).pacts[REPO].trouble:
        await scene.look()
    assert (await scene.room()).pacts[REPO].lanes == (OPEN,)


async def test_what_was_feared_and_is_no_pact_holds_up_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path)
    scene.ledgers[REPO].add(ASSIGN, SHOWN)
    await scene.begin()
    with monkeypatch.context() as patch:
        patch.setattr(service, "REQUEST_WAIT_S", 0)
        await heed(scene)
    assert (await scene.room()).pacts[REPO].trouble == service.STILL_READING_NOTICE
    await scene.bind()
    await scene.look()

    assert (await scene.room()).pacts[REPO] == PactSummary(REPO)
    assert await scene.house.said() == ["tasks.guarded", "tasks.guarded"]


async def test_where_there_is_no_pact_there_is_nothing_to_go_by(scene: Scene) -> None:
    await scene.house.mirrors.guard_merges(Repo("elsewhere"), SESSION)

    assert not await scene.house.mirrors.sync_briefly(Repo("elsewhere"))
    assert not (await scene.room()).pacts


async def test_who_comes_while_a_session_leaves_brings_nothing_back(scene: Scene) -> None:
    await scene.bind()
    await scene.look()

    await scene.house.mirrors.release_session(REPO, SESSION)
    await scene.house.join(BOBBY)
    await scene.look()
    await scene.house.say(f"repo/{REPO}", SessionUnbind(SESSION), PACT_ACTOR)
    await scene.look()

    room = await scene.room()
    assert (room.pact, room.pacts[REPO].lanes) == (None, (OPEN,))


@proves("UNI-21")
async def test_a_second_repository_is_heeded_though_the_first_is_shown(scene: Scene) -> None:
    await scene.bind(OTHER)
    await scene.look()
    await scene.bind()
    await scene.look()
    room = await scene.room()
    assert (room.pact and room.pact.repo, room.pacts[REPO].lanes) == (OTHER, (OPEN,))

    await scene.unbind(OTHER)
    await scene.look()

    room = await scene.room()
    assert room.pact is not None
    assert room.pact.repo == REPO, "the other one can be shown now"


@proves("UNI-21")
async def test_of_two_that_come_at_once_one_is_shown_and_both_are_heeded(scene: Scene) -> None:
    await scene.bind(OTHER)
    await scene.bind()
    await scene.house.mirrors.sync_all()

    room = await scene.room()
    assert room.pact is not None
    assert set(room.pacts) == {REPO, OTHER}


# Whatever anyone does

REPOS = st.sampled_from([REPO, OTHER])
WHICH = st.integers(0, 5)
BINDING = st.tuples(st.sampled_from(["bind", "unbind"]), REPOS)
FORKING = st.tuples(st.just("fork"), st.sampled_from(["cart", "aside"]), WHICH)
MERGING = st.one_of(
    st.tuples(st.sampled_from(["propose", "merge"]), WHICH, WHICH),
    st.tuples(st.just("merge"), WHICH, st.just(0)),
    st.tuples(st.just("execute"), WHICH),
)
WORKING = st.tuples(st.sampled_from(["restart", "assign", "accept", "ship", "switch"]))
STEPS = st.one_of(BINDING, FORKING, MERGING, WORKING)
Steps = list[tuple[Any, ...]]
# Bound, bound no longer, bound beside another; then a task that is open, and a fork with its work.
BOUND: list[Steps] = [
    [("bind", REPO)],
    [("bind", REPO), ("unbind", REPO)],
    [("bind", OTHER), ("bind", REPO)],
    [],
]
BEGUN = st.sampled_from([[*steps, ("assign",), ("fork", "cart", 0)] for steps in BOUND])


class Model(Scene):
    """The same, and beside it what the pact says in truth: no line of it is ever taken back."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.events: list[dict[str, Any]] = [INIT]
        self.hidden = False  # a branch without the events is checked out
        self.heeded = False  # a look saw the feature, for this session
        self.bound = False
        self.write()

    def write(self) -> None:
        self.ledgers[REPO].write(*([INIT] if self.hidden else self.events))

    @property
    def lane(self) -> tuple[bool, bool]:
        """Whether the feature has tasks, and whether it was shipped."""
        feature = folded(*self.events).features.get("cart")
        return feature is not None, feature is not None and feature.shipped

    async def step(self, kind: str, *words: Any) -> None:
        try:
            await getattr(self, f"do_{kind}")(*words)
        except Refused:
            return
        finally:
            self.write()
            await self.look()
            self.heeded = self.heeded or (self.bound and not self.hidden and self.lane[0])

    async def do_bind(self, repo: str) -> None:
        await self.bind(repo)
        self.bound = self.bound or repo == REPO

    async def do_unbind(self, repo: str) -> None:
        await self.unbind(repo)

    async def do_restart(self) -> None:
        await self.restart()

    async def do_fork(self, name: str, inside: int) -> None:
        room = await self.room()
        if len(room.forks) < 6:
            await self.fork(name, [None, *room.forks][inside % (len(room.forks) + 1)])

    async def do_propose(self, source: int, target: int) -> None:
        known = list((await self.room()).forks)
        if known:
            to = ["main", *known][target % (len(known) + 1)]
            await self.says(
                merge_propose(known[source % len(known)], to), self.house.engine.new_id()
            )

    async def do_merge(self, source: int, target: int) -> None:
        await self.do_propose(source, target)
        await self.do_execute(-1)

    async def do_execute(self, which: int) -> None:
        room = await self.room()
        if not room.merges:
            return
        merge = list(room.merges.values())[which % len(room.merges)]
        brought = set(lineage(room, merge.source)) - set(lineage(room, merge.target))
        work = any(room.forks[each].name == "cart" for each in brought if each)
        await self.says(merge_execute(merge.id), self.house.engine.new_id())
        _, shipped = self.lane
        assert shipped or not (work and self.heeded), "Rule 2 was got around"

    async def do_assign(self) -> None:
        number = len(self.events)
        if not self.lane[1] and number < 12:
            task = assigned(f"T{number}", feature="cart", branch="cart", at=number)
            self.events.append(task)

    async def do_accept(self) -> None:
        number, work = len(self.events), folded(*self.events)
        for task in [each.id for each in work.tasks.values() if each.status != "accepted"][:1]:
            self.events.append(line("checkpoint", BOB, task, "cart", evidence="x", at=number))
            self.events.append(line("accept", ANN, task, "cart", at=number + 1))

    async def do_ship(self) -> None:
        self.events.append(line("merge", ANN, feature="cart", at=len(self.events)))

    async def do_switch(self) -> None:
        self.hidden = not self.hidden


@proves("UNI-21", "PACT-5-3")
@pytest.mark.timeout(1200 if LONG else 300)
@settings(max_examples=400 if LONG else 30, deadline=None, derandomize=not LONG)
@given(BEGUN, st.lists(STEPS, max_size=15))
def test_no_sequence_of_binding_forking_and_merging_gets_around_the_second_rule(
    begun: Steps, steps: Steps
) -> None:
    async def play() -> None:
        with TemporaryDirectory() as folder:
            model = Model(Path(folder))
            await model.begin()
            for step in [*begun, *steps]:
                await model.step(*step)

    asyncio.run(play())
