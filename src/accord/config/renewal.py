"""A renewed certificate: noticed while the server runs, and shown from the next handshake on."""

import asyncio
import contextlib
import logging
import ssl
from pathlib import Path

from accord.config.certificate import prepared
from accord.core.kernel.refusal import Refused

log = logging.getLogger("accord.tls")

EVERY_S = 1.0

# Whether a file is another one than before: also where a link was turned, or who may read it.
Stamp = tuple[int, ...] | None


class Renewal:
    """The certificate in use, and the two files that it came from.

    A pair that cannot be used changes nothing: the one in use stays, and the log says why. It is
    tried again as long as it is there, since a clock, or its other half, may be all that it lacks.
    """

    def __init__(self, cert: Path, key: Path) -> None:
        self.files = (cert, key)
        self.used = self.seen = self._stamps()
        self.pair = prepared(cert, key)
        self.told = ""
        self.asked = asyncio.Event()

    def shown(self) -> ssl.SSLContext:
        """What the next handshake is made with."""
        return self.pair.context

    @property
    def ends(self) -> float:
        """Until when that is good, in seconds since 1970."""
        return self.pair.ends.timestamp()

    async def run(self) -> None:
        """Look at the files now and then, and when it is asked for; for ever."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.asked.wait(), EVERY_S)
            at_once = self.asked.is_set()
            self.asked.clear()
            await self.look(at_once=at_once)

    async def look(self, *, at_once: bool = False) -> None:
        """Use what is new, once it has stayed the same for a while or somebody says so."""
        await asyncio.to_thread(self._look, at_once=at_once)  # a disk may take its time

    def _look(self, *, at_once: bool) -> None:
        found = self._stamps()
        settled = found == self.seen or at_once  # two files are never written at the same time
        self.seen = found
        if found != self.used and settled:
            self._use(found)

    def _use(self, found: tuple[Stamp, ...]) -> None:
        try:
            self.pair = prepared(*self.files)
        except (Refused, OSError) as no:
            self._complain(no.detail if isinstance(no, Refused) else str(no.strerror))
        else:
            self.used, self.told = found, ""
            log.info("tls.renewed")

    def _complain(self, why: str) -> None:
        if why != self.told:
            log.error("tls.refused", extra={"detail": f"{why}; the one in use stays"})
        self.told = why

    def _stamps(self) -> tuple[Stamp, ...]:
        return tuple(stamp(file) for file in self.files)


def stamp(file: Path) -> Stamp:
    """What tells this file from the one that was there before; nothing where there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
