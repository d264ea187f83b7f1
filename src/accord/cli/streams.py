"""Standard output and error: what is said is written whole, or it is known that it was not."""

import os
import sys
from io import RawIOBase
from typing import TextIO


def make_whole() -> None:
    """Give back the buffer that PYTHONUNBUFFERED leaves out, and what the shell has closed.

    Without a buffer Python takes a part that was written for all of it, and nobody would learn
    that the reader had gone or the disk was full.
    """
    for name in ("stdout", "stderr"):
        stream: TextIO | None = getattr(sys, name)
        if stream is None:
            setattr(sys, name, by_lines(nowhere(), "utf-8", "replace"))
        elif isinstance(getattr(stream, "buffer", None), RawIOBase):
            number, errors = stream.fileno(), stream.errors
            setattr(sys, name, by_lines(number, stream.encoding, errors))


def by_lines(number: int, encoding: str, errors: str | None) -> TextIO:
    """A file in which each line is written at once."""
    return open(number, "w", buffering=1, encoding=encoding, errors=errors, closefd=False)


def flush() -> None:
    """Write what is left; raises where it cannot be."""
    sys.stdout.flush()
    sys.stderr.flush()


def let_go() -> None:
    """What cannot be written goes nowhere: that was told, or there is nobody to tell."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere(), stream.fileno())


def nowhere() -> int:
    """Where nothing comes of what is written."""
    return os.open(os.devnull, os.O_WRONLY)
