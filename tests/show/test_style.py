"""Styles and links, for those who see them."""

from pathlib import Path

import pytest

from accord.cli.serve.command import banner
from accord.server.serving import ReadyInfo
from accord.show import style
from accord.show.text import strip_styles

READY = ReadyInfo("http://0.0.0.0:7420", "ws://0.0.0.0:7420/ws", 1, "t.o.k")
IN_BROWSER = "k2vq7mxw3yd5e6f7g2h3j4k5lm"
IN_SHELL = "a2bq7mxw3yd5e6f7g2h3j4k5zz"
TARGET = "http://127.0.0.1:7420#code="


@pytest.mark.parametrize(("term", "linked"), [("xterm", True), ("linux", False)])
def test_a_link_is_there_where_the_terminal_knows_what_it_is(
    monkeypatch: pytest.MonkeyPatch, term: str, *, linked: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", term)

    shown = style.link("here", "http://there/")

    assert shown == ("\x1b]8;;http://there/\x1b\\here\x1b]8;;\x1b\\" if linked else "here")


def test_browser_and_shell_get_a_sign_in_link_each_and_no_code_is_printed_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")

    shown = banner(READY, Path("/data"), (IN_BROWSER, IN_SHELL))

    visible = shown.replace(f"\x1b]8;;{TARGET}{IN_BROWSER}\x1b\\", "")
    visible = visible.replace("\x1b]8;;\x1b\\", "")
    assert [visible.count(TARGET + code) for code in (IN_BROWSER, IN_SHELL)] == [1, 1]
    assert f"accord login '{TARGET}{IN_SHELL}'" in visible
    assert "t.o.k" not in shown
    assert max(map(len, strip_styles(visible).splitlines())) <= 80


def test_open_server_says_that_it_trusts_its_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    assert "Clients are trusted without a token" in banner(READY, Path("/data"), ())
