"""What was cut off by a stop or a kill is asked for again while its messages are unread."""

import asyncio
import logging
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest

from accord.core.attention.runtimes import HumanInput
from accord.core.attention.state import Seat, stream_of
from accord.core.attention.waking.outcomes import WakeAction, WakeCause, WakeResult
from accord.core.attention.waking.wake_events import WakeEnded, WakeStarted
from accord.core.attention.waking.waker_port import OnAttempt, WakeJob, WakeReport, WakeTarget
from accord.core.kernel.actor import TIMER_ACTOR, Actor, CredentialRights
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Elapsed, Message
from accord.core.kernel.records import Event
from accord.core.kernel.role_permissions import Capability, Kind
from accord.core.kernel.timestamps import to_iso
from accord.engine.workers import finish_worker
from accord.identity.token_signing import Keyring
from accord.transports.msg.waking.reactions import AttentionWorker
from tests.helpers.threads.local_service import LocalService
from tests.helpers.threads.thread_rules import agent

SEAT = Seat("default", "coder")
SUPERVISE = CredentialRights(capabilities=frozenset({Capability.SUPERVISE}))
SUPERVISOR = Actor("coder", Kind.AGENT, "S2", credential=SUPERVISE)
MINUTE = 60_000
Result = TypeVar("Result")


class Program:
    """A waker whose programs run until the test lets them end."""

    def __init__(self) -> None:
        self.jobs: list[WakeJob] = []
        self.goes_on = asyncio.Event()

    def resumable(self, target: WakeTarget, runtimes: object) -> frozenset[str]:
        return frozenset()

    def can_spawn(self, target: WakeTarget) -> bool:
        return True

    async def wake(self, job: WakeJob, on_attempt: OnAttempt) -> WakeReport:
        self.jobs.append(job)
        on_attempt(job.actions[0], "program")
        await self.goes_on.wait()
        return WakeReport(job.actions[0], WakeResult.FALLBACK_USED, WakeCause.UNREAD)


class BrokenTerminal:
    """An error of ours."""

    async def human_input(self, target: WakeTarget) -> Mapping[str, HumanInput]:
        return {"S2": HumanInput(None, line_empty=True)}

    async def deliver(self, target: WakeTarget, session_id: str, wake: str, prompt: str) -> Any:
        raise TypeError("one argument too many")


class Place:
    """A thread of planner and coder, on a service that is stopped or killed."""

    def __init__(self, folder: Path) -> None:
        self.runner = asyncio.Runner()
        self.local = self.run(self._made(folder))
        self.program = Program()
        self.started()
        made = {"title": "T", "participants": ["planner", "coder"]}
        self.thread = self.run(self.local.call(agent("planner"), "create_thread", **made)).thread_id

    async def _made(self, folder: Path) -> LocalService:
        return LocalService(Keyring.open(folder))

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self.runner.run(work)

    def started(self) -> None:
        self.wakes = self.local.service.wakes
        self.wakes.waker = self.program
        self.worker = AttentionWorker(self.local.service)

    def beat(self) -> None:
        beat = {"runtime": "codex_cli", "status": "idle", "line_empty": True}
        self.run(self.local.call(SUPERVISOR, "heartbeat_session", **beat))

    def address(self) -> None:
        to = {"to": ["coder"]}
        self.run(self.local.post(agent("planner"), self.thread, "look", metadata=to))
        self.react()

    def read(self) -> None:
        page = self.run(self.local.call(agent("coder"), "read_messages", thread_id=self.thread))
        seq = page.messages[-1].seq
        ack = {"thread_id": self.thread, "last_read_seq": seq}
        self.run(self.local.call(agent("coder"), "ack_read", **ack))

    def react(self) -> None:
        async def react() -> None:
            for _ in range(3):
                await finish_worker(self.local.log, self.worker)
                await self.local.engine.wait_until_idle()
                for _ in range(20):
                    await asyncio.sleep(0)

        self.run(react())

    def kill(self) -> None:
        """Nothing is recorded of what was under way."""

        async def kill() -> None:
            running = list(self.wakes._running)
            self.wakes._submit = None  # type: ignore[assignment, method-assign]
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            self.local.start()

        self.run(kill())
        self.started()

    def stop(self) -> None:
        self.run(self.wakes.stop())
        self.run(self.local.engine.wait_until_idle())

    def start_again(self) -> None:
        self.run(self._restarted())
        self.started()

    async def _restarted(self) -> None:
        self.local.start()

    def later(self, minutes: int) -> None:
        self.local.clock.at += minutes * MINUTE
        self.run(self._tick())
        self.react()

    async def _tick(self) -> None:
        stream, now = stream_of(*SEAT), to_iso(self.local.clock.now())
        room = stream.partition("/")[2]
        message = Message(self.local.engine.new_id(), now, room, SYSTEM, Elapsed())
        await self.local.service.submitter.answer_to(stream, message, TIMER_ACTOR)

    def events(self) -> list[Event]:
        rows = self.run(self.local.log.read(stream_of(*SEAT)))
        return [self.local.engine.decode_row(row).record.event for row in rows]

    def ends(self) -> list[tuple[WakeAction, WakeCause]]:
        ended = [each.outcome for each in self.events() if isinstance(each, WakeEnded)]
        return [(each.action, each.cause) for each in ended]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path / "keys")
    yield place
    place.run(place.wakes.stop())
    place.run(place.local.stop())
    place.runner.close()


