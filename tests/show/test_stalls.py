"""Stalls as `accord gates` prints them."""

from typing import Any, get_args, get_type_hints

import pytest

from accord.api.home import Stall
from accord.show.stalls import STALLS, render_stall

AWAY = {"tool_name": "shell"}


def stall(kind: str, **more: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "session": "ses_1",
        "agents": ["claude"],
        "proposal": None,
        "people": {},
    }
    return {"kind": kind, **fields, **more}


def test_every_kind_that_a_server_sends_has_a_sentence() -> None:
    kinds = set(get_args(get_type_hints(Stall)["kind"]))

    assert kinds == {*STALLS, "proposal_held"}


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        (
            stall("agent_stopped"),
            "Stopped  claude does nothing until the next prompt, in Fix the parser",
        ),
        (
            stall("agent_away", proposal=AWAY),
            "Away     claude may run shell and is not connected, in Fix the parser",
        ),
        (stall("to_come"), "Stalled  to_come: claude, in Fix the parser"),
    ],
    ids=["stopped", "away", "unknown"],
)
def test_a_stall_is_one_sentence(entry: dict[str, Any], line: str) -> None:
    assert list(render_stall(entry, "Fix the parser")) == [line]


def test_a_long_sentence_is_wrapped_beside_its_heading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")

    first, *more = render_stall(stall("agent_failed"), "Fix the parser")

    assert first.startswith("Failed   the last answer of claude ended with an error")
    assert more
    assert all(line.startswith(" " * 9) and len(line) <= 60 for line in more)
