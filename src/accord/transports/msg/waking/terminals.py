"""The terminals of supervised runtimes: each supervisor asks for its wakes, and waits for them.

A supervisor reports what it sees with every request, so a request that waits is also its presence.
A wake is handed out again until it is reported as done; the supervisor types the same wake once.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from accord.api import threads as api
from accord.core.attention.runtimes import HumanInput
from accord.core.attention.waking.outcomes import WakeAction, WakeCause, WakeResult
from accord.core.attention.waking.wake_limits import SECOND_MS, WakePolicy
from accord.core.attention.waking.waker_port import WakeReport, WakeTarget
from accord.core.kernel.messages import Instant
from accord.core.kernel.refusal import Reason, Refused

# A supervisor that has asked for nothing for so long is not there.
CONNECTED_MS = 40 * SECOND_MS
# How long a report of one that has ended may be on its way.
STRAGGLES_MS = 10 * SECOND_MS
# How long a supervisor may take to type a prompt and look, once it has it.
TYPING_S = 60.0
MAX_TERMINALS = 10_000
MAX_WAITING = 4

OUTCOMES: Mapping[str, tuple[WakeResult, WakeCause]] = {
    "delivered": (WakeResult.DELIVERED, WakeCause.UNREAD),
    "human_input_busy": (WakeResult.DEFERRED, WakeCause.HUMAN_INPUT),
    "host_working": (WakeResult.DEFERRED, WakeCause.AWAKE),
    "failed": (WakeResult.FAILED, WakeCause.NO_FALLBACK),
}


class TerminalKey(NamedTuple):
    """One supervised runtime."""

    target: WakeTarget
    session_id: str


class Terminal:
    """What is known of one, and what waits for it."""

    def __init__(self) -> None:
        self.instance = ""
        self.human = HumanInput()
        self.asked_at: Instant = 0
        self.waiting = 0  # requests that wait now
        self.wakes: dict[str, api.HandedWake] = {}
        self.handed: set[str] = set()
        self.done: dict[str, asyncio.Future[WakeReport]] = {}
        self.changed = asyncio.Event()


class SupervisedTerminals:
    """Implements the port `Terminals`."""

    def __init__(self, now: Callable[[], Instant]) -> None:
        self._now = now
        self._terminals: dict[TerminalKey, Terminal] = {}
        self._ended_at: dict[str, Instant] = {}  # by instance
        self._is_stopped = False

    async def human_input(self, target: WakeTarget) -> Mapping[str, HumanInput]:
        """Of the terminals whose supervisor is connected."""
        return {
            key.session_id: terminal.human
            for key, terminal in self._terminals.items()
            if key.target == target and self._is_connected(terminal)
        }

    async def deliver(
        self, target: WakeTarget, session_id: str, wake: str, prompt: str
    ) -> WakeReport:
        """Hand the prompt to the supervisor, and wait for what comes of it."""
        key = TerminalKey(target, session_id)
        terminal = self._terminals.get(key)
        if terminal is None:
            return _failed("Its supervisor is not connected")
        quiet_s = WakePolicy().quiet_ms / SECOND_MS
        terminal.wakes[wake] = api.HandedWake(wake_id=wake, prompt=prompt, quiet_seconds=quiet_s)
        done = terminal.done.setdefault(wake, asyncio.get_running_loop().create_future())
        terminal.changed.set()
        try:
            return await self._outcome(terminal, wake, done)
        finally:
            terminal.wakes.pop(wake, None)
            terminal.handed.discard(wake)
            terminal.done.pop(wake, None)

    async def _outcome(
        self, terminal: Terminal, wake: str, done: "asyncio.Future[WakeReport]"
    ) -> WakeReport:
        """A prompt that was not handed out is taken back; one that was may have been typed."""
        while True:
            await asyncio.wait({done}, timeout=TYPING_S)
            if done.done():
                return done.result()
            if wake not in terminal.handed:
                return _failed("Its supervisor did not take the prompt")
            if not self._is_connected(terminal):
                return WakeReport(
                    WakeAction.TRIGGER_RUNTIME,
                    WakeResult.FAILED,
                    WakeCause.INTERRUPTED,
                    "Its supervisor is gone",
                )

    def ensure_goes_on(self, instance: str) -> None:
        """Refuse a report that was overtaken by the last one: it would hold the runtime."""
        if self._now() - self._ended_at.get(instance, -STRAGGLES_MS) < STRAGGLES_MS:
            raise Refused(Reason.WRONG_STATE, "This supervisor has said that its host has ended")

    def note_end(self, key: TerminalKey, instance: str) -> None:
        """A supervisor says that its host has ended."""
        now = self._now()
        recent = {each: at for each, at in self._ended_at.items() if now - at < STRAGGLES_MS}
        self._ended_at = {**recent, instance: now}
        self.forget(key)

    def note(self, key: TerminalKey, request: api.TakeWakes, human: HumanInput) -> None:
        """Take in what a supervisor reports; raises Refused if another one has this runtime."""
        terminal = self._terminal(key)
        if terminal.instance != request.instance_id and self._is_connected(terminal):
            detail = (
                "Another supervisor has this runtime; give each its own token, or its own session"
            )
            raise Refused(Reason.WRONG_STATE, detail)
        terminal.instance = request.instance_id
        terminal.human, terminal.asked_at = human, self._now()
        for report in request.done:
            self._report(terminal, report)

    async def wait(self, key: TerminalKey, seconds: float) -> None:
        """Until there is something to type."""
        terminal = self._terminal(key)
        terminal.changed.clear()
        at_once = terminal.wakes or self._is_stopped or terminal.waiting >= MAX_WAITING
        if at_once or not seconds:
            return
        terminal.waiting += 1
        try:
            async with asyncio.timeout(seconds):
                await terminal.changed.wait()
        except TimeoutError:
            return
        finally:
            terminal.waiting -= 1
            terminal.asked_at = self._now()

    def handed(self, key: TerminalKey) -> tuple[api.HandedWake, ...]:
        """What there is to type now; the supervisor has it from here on."""
        terminal = self._terminal(key)
        terminal.handed.update(terminal.wakes)
        return tuple(terminal.wakes.values())

    def is_known(self, key: TerminalKey, wake: str) -> bool:
        """Whether this process is delivering this wake there."""
        terminal = self._terminals.get(key)
        return terminal is not None and wake in terminal.done

    def forget(self, key: TerminalKey) -> None:
        """The runtime has ended."""
        terminal = self._terminals.pop(key, None)
        if terminal is not None:
            terminal.asked_at = 0
            terminal.changed.set()
            for done in terminal.done.values():
                if not done.done():
                    done.set_result(_failed("The host has ended", WakeCause.INTERRUPTED))

    def stop(self) -> None:
        """Answer everyone who waits."""
        self._is_stopped = True
        for terminal in self._terminals.values():
            terminal.changed.set()

    def _report(self, terminal: Terminal, report: api.WakeDone) -> None:
        terminal.wakes.pop(report.wake_id, None)
        done = terminal.done.get(report.wake_id)
        if done is not None and not done.done():
            result, cause = OUTCOMES[report.result]
            action = WakeAction.TRIGGER_RUNTIME
            done.set_result(WakeReport(action, result, cause, report.detail))

    def _terminal(self, key: TerminalKey) -> Terminal:
        if key not in self._terminals and len(self._terminals) >= MAX_TERMINALS:
            oldest = min(self._terminals, key=lambda one: self._terminals[one].asked_at)
            self.forget(oldest)
        return self._terminals.setdefault(key, Terminal())

    def _is_connected(self, terminal: Terminal) -> bool:
        return bool(terminal.waiting) or self._now() - terminal.asked_at < CONNECTED_MS


def _failed(detail: str, cause: WakeCause = WakeCause.NO_FALLBACK) -> WakeReport:
    return WakeReport(WakeAction.TRIGGER_RUNTIME, WakeResult.FAILED, cause, detail)
