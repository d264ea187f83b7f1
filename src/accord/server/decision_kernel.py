"""The decision kernel for rooms, imported with the first batch: it takes a tenth of the startup."""

from collections.abc import Sequence
from functools import cache

from accord.core.kernel.decision_port import Agreement, DecisionKernel, Ruling, StepResult


@cache
def session_kernel() -> DecisionKernel:
    from accord.core.docket.session_kernel import SessionKernel

    return SessionKernel()


class LazyDecisionKernel:
    """Imports the kernel at the first call."""

    def decide(self, text: str, before: str, day: str) -> Ruling:
        """Decide a batch."""
        return session_kernel().decide(text, before, day)

    def decide_after_step(self, before: str, ran: StepResult, day: str) -> Ruling:
        """Decide again after a step was run."""
        return session_kernel().decide_after_step(before, ran, day)

    def compare(self, snapshots: Sequence[str]) -> tuple[tuple[Agreement, ...], str]:
        """Compare independent snapshots of one question."""
        return session_kernel().compare(snapshots)
