"""Deciding returns a value and touches only its stream; the engine performs what is returned."""

import ast
from pathlib import Path

import pytest

from accord.core import room as rooms
from accord.core.dialects import stored_records
from accord.core.kernel.actor import Actor
from accord.core.kernel.context import Inactivity
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.refusal import Reason
from accord.core.kernel.role_permissions import Role
from accord.core.kernel.timestamps import to_iso
from accord.engine.committer import Committed, Committer, Lost, Overtaken, WriteBackpressure
from accord.engine.counters import EngineCounters
from accord.engine.decider import Decider, Decision, RecordsNeeded, SenderReturned
from accord.engine.streams.stream import Outcome, Stream, Submission
from tests.helpers.engine.harness import FaultyLog, ManualClock
from tests.helpers.room.scenario import (
    ALICE,
    CLAUDE,
    DEFAULT_POLICY,
    ROOM,
    STREAM,
    T0,
    prompt_submit,
    session_create,
    session_join,
)

ENGINE = Path(__file__).parents[2] / "src/accord/engine"


class Bench:
    """A decider and a committer without an engine."""

    def __init__(self) -> None:
        self.log = FaultyLog()
        self.stream = Stream(STREAM, rooms.CONTEXT, window=10)
        self.decider = Decider(stored_records, ManualClock(), DEFAULT_POLICY)
        self.committer = Committer(
            self.log, WriteBackpressure(DEFAULT_POLICY.limits), EngineCounters()
        )

    def decide(self, who: Actor, body: Body, id: str, ref: str | None = None) -> Decision:
        message = Message(id, to_iso(T0), ROOM, who.principal, body, ref)
        return self.decider.decide(self.stream, Submission(message, who))

    def post(self, who: Actor, body: Body, id: str) -> Outcome:
        outcome = self.decide(who, body, id)
        assert isinstance(outcome, Outcome)
        assert self.committer.post(self.stream, outcome)
        return outcome


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_outcome_has_the_records_that_wait_for_the_commit(bench: Bench) -> None:
    outcome = bench.decide(ALICE, session_create(), "m")

    assert isinstance(outcome, Outcome)
    assert list(outcome.records) == bench.stream.pending_records != []
    assert (bench.stream.base.version, bench.stream.outbox) == (0, [])
    assert not bench.log.calls


def test_unknown_record_is_asked_for_and_changes_nothing(bench: Bench) -> None:
    bench.decide(ALICE, session_create(), "m")
    before = bench.stream.tip.version

    decision = bench.decide(ALICE, prompt_submit(), "p", ref="old")

    assert decision == RecordsNeeded(("old",))
    assert bench.stream.tip.version == before
    assert "p" not in bench.stream.index


def test_return_of_an_inactive_sender_comes_before_their_message(bench: Bench) -> None:
    bench.decide(ALICE, session_create(), "m")
    bench.decide(CLAUDE, session_join(CLAUDE, Role.DRIVER), "j")
    before = bench.stream.tip.version
    bench.stream.inactive["alice"] = Inactivity.IDLE

    assert bench.decide(ALICE, prompt_submit(), "p") == SenderReturned("alice")
    assert bench.stream.tip.version == before

    bench.stream.inactive.clear()
    assert isinstance(bench.decide(ALICE, prompt_submit(), "p"), Outcome)


def test_refused_message_of_an_inactive_sender_is_refused_at_once(bench: Bench) -> None:
    bench.stream.inactive["claude"] = Inactivity.IDLE

    outcome = bench.decide(CLAUDE, prompt_submit(), "p")

    assert isinstance(outcome, Outcome)
    assert outcome.refusal is not None
    assert outcome.refusal.reason is Reason.NO_ROOM


async def test_commit_returns_the_outcomes_that_are_durable_now(bench: Bench) -> None:
    outcome = bench.post(ALICE, session_create(), "m")

    result = await bench.committer.commit_outbox(bench.stream)

    assert isinstance(result, Committed)
    assert result.outcomes == [outcome]
    assert result.before.version == 0
    assert bench.stream.base.version == len(result.records) == len(await bench.log.read(STREAM))


async def test_commit_returns_that_another_process_was_first(bench: Bench) -> None:
    other = Bench()
    other.log = bench.log
    other.committer = Committer(
        bench.log, WriteBackpressure(DEFAULT_POLICY.limits), EngineCounters()
    )
    other.post(ALICE, session_create(), "other")
    assert isinstance(await other.committer.commit_outbox(other.stream), Committed)
    bench.post(ALICE, session_create(), "m")

    result = await bench.committer.commit_outbox(bench.stream)

    assert isinstance(result, Overtaken)
    assert bench.stream.base.version == 0
    assert [each.message.id for each in bench.stream.roll_back()] == ["m"]


async def test_commit_returns_refusals_when_the_store_fails(bench: Bench) -> None:
    bench.log.failing.add("append")
    bench.post(ALICE, session_create(), "m")

    result = await bench.committer.commit_outbox(bench.stream)

    assert isinstance(result, Lost)
    (lost,) = result.outcomes
    assert lost.refusal is not None
    assert lost.refusal.reason is Reason.UNAVAILABLE
    assert bench.stream.tip.version == 0


def test_no_part_of_the_engine_imports_its_owner() -> None:
    imported = {
        (file.name, node.module)
        for file in ENGINE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
    }

    assert ("decider.py", "accord.engine.ports") in imported
    assert [name for name, module in imported if module == "accord.engine.engine"] == []
