"""Refusals in the log: so many a second and no more, without what was said."""

import logging
from collections.abc import Callable
from time import monotonic

from accord.core.dialects.codes import CODES
from accord.core.kernel.log import Body
from accord.core.kernel.refusal import Refused

log = logging.getLogger("accord.refusals")

A_SECOND = 20.0
BURST = 100.0


class Reports:
    """Whoever makes mistakes all day fills no disk with them."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self.left = BURST
        self.seen = clock()
        self.silent = 0

    def tell(self, no: Refused, seat: str, session: str, kind: type[Body] | None) -> None:
        """One line, or one more that is only counted."""
        if not log.isEnabledFor(logging.INFO):
            return
        now = self.clock()
        self.left = min(BURST, self.left + (now - self.seen) * A_SECOND)
        self.seen = now
        if self.left < 1:
            self.silent += 1
            return
        self.left -= 1
        if self.silent:
            log.info("refusal.unreported", extra={"count": self.silent})
            self.silent = 0
        about = {"session": session, "principal": seat, "type": kind.type if kind else ""}
        log.info("message.refused", extra=about | {"code": CODES[no.why].pvp, "reason": no.why})
