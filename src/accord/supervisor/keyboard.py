"""Between the person's keyboard and the host: everything passes, in order, and nothing is mixed.

A prompt is typed between two keystrokes, never inside an escape sequence, a character or a paste of
the person's. From its first byte to its Enter, what the person types is kept back, and follows
right after. This is the place where the two meet, so the last look is taken here: at the moment of
typing, no keystroke and no output may be there that the one who decided has not seen. The same
holds for the Enter: a dialog that has opened since must not be answered by it.

A prompt that is not sent is erased before the person's keystrokes go on, and counts as never typed.

No I/O and no clock: `now` is in seconds.
"""

import re
from enum import StrEnum
from typing import NamedTuple

# What terminals send by themselves: answers to questions of the program, and a change of focus. A
# position in row 1 looks like a function key, so it counts as one.
_REPLY = re.compile(
    rb"\x1b\[[?>=][0-9;:]*[$]?[A-Za-z]"
    rb"|\x1b\[(?:[2-9]|[1-9][0-9]+);[0-9]+R"
    rb"|\x1b\[0n|\x1b\[[0-9]+(?:;[0-9]+)+t"
    rb"|\x1b\[[IO]"
    rb"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
    rb"|\x1b[P_][^\x1b]*\x1b\\"
)
# The beginning of something that the next bytes may complete.
_UNFINISHED = re.compile(
    rb"(?:\x1b(?:\[[0-?]*[ -/]*|O|\][^\x07\x1b]*\x1b?|[P_][^\x1b]*\x1b?)?"
    rb"|[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z",
    re.DOTALL,
)
PASTE_BEGIN, PASTE_END = b"\x1b[200~", b"\x1b[201~"
ENTER = b"\r"
# The line was empty before the prompt, so one too many does nothing.
ERASE = b"\x7f"
MAX_TAIL = 4096
# The Escape key alone looks like the beginning of a sequence.
UNFINISHED_S = 0.1
# Keystrokes are kept back for so long at most, whatever happens to the one who types the prompt.
HOLD_S = 3.0
MAX_REMEMBERED = 1000


class Typing(StrEnum):
    """What came of an attempt to type."""

    PASTED = "pasted"
    ENTERED = "entered"
    ALREADY = "already"  # this prompt was sent before
    ERASED = "erased"  # it was pasted, and taken away again before it was sent
    HUMAN_INPUT = "human_input"
    OUTDATED = "outdated"  # there is output that was not looked at
    BUSY = "busy"  # another prompt is being typed


class Paste(NamedTuple):
    """A prompt, and what the one who decided to type it had seen."""

    wake: str
    text: str
    quiet_s: float
    seen_output: int
    seen_keystrokes: int


class Keyboard:
    """Takes keystrokes and prompts; gives the bytes for the host."""

    def __init__(self) -> None:
        self.keystrokes = 0  # how often a person was heard
        self.typed_at: float | None = None
        self._tail = b""
        self._in_paste = False
        self._heard_at = 0.0
        self._held = bytearray()
        self._typing = ""
        self._pasted = ""
        self._hold_until = 0.0
        self._sent: dict[str, None] = {}  # in order, so that the oldest can be forgotten

    @property
    def is_holding(self) -> bool:
        """Whether a prompt has been begun and not ended."""
        return bool(self._typing)

    def is_between_keys(self, now: float) -> bool:
        """Whether something can be put in without cutting a key, character or paste in two."""
        unfinished = bool(self._tail) and now - self._heard_at < UNFINISHED_S
        return not self._in_paste and not unfinished

    @property
    def sent(self) -> tuple[str, ...]:
        """The prompts that were sent, oldest first."""
        return tuple(self._sent)

    def press(self, data: bytes, now: float) -> bytes:
        """What arrived from the terminal; returns what the host gets now."""
        if self._notes_person(data):
            self.keystrokes += 1
            self.typed_at = now
        self._heard_at = now
        if not self._typing:
            return data
        self._held += data
        return b""

    def _notes_person(self, data: bytes) -> bool:
        """Whether a person did this; remembers what is unfinished."""
        text = self._tail + data
        person = self._in_paste
        begun, ended = text.rfind(PASTE_BEGIN), text.rfind(PASTE_END)
        if begun != ended:
            self._in_paste = begun > ended
        rest = _REPLY.sub(b"", text)
        unfinished = _UNFINISHED.search(rest)
        self._tail = unfinished[0][-MAX_TAIL:] if unfinished else b""
        # An unfinished sequence may be an answer of the terminal; the rest of it decides. A lone
        # Escape is a key.
        complete = rest[: unfinished.start()] if unfinished else rest
        return person or bool(complete) or self._tail == b"\x1b"

    def paste(self, request: Paste, now: float, output: int) -> tuple[Typing, bytes]:
        """Begin a prompt, if nothing speaks against it at this moment."""
        refusal = self._refusal(request, now, output)
        if refusal is not None:
            return refusal, b""
        self._typing, self._hold_until = request.wake, now + HOLD_S
        self._pasted = request.text.replace("\x1b", "")
        return Typing.PASTED, PASTE_BEGIN + self._pasted.encode("utf-8", "replace") + PASTE_END

    def _refusal(self, request: Paste, now: float, output: int) -> Typing | None:
        if request.wake in self._sent:
            return Typing.ALREADY
        if self._typing:
            return Typing.BUSY
        quiet = self.typed_at is None or now - self.typed_at >= request.quiet_s
        unseen = self.keystrokes != request.seen_keystrokes
        if not quiet or unseen or not self.is_between_keys(now):
            return Typing.HUMAN_INPUT
        return Typing.OUTDATED if output != request.seen_output else None

    def enter(self, wake: str, seen_output: int, output: int) -> tuple[Typing, bytes]:
        """Send the prompt, if all output was seen; what the person typed meanwhile follows it."""
        if self._typing != wake:
            return Typing.ALREADY if wake in self._sent else Typing.ERASED, b""
        if output != seen_output:
            return Typing.OUTDATED, b""
        self._sent[wake] = None
        if len(self._sent) > MAX_REMEMBERED:
            del self._sent[next(iter(self._sent))]
        return Typing.ENTERED, ENTER + self._release()

    def abandon(self, wake: str) -> bytes:
        """Do not send it; the person's keystrokes pass again."""
        return self._erase() if self._typing == wake else b""

    def lose_link(self) -> bytes:
        """The one who was typing is gone."""
        return self._erase() if self._typing else b""

    def tick(self, now: float) -> bytes:
        """What was kept back for too long."""
        return self._erase() if self._typing and now >= self._hold_until else b""

    def _erase(self) -> bytes:
        return ERASE * len(self._pasted) + self._release()

    def _release(self) -> bytes:
        held, self._typing, self._pasted = bytes(self._held), "", ""
        self._held.clear()
        return held
