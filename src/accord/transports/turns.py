"""Taking turns: whoever sends a lot at once is read a little at a time, and others in between."""

import asyncio

# Some hundred messages at once. A buffer that takes all that waits would be worked off in one go,
# and would be kept at that size. Of who sends too much, less.
LARGEST_READ = 64 << 10
SHORT_READ = 8 << 10
# Whose messages took longer gives way to whoever waits; one who sends too much, sooner. A part of a
# message takes next to nothing.
LONGEST_S = 0.002
SHORTER_S = 0.0002
# Who sends too much is not read for so long, for each of its connections. For thousands that
# would be minutes, and who is not heard for minutes takes us for gone.
REST_S = 0.05
LONGEST_REST_S = 5.0


class Turns:
    """When a connection is read, and how much of it at most."""

    def __init__(self, raw: asyncio.Transport) -> None:
        self.raw = raw
        self.most = LARGEST_READ
        self.loop = asyncio.get_running_loop()

    def over(self, seconds: float) -> bool:
        """Whether it was long enough for now, of one whose messages took so many seconds."""
        return seconds > (LONGEST_S if self.most == LARGEST_READ else SHORTER_S)

    def give_way(self, seconds: float) -> None:
        """Others come first, and it again after so many seconds."""
        if self.raw.is_closing():
            return
        self.raw.pause_reading()
        self.most = SHORT_READ if seconds else LARGEST_READ
        if seconds:
            self.loop.call_later(min(seconds, LONGEST_REST_S), self._again)
        else:
            self.loop.call_soon(self._again)

    def _again(self) -> None:
        if not self.raw.is_closing():
            self.raw.resume_reading()
