"""Types a wake's prompt into a host: looks, pastes, looks, sends, looks again.

A state machine of values: what happened goes in with the time, and what to do comes out. It never
waits for a person: if one is typing or the host works, it says so at once, and the one who asked
asks again later.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from accord.supervisor.keyboard import HOLD_S, Paste, Typing
from accord.supervisor.prompt_line import NOTHING_SEEN, HostState, View

# The host draws the paste; it is sent when it stands there, and not before.
SETTLE_S = 0.15
SHOWN_S = HOLD_S - 0.5
TAKEN_S = 8.0
# Output that came between looking and typing: look again, so often.
MAX_LOOKS = 40
LOOK_AGAIN_S = 0.1
MAX_REMEMBERED = 1000
# How hosts show a paste that is long.
PASTE_PLACEHOLDERS = ("[Pasted", "[pasted")


class Delivered(StrEnum):
    """What came of a wake."""

    DELIVERED = "delivered"
    HUMAN_INPUT = "human_input_busy"
    WORKING = "host_working"
    FAILED = "failed"


class Outcome(NamedTuple):
    """For the one who asked."""

    wake: str
    result: Delivered
    detail: str = ""


class SendEnter(NamedTuple):
    """Send what was pasted, if there is no output but what was seen."""

    wake: str
    seen_output: int


class Abandon(NamedTuple):
    """Take away what was pasted, and let the person type."""

    wake: str


Action = Paste | SendEnter | Abandon | Outcome


class Wake(NamedTuple):
    """A prompt to type, with the first words by which it is recognised on the screen."""

    id: str
    prompt: str
    quiet_s: float
    mark: str


class Phase(StrEnum):
    """How far the present wake is."""

    LOOKING = "looking"
    PASTING = "pasting"
    SHOWING = "showing"
    SENDING = "sending"
    SENT = "sent"


class Deliverer:
    """One terminal; at most one wake at a time, the others are refused as busy."""

    def __init__(self) -> None:
        self.view = NOTHING_SEEN
        self.output = 0
        self.keystrokes = 0
        self.typed_at: float | None = None
        self._wake: Wake | None = None
        self._phase = Phase.LOOKING
        self._looks = 0
        self._next_at = 0.0
        self._until = 0.0
        self._changed_at = 0.0
        self._outcomes: dict[str, Outcome] = {}

    # What happened

    def know_sent(self, wakes: Iterable[str]) -> None:
        """What was sent before this one began."""
        self._outcomes.update((wake, Outcome(wake, Delivered.DELIVERED)) for wake in wakes)

    def see(self, view: View, output: int, now: float) -> list[Action]:
        """The screen after so many bytes of output."""
        self.view, self.output, self._changed_at = view, output, now
        return self._go_on(now)

    def hear(self, keystrokes: int, typed_at: float | None, now: float) -> list[Action]:
        """A person typed."""
        self.keystrokes, self.typed_at = keystrokes, typed_at
        return self._go_on(now)

    def ask(self, wake: Wake, now: float) -> list[Action]:
        """Type this, if it can be done now."""
        if wake.id in self._outcomes:
            return [self._outcomes[wake.id]]
        if self._wake is not None:
            again = self._wake.id == wake.id
            return [] if again else [Outcome(wake.id, Delivered.WORKING, "another wake is typed")]
        self._wake, self._phase, self._looks, self._next_at = wake, Phase.LOOKING, 0, now
        return self._go_on(now)

    def typed(self, wake: str, what: Typing, now: float) -> list[Action]:
        """What the keyboard said to a paste or an Enter."""
        if self._wake is None or self._wake.id != wake:
            return []
        if what is Typing.PASTED and self._phase is Phase.PASTING:
            self._phase, self._until, self._changed_at = Phase.SHOWING, now + SHOWN_S, now
            return self._go_on(now)
        if what is Typing.ENTERED or what is Typing.ALREADY:
            self._phase, self._until = Phase.SENT, now + TAKEN_S
            return self._go_on(now)
        if what is Typing.HUMAN_INPUT:
            return self._end(Delivered.HUMAN_INPUT)
        if what is Typing.OUTDATED and self._phase is Phase.SENDING:
            self._phase, self._changed_at = Phase.SHOWING, now
            return []
        if what is Typing.OUTDATED:
            self._phase, self._next_at = Phase.LOOKING, now + LOOK_AGAIN_S
            return []
        # Nothing of it is left in the line, so it may be tried again.
        self._phase = Phase.LOOKING
        return self._end(Delivered.HUMAN_INPUT, "it was taken away before it was sent")

    def tick(self, now: float) -> list[Action]:
        """Time has passed."""
        return self._go_on(now)

    @property
    def next_at(self) -> float | None:
        """When to call `tick`; None if nothing waits."""
        if self._wake is None:
            return None
        settled = self._changed_at + SETTLE_S
        return {
            Phase.LOOKING: self._next_at,
            Phase.PASTING: self._next_at,
            Phase.SHOWING: min(max(settled, self._next_at), self._until),
            Phase.SENDING: self._until,
            Phase.SENT: self._until,
        }[self._phase]

    # What to do

    def _go_on(self, now: float) -> list[Action]:
        wake = self._wake
        if wake is None:
            return []
        match self._phase:
            case Phase.LOOKING:
                return self._look(wake, now) if now >= self._next_at else []
            case Phase.SHOWING:
                return self._after_paste(wake, now)
            case Phase.SENT:
                return self._after_enter(wake, now)
            case _:
                return []

    def _look(self, wake: Wake, now: float) -> list[Action]:
        if self.typed_at is not None and now - self.typed_at < wake.quiet_s:
            return self._end(Delivered.HUMAN_INPUT)
        if self.view.state is not HostState.IDLE:
            return self._end(Delivered.WORKING, f"the host is {self.view.state}")
        if not self.view.is_empty:
            return self._end(Delivered.HUMAN_INPUT, "its input line is not empty")
        self._looks += 1
        if self._looks > MAX_LOOKS:
            return self._end(Delivered.WORKING, "its screen does not come to rest")
        self._phase = Phase.PASTING
        return [Paste(wake.id, wake.prompt, wake.quiet_s, self.output, self.keystrokes)]

    def _after_paste(self, wake: Wake, now: float) -> list[Action]:
        stands = self._shows(wake) and self.view.state is HostState.IDLE
        if stands and now - self._changed_at >= SETTLE_S:
            self._phase = Phase.SENDING
            return [SendEnter(wake.id, self.output)]
        if self.view.state is HostState.BLOCKED:
            self._phase = Phase.LOOKING  # it may be tried again
            return [Abandon(wake.id), *self._end(Delivered.WORKING, "the host asks something")]
        if now >= self._until:
            why = "its line did not show the prompt, so it was not sent"
            return [Abandon(wake.id), *self._end(Delivered.FAILED, why)]
        return []

    def _shows(self, wake: Wake) -> bool:
        """Whether the paste stands there: the line was empty, so it begins with it."""
        first = (wake.mark, *PASTE_PLACEHOLDERS)
        return not self.view.is_empty and self.view.line.startswith(first)

    def _after_enter(self, wake: Wake, now: float) -> list[Action]:
        # Something else may stand there: what the person typed meanwhile.
        if not self._shows(wake) or self.view.state is HostState.WORKING:
            return self._end(Delivered.DELIVERED)
        if now >= self._until:
            return self._end(Delivered.FAILED, "the host kept the prompt in its line")
        return []

    def _end(self, result: Delivered, detail: str = "") -> list[Action]:
        """Over; remembered if the prompt was typed, so that it is typed once."""
        if self._wake is None:
            return []
        outcome = Outcome(self._wake.id, result, detail)
        if self._phase in {Phase.SHOWING, Phase.SENT}:
            self._outcomes[outcome.wake] = outcome
            if len(self._outcomes) > MAX_REMEMBERED:
                del self._outcomes[next(iter(self._outcomes))]
        self._wake, self._phase = None, Phase.LOOKING
        return [outcome]
