"""Random schedules of keystrokes and wakes, with the clock in the test's hands.

The host is a model of an input line: keys and pastes arrive after a random delay, and so does what
it draws. Dialogs open at any time, links stall and are killed. A line that was sent must be a line
of the person's, whole and in order, or the prompt of a wake, whole and alone, and no dialog is
answered.
"""

import random
from collections import Counter, deque
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
from accord.supervisor.keyboard import ERASE, PASTE_BEGIN, PASTE_END, Keyboard, Paste, Typing
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
    dialog_until: float = 0.0
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
            elif data[:1] == ERASE:
                self.line, data = self.line[:-1], data[1:]
            else:
                self.line, data = self.line + data[:1], data[1:]

    def view(self, now: float) -> View:
        if now < self.dialog_until:
            return View(HostState.BLOCKED)
        state = HostState.WORKING if now < self.works_until else HostState.IDLE
        return View(state, not self.line, self.line.decode("utf-8", "replace"))


class Schedule:
    """One run: a queue of what happens when."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.keyboard, self.deliverer, self.host = Keyboard(), Deliverer(), Host()
        self.to_host: deque[tuple[float, bytes]] = deque()
        self.to_draw: deque[float] = deque()
        self.to_link: deque[tuple[float, View, int]] = deque()
        self.keys_to_link: deque[tuple[float, int, float | None]] = deque()
        self.output = 0
        self.drawn_view = self.host.view(0.0)
        self.typed: list[bytes] = []
        self.outcomes: list[Outcome] = []
        self.pasted: list[tuple[str, float]] = []
        self.broken: list[str] = []
        self.was_drawn = (False, False)
        # Some hosts draw so late that the person's keys would be kept back for too long.
        self.draws_within = self.random.choice((0.0, 0.02, 0.02, 0.5, 4.0))
        self.link_sleeps_until = 0.0
        self.asked: dict[str, Wake] = {}
        self.reached: Counter[str] = Counter()

    def run(self) -> None:
        plan = self.plan()
        does = {"key": self.press, "wake": self.ask, "dialog": self.open_dialog}
        does |= {"sleep": self.let_link_sleep, "kill": self.kill_link}
        while plan or self.is_busy:
            times = [plan[0][0]] if plan else []
            times += [queue[0][0] for queue in (self.to_host, self.keys_to_link) if queue]
            times += [self.to_link[0][0]] if self.to_link else []
            times += [self.to_draw[0]] if self.to_draw else []
            times += [max(at, self.link_sleeps_until)] if (at := self.deliverer.next_at) else []
            times += [self.now + 0.1] if self.keyboard.is_holding else []
            self.now = max(self.now + 0.001, min(times, default=self.now))
            self.forward()
            while plan and plan[0][0] <= self.now:
                _, what, value = plan.pop(0)
                does[what](value)
            if self.now >= self.link_sleeps_until:
                self.act(self.deliverer.tick(self.now))
            released = self.keyboard.tick(self.now)
            self.reached["held too long"] += bool(released)
            self.send(released)
            assert self.now < 10_000, "it does not end"

    @property
    def is_busy(self) -> bool:
        queues = (self.to_host, self.to_draw, self.to_link, self.keys_to_link)
        return any(queues) or self.deliverer.next_at is not None or self.keyboard.is_holding

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
            what = random.choice(("", "dialog", "dialog", "sleep", "kill", "type"))
            # A dialog at the worst moment: between the paste and the Enter.
            soon = wake_at + random.uniform(*((0.15, 0.35) if what == "dialog" else (0, 0.6)))
            if what == "type":
                plan += [(soon, "key", b"x"), (soon + random.uniform(0, 4), "key", b"\r")]
            elif what:
                plan.append((soon, what, b""))
        return sorted(plan, key=lambda each: each[0])

    def ask(self, id: bytes) -> None:
        wake = Wake(id.decode(), f"{MARK} {id.decode()}", QUIET_S, MARK)
        self.asked[wake.id] = wake
        self.act(self.deliverer.ask(wake, self.now))

    def open_dialog(self, _: bytes) -> None:
        """A question of the host, which goes away by itself."""
        self.host.dialog_until = self.now + self.random.choice((0.3, 1.0, 5.0))
        self.draw_at(self.now)

    def let_link_sleep(self, _: bytes) -> None:
        """It gets nothing and does nothing, on a machine that is busy."""
        self.link_sleeps_until = self.now + self.random.choice((0.5, 5.0))

    def kill_link(self, _: bytes) -> None:
        """Another one starts, sees what there is, and is asked for what has no outcome."""
        self.deliverer = Deliverer()
        self.deliverer.know_sent(self.keyboard.sent)
        self.to_link.clear()
        self.keys_to_link.clear()
        self.link_sleeps_until = 0.0
        erased = self.keyboard.lose_link()
        self.reached["killed while typing"] += bool(erased)
        self.send(erased)
        keys = (self.now, self.keyboard.keystrokes, self.keyboard.typed_at)
        self.keys_to_link.append(keys)
        self.to_link.append((self.now, self.drawn_view, self.output))
        open_wakes = self.asked.keys() - {each.wake for each in self.outcomes}
        self.forward()
        for wake in sorted(open_wakes):
            self.ask(wake.encode())

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
            late = self.to_draw[-1] if self.to_draw else self.now
            self.draw_at(max(late, self.now + self.random.uniform(0, self.draws_within)))
        while self.to_draw and self.to_draw[0] <= self.now:
            self.to_draw.popleft()
            self.draw()
        shown = (self.now < self.host.works_until, self.now < self.host.dialog_until)
        if self.was_drawn != shown:
            self.draw()
        if self.now < self.link_sleeps_until:
            return
        while self.keys_to_link and self.keys_to_link[0][0] <= self.now:
            _, count, at = self.keys_to_link.popleft()
            self.act(self.deliverer.hear(count, at, self.now))
        while self.to_link and self.to_link[0][0] <= self.now:
            _, view, output = self.to_link.popleft()
            self.act(self.deliverer.see(view, output, self.now))

    def draw_at(self, at: float) -> None:
        self.to_draw.append(at)
        self.to_draw = deque(sorted(self.to_draw))

    def draw(self) -> None:
        self.output += 1
        self.was_drawn = (self.now < self.host.works_until, self.now < self.host.dialog_until)
        late = self.to_link[-1][0] if self.to_link else 0
        at = max(self.now + self.random.uniform(0, 0.05), late)
        self.drawn_view = self.host.view(self.now)
        self.to_link.append((at, self.drawn_view, self.output))

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
                what, data = self.keyboard.enter(action.wake, action.seen_output, self.output)
                self.reached[f"Enter is {what}"] += 1
                if what is Typing.ENTERED and self.was_drawn[1]:
                    self.broken.append(f"{action.wake} answers a dialog")
                self.send(data)
                self.act(self.deliverer.typed(action.wake, what, self.now))
            elif isinstance(action, Abandon):
                self.reached["abandoned"] += 1
                self.send(self.keyboard.abandon(action.wake))

    def check_moment(self, wake: str) -> None:
        self.pasted.append((wake, self.now))
        typed_at = self.keyboard.typed_at
        if typed_at is not None and self.now - typed_at < QUIET_S:
            self.broken.append(f"{wake} inside the quiet window")
        reached = Host(self.host.line)  # by the bytes that are on their way
        for _, data in self.to_host:
            reached.take(data, self.now, random.Random(0))
        if reached.line:
            self.broken.append(f"{wake} into {reached.line!r}")


@proves("MSG-3.8-6", "OPEN-127")
@pytest.mark.parametrize("block", range(10))
def test_no_schedule_disturbs_a_person_or_loses_a_key(block: int) -> None:
    delivered, reached = 0, Counter[str]()
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
        delivered += len(wakes)
        reached += run.reached
    assert delivered > 30, "the schedules leave room for wakes"
    ways = {"abandoned", "held too long", "killed while typing", "Enter is outdated"}
    assert ways | {"Enter is entered"} <= reached.keys(), reached
