"""Decisions in a session, as somebody at a shell sees them."""

from pathlib import Path

import pytest

from accord.client import ServerRefused, Session
from tests.helpers.cli import Shell
from tests.helpers.docket import evidence, item, ok, result, step

HEAD = "<<<B exec_capability=RUNTIME_OK close_policy=REAL_ONLY>>>\n"
TESTS = item("TESTS", ok("TESTS", "suite", steps=[step("Run", "suite", "suite_green=YES/NO")]))
DEPLOY = item(
    "DEPLOY",
    ok("DEPLOY", "errors", steps=[step("Deploy", "api", "deployed=YES/NO", 20)]),
    attrs="depends_on=TESTS",
)
PASSED = item("TESTS", more=f"{result(1)}\n{evidence()}", plan=None)
BOUND = {"batch": "release", "item": "DEPLOY", "step": "deployed=YES/NO"}


def adds(alice: Shell, session: str, file: Path, text: str) -> None:
    """Alice puts a file on the shelf, or news in its place."""
    file.write_text(text, "utf-8")
    alice.good("session", "context", session, "add", "decision:release", str(file))


async def test_what_a_decision_holds_is_shown_until_it_is_free(
    alice: Shell, session: str, claude: Session, tmp_path: Path
) -> None:
    adds(alice, session, tmp_path / "batch.txt", HEAD + TESTS + DEPLOY)
    proposal = await claude.propose("deploy", {"decision": BOUND}, category="deploy")

    shown = alice.good("session", "show", session)
    assert "Held     deploy by claude, until the decision release allows DEPLOY" in shown
    assert "No open gates" in shown
    assert alice.good("gates") == "Nothing waits for an approval."
    log = alice.good("session", "log", session)
    assert "The rules decide on release\n          │ TESTS is ACTIVE" in log
    assert "│ DEPLOY is STANDBY (DO LATER), trigger DEPENDENCY_BLOCK." in log

    adds(alice, session, tmp_path / "news.txt", PASSED)

    assert "Held" not in alice.good("session", "show", session)
    (gate,) = alice("gates", "--json").json["gates"]
    assert gate["request"]["action_ref"] == proposal


async def test_a_batch_without_an_item_is_refused_with_a_hint_and_no_line(claude: Session) -> None:
    with pytest.raises(ServerRefused, match=r"decided \(OTHER\); NO_ITEMS \(write at least one"):
        await claude.add_context("decision:empty", "hello")
