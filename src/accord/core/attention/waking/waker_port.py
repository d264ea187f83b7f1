"""The port through which a decided wake reaches a runtime: by command, or by a terminal."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from accord.core.attention.runtimes import HumanInput, Runtime
from accord.core.attention.waking.outcomes import WakeAction, WakeCause, WakeResult


class WakeTarget(NamedTuple):
    """Whom a wake is for."""

    workspace: str
    agent: str


class WakeJob(NamedTuple):
    """One wake: the ways to try in order, and what the runtime reads.

    `fresh_prompt` is for a new session, which knows nothing of the thread.
    """

    target: WakeTarget
    actions: tuple[WakeAction, ...]
    prompt: str
    fresh_prompt: str
    runtime: Runtime | None = None


class WakeReport(NamedTuple):
    """What came of a job."""

    action: WakeAction
    result: WakeResult
    cause: WakeCause
    detail: str = ""
    command: str = ""


# Called for each way that is tried, with the command as people read it.
OnAttempt = Callable[[WakeAction, str], None]


class Waker(Protocol):
    """Wakes runtimes of this machine, as far as an operator has set that up."""

    def resumable(self, target: WakeTarget, runtimes: Iterable[Runtime]) -> frozenset[str]:
        """Those of these runtimes that can be resumed here."""
        ...

    def can_spawn(self, target: WakeTarget) -> bool:
        """Whether a new session of this agent can be begun here."""
        ...

    async def wake(self, job: WakeJob, on_attempt: OnAttempt) -> WakeReport:
        """Do it; returns when the woken program has ended."""
        ...


class Terminals(Protocol):
    """The terminals of managed runtimes whose supervisors are connected."""

    async def human_input(self, target: WakeTarget) -> Mapping[str, HumanInput]:
        """By runtime, what its supervisor sees at this moment."""
        ...

    async def deliver(
        self, target: WakeTarget, session_id: str, wake: str, prompt: str
    ) -> WakeReport:
        """Have the supervisor paste the prompt, unless a person's input is there by now.

        The same wake is pasted once, however often it is delivered.
        """
        ...
