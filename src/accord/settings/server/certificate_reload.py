"""Reloading a renewed certificate while the server runs, for new handshakes."""

import asyncio
import contextlib
import logging
import ssl
from pathlib import Path

from accord.core.kernel.refusal import Refused
from accord.settings.server.certificate import load_certificate

log = logging.getLogger("accord.tls")

POLL_INTERVAL_S = 1.0

# Identifies a file's version, also when a symlink or the permissions changed.
FileStamp = tuple[int, ...] | None


class CertificateReloader:
    """The certificate in use, and its two files.

    Files that cannot be used change nothing: the current certificate stays, and the log says why.
    They are tried again as long as they exist, since the clock or the matching other file may be
    all that is missing.
    """

    def __init__(self, cert: Path, key: Path) -> None:
        self.files = (cert, key)
        self.loaded_stamps = self.seen_stamps = self._file_stamps()
        self.certificate = load_certificate(cert, key)
        self.last_error = ""
        self.reload_requested = asyncio.Event()

    def current_context(self) -> ssl.SSLContext:
        """The context for the next handshake."""
        return self.certificate.context

    @property
    def expires_at(self) -> float:
        """When the certificate expires, in seconds since 1970."""
        return self.certificate.expires_at.timestamp()

    async def run(self) -> None:
        """Check the files periodically and on request, until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.reload_requested.wait(), POLL_INTERVAL_S)
            at_once = self.reload_requested.is_set()
            self.reload_requested.clear()
            await self.check_files(at_once=at_once)

    async def check_files(self, *, at_once: bool = False) -> None:
        """Load changed files once they are stable, or at once on request."""
        await asyncio.to_thread(self._check_files, at_once=at_once)  # the disk may be slow

    def _check_files(self, *, at_once: bool) -> None:
        stamps = self._file_stamps()
        is_stable = (
            stamps == self.seen_stamps or at_once
        )  # the two files are not written at the same time
        self.seen_stamps = stamps
        if stamps != self.loaded_stamps and is_stable:
            self._reload(stamps)

    def _reload(self, stamps: tuple[FileStamp, ...]) -> None:
        try:
            self.certificate = load_certificate(*self.files)
        except (Refused, OSError) as error:
            self._log_error_once(
                error.detail if isinstance(error, Refused) else str(error.strerror)
            )
        else:
            self.loaded_stamps, self.last_error = stamps, ""
            log.info("tls.renewed")

    def _log_error_once(self, reason: str) -> None:
        if reason != self.last_error:
            log.error(
                "tls.refused", extra={"detail": f"{reason}; the current certificate stays in use"}
            )
        self.last_error = reason

    def _file_stamps(self) -> tuple[FileStamp, ...]:
        return tuple(file_stamp(file) for file in self.files)


def file_stamp(file: Path) -> FileStamp:
    """Identifies the file's current version; None if it does not exist."""
    try:
        stamps = file.stat()
    except OSError:
        return None
    return stamps.st_dev, stamps.st_ino, stamps.st_size, stamps.st_mtime_ns, stamps.st_ctime_ns
