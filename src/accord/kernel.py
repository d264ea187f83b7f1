"""The decision kernel for rooms, brought in by the first batch: it is a tenth of a start."""

from collections.abc import Sequence
from functools import cache

from accord.core.kernel.rulings import Agreement, Judge, Ran, Ruling


@cache
def bench() -> Judge:
    """The kernel itself."""
    from accord.core.docket.bench import Bench

    return Bench()


class Kernel:
    """A judge that costs nothing until somebody asks it."""

    def rule(self, text: str, before: str, day: str) -> Ruling:
        """Decide a batch."""
        return bench().rule(text, before, day)

    def after(self, before: str, ran: Ran, day: str) -> Ruling:
        """Decide once more, because a step was run."""
        return bench().after(before, ran, day)

    def compare(self, snapshots: Sequence[str]) -> tuple[tuple[Agreement, ...], str]:
        """Independent snapshots of one question."""
        return bench().compare(snapshots)
