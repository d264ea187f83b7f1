"""Watch a pact and notify a seat of new inbox items."""

from collections.abc import Callable, Sequence

from accord.core.work.seat_inbox import InboxItem, inbox_of
from accord.core.work.verbs import check_supported
from accord.pact.workspace import Workspace

Notify = Callable[[Sequence[InboxItem]], None]


def watch_inbox(
    workspace: Workspace,
    notify: Notify,
    *,
    interval: float,
    timeout_s: float | None,
    stop_at_first: bool,
) -> bool:
    """Notify of current and new inbox items of the workspace's seat; False on timeout.

    With `stop_at_first`, return after the first notification. The ledger is polled by size and
    time, and read only when these changed.
    """
    notified, waited = frozenset[InboxItem](), 0.0
    workspace.check_exists()
    while True:
        mark = workspace.ledger.mark()
        work = workspace.load().work
        check_supported(work)
        items = list(inbox_of(work, workspace.seat))
        if new_items := [item for item in items if item not in notified]:
            notify(new_items)
            if stop_at_first:
                return True
        # During a branch switch the ledger is missing for a moment; that is not an empty inbox.
        notified = frozenset(items) if work.started else notified
        while workspace.ledger.mark() == mark:
            if timeout_s is not None and waited >= timeout_s:
                return False
            workspace.ports.sleep(interval)
            waited += interval
