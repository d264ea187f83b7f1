"""Output in locales without UTF-8."""

import os
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.cli import std_streams

ASCII_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.parametrize("words", [["--help"], ["session", "--help"], ["demo", "--help"]])
def test_help_is_readable_in_a_locale_without_utf8(words: list[str]) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "accord", *words],
        env={**os.environ, **ASCII_LOCALE},
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert (run.returncode, run.stderr) == (0, b"")
    assert run.stdout.isascii()
    assert b"?" not in run.stdout.partition(b"\n")[0]


@given(st.text(min_size=1))
def test_any_text_is_written_as_ascii(text: str) -> None:
    std_streams.degrade_to_ascii()

    assert text.encode("ascii", std_streams.ASCII_ERRORS).isascii()


def test_our_own_characters_keep_their_width() -> None:
    for original in map(chr, std_streams.ASCII_FORMS):
        error = UnicodeEncodeError("ascii", original, 0, 1, "x")
        assert len(std_streams.to_ascii(error)[0]) == 1, unicodedata.name(original)


def test_an_error_that_is_not_about_encoding_is_raised() -> None:
    with pytest.raises(UnicodeDecodeError):
        std_streams.to_ascii(UnicodeDecodeError("ascii", b"\xff", 0, 1, "x"))
