"""Logging refusals, rate-limited and without message content."""

import logging
from collections.abc import Callable
from time import monotonic

from accord.core.dialects.error_codes import ERROR_CODES
from accord.core.kernel.messages import Body
from accord.core.kernel.refusal import Refused

log = logging.getLogger("accord.refusals")

LINES_PER_SECOND = 20.0
LINE_BURST = 100.0


class RefusalLog:
    """Limits log lines, so that a misbehaving client cannot fill the disk."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self.lines_left = LINE_BURST
        self.refilled_at = clock()
        self.suppressed = 0

    def log_refusal(
        self, refusal: Refused, seat: str, session: str, kind: type[Body] | None
    ) -> None:
        """Log the refusal, or only count it when there are too many."""
        if not log.isEnabledFor(logging.INFO):
            return
        now = self.clock()
        self.lines_left = min(
            LINE_BURST, self.lines_left + (now - self.refilled_at) * LINES_PER_SECOND
        )
        self.refilled_at = now
        if self.lines_left < 1:
            self.suppressed += 1
            return
        self.lines_left -= 1
        if self.suppressed:
            log.info("refusal.unreported", extra={"count": self.suppressed})
            self.suppressed = 0
        fields = {"session": session, "principal": seat, "type": kind.type if kind else ""}
        log.info(
            "message.refused",
            extra=fields | {"code": ERROR_CODES[refusal.reason].pvp, "reason": refusal.reason},
        )
