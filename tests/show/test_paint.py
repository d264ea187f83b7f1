"""Styles and links, for those who see them."""

from pathlib import Path

import pytest

from accord.cli.serve import banner
from accord.serving import Ready
from accord.show import paint
from accord.show.text import unstyled

READY = Ready("http://0.0.0.0:7420", "ws://0.0.0.0:7420/ws", 1, "t.o.k")
TARGET = "http://127.0.0.1:7420/#token=t.o.k"


@pytest.mark.parametrize(("term", "linked"), [("xterm", True), ("linux", False)])
def test_a_link_is_there_where_the_terminal_knows_what_it_is(
    monkeypatch: pytest.MonkeyPatch, term: str, *, linked: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", term)

    shown = paint.link("here", "http://there/")

    assert shown == ("\x1b]8;;http://there/\x1b\\here\x1b]8;;\x1b\\" if linked else "here")


def test_the_address_brings_the_token_along_and_what_is_read_has_it_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")

    shown = banner(READY, Path("/data"), is_open=False)

    visible = shown.replace(f"\x1b]8;;{TARGET}\x1b\\", "").replace("\x1b]8;;\x1b\\", "")
    assert shown.count(TARGET) == 1
    assert visible.count("t.o.k") == 1
    assert max(map(len, unstyled(visible).splitlines())) <= 80


def test_whoever_trusts_every_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    assert "Every name is believed here" in banner(READY, Path("/data"), is_open=True)
