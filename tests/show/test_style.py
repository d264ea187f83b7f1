"""Styles and links, for those who see them."""

from pathlib import Path

import pytest

from accord.cli.serve.command import banner
from accord.server.serving import ReadyInfo
from accord.show import style
from accord.show.text import strip_styles

READY = ReadyInfo("http://0.0.0.0:7420", "ws://0.0.0.0:7420/ws", 1, "t.o.k")
CODE = "k2vq7mxw3yd5e6f7g2h3j4k5lm"
TARGET = f"http://127.0.0.1:7420#code={CODE}"


@pytest.mark.parametrize(("term", "linked"), [("xterm", True), ("linux", False)])
def test_a_link_is_there_where_the_terminal_knows_what_it_is(
    monkeypatch: pytest.MonkeyPatch, term: str, *, linked: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", term)

    shown = style.link("here", "http://there/")

    assert shown == ("\x1b]8;;http://there/\x1b\\here\x1b]8;;\x1b\\" if linked else "here")


def test_the_address_is_the_sign_in_link_and_what_is_read_has_the_code_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")

    shown = banner(READY, Path("/data"), CODE)

    visible = shown.replace(f"\x1b]8;;{TARGET}\x1b\\", "").replace("\x1b]8;;\x1b\\", "")
    assert shown.count(TARGET) == 2
    assert visible.count(CODE) == 1
    assert "t.o.k" not in shown
    assert max(map(len, strip_styles(visible).splitlines())) <= 80


def test_whoever_trusts_every_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    assert "Clients are trusted without a token" in banner(READY, Path("/data"), "")
