"""Reports once that the server is unreachable, and once that it is back."""

import sys

from accord.show.text import one_line

RETRY_NOTE = "retrying until it answers; Ctrl-C stops"


class ConnectionNotice:
    """Prints on standard error when the connection is lost or restored."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._lost = False

    def lost(self, why: str = "") -> None:
        """Report the loss, with the server's own reason if it gave one."""
        if not self._lost:
            problem = (
                f"{self.url} says: {one_line(why)}" if why else f"{self.url} cannot be reached"
            )
            print(f"accord: {problem}; {RETRY_NOTE}", file=sys.stderr, flush=True)
        self._lost = True

    def back(self) -> None:
        """Report that the server answers again."""
        if self._lost:
            print(f"accord: {self.url} answers again", file=sys.stderr, flush=True)
        self._lost = False