def test_a_command_that_a_kill_cut_off_is_asked_for_again_when_its_time_is_up(
    place: Place,
) -> None:
    place.address()
    place.kill()
    place.later(29)
    assert len(place.program.jobs) == 1
    place.later(2)
    assert place.ends() == [(WakeAction.SPAWN_SESSION, WakeCause.INTERRUPTED)]
    assert len(place.program.jobs) == 2


def test_what_was_read_before_the_time_is_up_is_not_asked_for_again(place: Place) -> None:
    place.address()
    place.kill()
    place.read()
    place.later(31)
    # The notice that the wake was cut off is unread for nobody who could be woken by it.
    assert len(place.program.jobs) == 1


def test_a_command_that_a_stop_ended_is_asked_for_again_by_the_next_start_alone(
    place: Place,
) -> None:
    place.address()
    place.stop()
    assert place.ends() == [(WakeAction.SPAWN_SESSION, WakeCause.INTERRUPTED)]

    async def react_while_stopping() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await finish_worker(place.local.log, place.worker)

    place.run(react_while_stopping())
    assert len(place.program.jobs) == 1
    place.start_again()
    place.react()
    assert len(place.program.jobs) == 2


def test_a_prompt_that_is_with_a_terminal_is_left_open_by_a_stop(place: Place) -> None:
    place.wakes.terminals = Waiting()
    place.beat()
    place.address()
    (started,) = [each for each in place.events() if isinstance(each, WakeStarted)]
    place.stop()
    assert place.ends() == []
    place.start_again()
    place.wakes.terminals = terminal = Waiting()
    place.beat()
    place.run(place.wakes.take_up(SEAT, "S2"))
    place.react()
    assert terminal.wakes == [started.open.wake]


class Waiting(BrokenTerminal):
    """A supervisor that has the prompt and has not said what came of it."""

    def __init__(self) -> None:
        self.wakes: list[str] = []

    async def deliver(self, target: WakeTarget, session_id: str, wake: str, prompt: str) -> Any:
        self.wakes.append(wake)
        await asyncio.Event().wait()


def test_an_error_of_ours_is_logged_with_its_traceback_and_called_one(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.wakes.terminals = BrokenTerminal()
    place.beat()
    with caplog.at_level(logging.ERROR, "accord.waking"):
        place.address()
    (logged,) = [each for each in caplog.records if each.message == "wake.failed"]
    assert logged.exc_info is not None
    assert isinstance(logged.exc_info[1], TypeError)
    (ended,) = [each for each in place.events() if isinstance(each, WakeEnded)]
    assert ended.outcome.detail.startswith("An error of the server")
