"""A server that is away: said once, and once more when it is back."""

import sys

from accord.show.text import line

GOES_ON = "going on when it answers again, Ctrl-C stops"


class Absence:
    """Tells on standard error whether the server is there, whenever that changes."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._away = False

    def lost(self, why: str = "") -> None:
        """It is away, for a reason that it gave or for none."""
        if not self._away:
            says = f"{self.url} says: {line(why)}" if why else f"{self.url} cannot be reached"
            print(f"accord: {says}; {GOES_ON}", file=sys.stderr, flush=True)
        self._away = True

    def back(self) -> None:
        """It is there."""
        if self._away:
            print(f"accord: {self.url} answers again", file=sys.stderr, flush=True)
        self._away = False
