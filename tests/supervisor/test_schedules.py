"""Random schedules of keystrokes and wakes, with the clock in the test's hands.

The host is a model of an input line: keys and pastes arrive after a random delay, and so does what
it draws. A line that was sent must be a line of the person's, whole and in order, or the prompt
of a wake, whole and alone.
"""

import random
from collections import deque
from dataclasses import dataclass, field

import pytest

from accord.supervisor.delivery import (
    Abandon,
    Action,
    Delivered,
    Deliverer,
    Outcome,
    SendEnter,
    Wake,
)
from accord.supervisor.keyboard import PASTE_BEGIN, PASTE_END, Keyboard, Paste, Typing
from accord.supervisor.prompt_line import HostState, View
from tests.spec import proves

MARK = "[wake]"
QUIET_S = 20.0
SCHEDULES = 1000


@dataclass
class Host:
    """What a host does with the bytes that it gets."""

    line: bytes = b""
    sent: list[bytes] = field(default_factory=list)
    works_until: float = 0.0
    drawn: int = 0
    in_paste: bool = False

    def take(self, data: bytes, now: float, random: random.Random) -> None:
        while data:
            if data.startswith(PASTE_BEGIN):
                self.in_paste, data = True, data[len(PASTE_BEGIN) :]
            elif data.startswith(PASTE_END):
                self.in_paste, data = False, data[len(PASTE_END) :]
            elif data[:1] == b"\r" and not self.in_paste:
                self.sent.append(self.line)
                self.line, data = b"", data[1:]
                self.works_until = now + random.choice((0.0, 0.5, 8.0))
            else:
                self.line, data = self.line + data[:1], data[1:]
        self.drawn += 1

    def view(self, now: float) -> View:
        state = HostState.WORKING if now < self.works_until else HostState.IDLE
        return View(state, not self.line, self.line.decode("utf-8", "replace"))


