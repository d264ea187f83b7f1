"""Tell the next actor what waits for it, as soon as it does."""

from collections.abc import Callable, Sequence

from accord.core.work.verbs import understood
from accord.core.work.waiting import Waiting, waiting
from accord.pact.desk import Desk

Tell = Callable[[Sequence[Waiting]], None]


def watch(desk: Desk, tell: Tell, *, interval: float, patience: float | None, first: bool) -> bool:
    """Tell what waits for the desk's seat, and whatever comes; False when time was up.

    With `first` it ends as soon as something was told. The file's size and time are looked at,
    and it is read when they changed.
    """
    told, waited = frozenset[Waiting](), 0.0
    desk.exists()
    while True:
        mark = desk.ledger.mark()
        work = desk.load().work
        understood(work)
        now = list(waiting(work, desk.seat))
        if fresh := [each for each in now if each not in told]:
            tell(fresh)
            if first:
                return True
        # While git puts another branch's ledger in its place, there is none for a moment.
        told = frozenset(now) if work.started else told
        while desk.ledger.mark() == mark:
            if patience is not None and waited >= patience:
                return False
            desk.world.sleep(interval)
            waited += interval
