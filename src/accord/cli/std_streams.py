"""Standard output and error, so that output is written completely or an error is raised."""

import codecs
import os
import sys
from io import RawIOBase, TextIOWrapper
from typing import TextIO

# Characters of our own output where the locale has no UTF-8; each one column wide, as before.
ASCII_FORMS = str.maketrans("…│┃├└╰╭┌┬┐┘─━·•→←✓✗–—‘’“”", ".||++++++++---*><vx--''\"\"")
ASCII_ERRORS = "accord.ascii"


def to_ascii(error: UnicodeError) -> tuple[str, int]:
    """What is written in place of characters that the locale's encoding does not have."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    import unicodedata

    lacking = error.object[error.start : error.end].translate(ASCII_FORMS)
    plain = unicodedata.normalize("NFKD", lacking) if not lacking.isascii() else lacking
    shown = "".join(c if c.isascii() else "" if unicodedata.combining(c) else "?" for c in plain)
    return shown, error.end


def degrade_to_ascii() -> None:
    """In a locale without UTF-8, write something readable instead of failing."""
    codecs.register_error(ASCII_ERRORS, to_ascii)
    for stream in (sys.stdout, sys.stderr):
        is_utf8 = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "") == "utf8"
        if isinstance(stream, TextIOWrapper) and not is_utf8:
            stream.reconfigure(errors=ASCII_ERRORS)


def restore_buffering() -> None:
    """Restore the buffer that PYTHONUNBUFFERED removes, and streams that the shell has closed.

    Without a buffer Python takes a partial write for a complete one, and a full disk or a closed
    pipe would go unnoticed.
    """
    for name in ("stdout", "stderr"):
        stream: TextIO | None = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open_line_buffered(open_devnull(), "utf-8", "replace"))
        elif isinstance(getattr(stream, "buffer", None), RawIOBase):
            number, errors = stream.fileno(), stream.errors
            setattr(sys, name, open_line_buffered(number, stream.encoding, errors))


def open_line_buffered(number: int, encoding: str, errors: str | None) -> TextIO:
    """A text file that is flushed after each line."""
    return open(number, "w", buffering=1, encoding=encoding, errors=errors, closefd=False)


def flush() -> None:
    """Write buffered output; raises OSError if that fails."""
    sys.stdout.flush()
    sys.stderr.flush()


def discard_unwritable() -> None:
    """Drop output that cannot be written, so that the interpreter does not complain at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(open_devnull(), stream.fileno())


def open_devnull() -> int:
    return os.open(os.devnull, os.O_WRONLY)