class Schedule:
    """One run: a queue of what happens when."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.keyboard, self.deliverer, self.host = Keyboard(), Deliverer(), Host()
        self.to_host: deque[tuple[float, bytes]] = deque()
        self.to_link: deque[tuple[float, View, int]] = deque()
        self.keys_to_link: deque[tuple[float, int, float | None]] = deque()
        self.output = 0
        self.typed: list[bytes] = []
        self.outcomes: list[Outcome] = []
        self.pasted: list[tuple[str, float]] = []
        self.broken: list[str] = []
        self.was_working = False

    def run(self) -> None:
        plan = self.plan()
        while plan or self.to_host or self.to_link or self.keys_to_link or self.deliverer.next_at:
            times = [plan[0][0]] if plan else []
            queues = (self.to_host, self.to_link, self.keys_to_link)
            times += [queue[0][0] for queue in queues if queue]
            times += [at] if (at := self.deliverer.next_at) is not None else []
            self.now = max(self.now + 0.001, min(times, default=self.now))
            self.forward()
            while plan and plan[0][0] <= self.now:
                _, what, value = plan.pop(0)
                if what == "key":
                    self.press(value)
                else:
                    self.ask(value.decode())
            self.act(self.deliverer.tick(self.now))
            self.send(self.keyboard.tick(self.now))
            assert self.now < 10_000, "it does not end"

    def plan(self) -> list[tuple[float, str, bytes]]:
        """Bursts of typing with lines that may stay unfinished for long, and wakes at any time."""
        random, at = self.random, 0.0
        plan: list[tuple[float, str, bytes]] = []
        for number in range(random.randrange(1, 6)):
            at += random.choice((0.5, 5.0, 19.0, 21.0, 40.0))
            for key in f"line {number} é".encode():
                plan.append((at, "key", bytes([key])))
                at += random.choice((0.0, 0.01, 0.3, 25.0 if random.random() < 0.02 else 0.1))
            at += random.choice((0.0, 0.2, 30.0))
            plan.append((at, "key", b"\r"))
        for number in range(random.randrange(1, 12)):
            wake_at = random.uniform(0, at + 60)
            plan.append((wake_at, "wake", f"w{number}".encode()))
            plan.append((wake_at + random.choice((0.0, 0.05, 0.2)), "key", b"\x1b[I"))
        return sorted(plan, key=lambda each: each[0])

    def ask(self, id: str) -> None:
        wake = Wake(id, f"{MARK} {id}", QUIET_S, MARK)
        self.act(self.deliverer.ask(wake, self.now))

    def press(self, key: bytes) -> None:
        if key != b"\x1b[I":
            self.typed.append(key)
        before = self.keyboard.keystrokes
        self.send(self.keyboard.press(key, self.now))
        if self.keyboard.keystrokes != before:
            told = (self.now + self.random.uniform(0, 0.05), before + 1, self.keyboard.typed_at)
            self.keys_to_link.append(told)

    def send(self, data: bytes) -> None:
        if data.replace(b"\x1b[I", b""):
            at = max(
                self.now + self.random.uniform(0, 0.03), self.to_host[-1][0] if self.to_host else 0
            )
            self.to_host.append((at, data.replace(b"\x1b[I", b"")))

    def forward(self) -> None:
        """What has arrived by now: at the host, on the screen, at the link."""
        while self.to_host and self.to_host[0][0] <= self.now:
            self.host.take(self.to_host.popleft()[1], self.now, self.random)
            self.draw()
        if self.was_working != (self.now < self.host.works_until):
            self.was_working = not self.was_working
            self.draw()
        while self.keys_to_link and self.keys_to_link[0][0] <= self.now:
            _, count, at = self.keys_to_link.popleft()
            self.act(self.deliverer.hear(count, at, self.now))
        while self.to_link and self.to_link[0][0] <= self.now:
            _, view, output = self.to_link.popleft()
            self.act(self.deliverer.see(view, output, self.now))

    def draw(self) -> None:
        self.output += 1
        late = self.to_link[-1][0] if self.to_link else 0
        at = max(self.now + self.random.uniform(0, 0.05), late)
        self.to_link.append((at, self.host.view(self.now), self.output))

    def act(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Outcome):
                self.outcomes.append(action)
            elif isinstance(action, Paste):
                what, data = self.keyboard.paste(action, self.now, self.output)
                if what is Typing.PASTED:
                    self.check_moment(action.wake)
                self.send(data)
                self.act(self.deliverer.typed(action.wake, what, self.now))
            elif isinstance(action, SendEnter):
                what, data = self.keyboard.enter(action.wake)
                self.send(data)
                self.act(self.deliverer.typed(action.wake, what, self.now))
            elif isinstance(action, Abandon):
                self.send(self.keyboard.abandon(action.wake))

    def check_moment(self, wake: str) -> None:
        self.pasted.append((wake, self.now))
        typed_at = self.keyboard.typed_at
        if typed_at is not None and self.now - typed_at < QUIET_S:
            self.broken.append(f"{wake} inside the quiet window")
        line = self.host.line + b"".join(data for _, data in self.to_host)
        if line:
            self.broken.append(f"{wake} into {line!r}")


@proves("MSG-3.8-6", "OPEN-127")
@pytest.mark.parametrize("block", range(10))
def test_no_schedule_disturbs_a_person_or_loses_a_key(block: int) -> None:
    delivered = 0
    for seed in range(block * SCHEDULES // 10, (block + 1) * SCHEDULES // 10):
        run = Schedule(seed)
        run.run()
        assert not run.broken, (seed, run.broken)
        wakes = [line for line in run.host.sent if line.startswith(MARK.encode())]
        own = [line for line in run.host.sent if not line.startswith(MARK.encode())]
        # No key lost, reordered or merged: the person's lines are what was typed, in order.
        assert b"".join(line + b"\r" for line in own) + run.host.line == b"".join(run.typed), seed
        done = {each.wake for each in run.outcomes if each.result is Delivered.DELIVERED}
        assert sorted(wakes) == sorted(f"{MARK} {wake}".encode() for wake in done), seed
        assert len(run.pasted) == len({wake for wake, _ in run.pasted}), seed
        delivered += len(wakes)
    assert delivered > 50, "the schedules leave room for wakes"
