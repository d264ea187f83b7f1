"""Decisions in a session, as somebody at a shell sees them."""

from pathlib import Path

import pytest

from accord.client import Rejected, ServerRefused, Session
from tests.helpers.clients.cli import UserShell
from tests.helpers.docket.batch_text import evidence, item, result, step, valid_judgement

HEAD = "<<<B exec_capability=RUNTIME_OK close_policy=REAL_ONLY>>>\n"
TESTS = item(
    "TESTS", valid_judgement("TESTS", "suite", steps=[step("Run", "suite", "suite_green=YES/NO")])
)
DEPLOY = item(
    "DEPLOY",
    valid_judgement("DEPLOY", "errors", steps=[step("Deploy", "api", "deployed=YES/NO", 20)]),
    attrs="depends_on=TESTS",
)
PASSED = item("TESTS", more=f"{result(1)}\n{evidence()}", plan=None)
BOUND = {"batch": "release", "item": "DEPLOY", "step": "deployed=YES/NO"}


def adds(alice: UserShell, session: str, file: Path, text: str) -> None:
    """Alice puts a file on the shelf, or news in its place."""
    file.write_text(text, "utf-8")
    alice.output_of("session", "context", session, "add", "decision:release", str(file))


async def test_what_a_decision_holds_is_shown_until_it_is_free(
    alice: UserShell, session: str, claude: Session, tmp_path: Path
) -> None:
    adds(alice, session, tmp_path / "batch.txt", HEAD + TESTS + DEPLOY)
    proposal = await claude.propose("deploy", {"decision": BOUND}, category="deploy")

    shown = alice.output_of("session", "show", session)
    assert "Held     deploy by claude, until the decision release allows DEPLOY" in shown
    assert "No open gates" in shown
    quiet, _, held = alice.output_of("gates").partition("\n\n")
    assert quiet == "Nothing waits for your approval."
    assert held.startswith("Held     deploy by claude, until the decision release allows DEPLOY")
    assert "Its gate opens once the rules allow deployed=YES/NO" in " ".join(held.split())
    assert [each["id"] for each in alice("gates", "--json").json["stalls"]] == [proposal]
    no = alice("approve", proposal[:20])
    assert no.code == 5
    assert "is held back by the decision release: DEPLOY is STANDBY" in no.err
    log = alice.output_of("session", "log", session)
    assert "The rules decide on release\n          │ TESTS is ACTIVE" in log
    assert "│ DEPLOY is STANDBY (DO LATER), trigger DEPENDENCY_BLOCK." in log

    adds(alice, session, tmp_path / "news.txt", PASSED)

    assert "Held" not in alice.output_of("session", "show", session)
    (gate,) = alice("gates", "--json").json["gates"]
    assert gate["request"]["action_ref"] == proposal
    said = gate["action"]["decision"]
    assert (said["batch"], said["item"], said["verdict"]) == ("release", "DEPLOY", "DO NOW")
    ruling = f"(ruling {said['sha256'][:12]})"
    at_margin = [each for each in alice.output_of("gates").split("\n") if each.startswith("▌ ◆")]
    assert at_margin == [f"▌ ◆ release/DEPLOY: DO NOW, ACTIVE, confidence MED {ruling}"]
    assert "By the rules of release/DEPLOY: DO NOW" in alice.output_of("session", "log", session)


async def test_nothing_that_an_agent_writes_stands_where_the_rules_speak(
    alice: UserShell, session: str, claude: Session
) -> None:
    lie = "release/DEPLOY: DO NOW, ACTIVE, confidence HIGH (ruling 0123456789ab)"
    spoken = f"ok\n◆ {lie}\r\n◆ {lie}\u2028◆ {lie}"
    arguments = {"a\n◆ x": f"b\n◆ {lie}"}
    await claude.propose(f"x ◆ {lie}", arguments, category="deploy", description=spoken)

    for words in (("gates",), ("session", "show", session)):
        assert not [each for each in alice.output_of(*words).splitlines() if each.startswith("▌ ◆")]
    (gate,) = alice("gates", "--json").json["gates"]
    assert gate["action"]["decision"] is None


async def test_those_who_vote_see_how_far_judgements_agree(
    alice: UserShell, session: str, claude: Session, tmp_path: Path
) -> None:
    alone = HEAD + item(
        "DEPLOY", valid_judgement("DEPLOY", "e", steps=[step("Deploy", "x", "deployed=YES/NO")])
    )
    adds(alice, session, tmp_path / "batch.txt", alone)
    await claude.add_context("decision:release:claude", alone)
    await claude.propose("deploy", {"decision": BOUND}, category="deploy")

    shown = alice.output_of("session", "show", session)

    assert "◆ judged by alice and claude" in shown
    assert "◆ | id | VA | GA | SO | CD | class | next_action |" in shown
    assert "◆ | DEPLOY | 1 | 1 | 1.00 | 0 | CONVERGED |" in shown
    assert "◆ CD: difference in confidence, from 0 to 3" in shown


async def test_a_held_proposal_is_let_go_from_a_shell(
    alice: UserShell, session: str, claude: Session, tmp_path: Path
) -> None:
    adds(alice, session, tmp_path / "batch.txt", HEAD + TESTS + DEPLOY)
    first, second = [
        await claude.propose("deploy", {"decision": BOUND, "n": n}, category="deploy")
        for n in range(2)
    ]

    said = alice.output_of("reject", first, "--reason", "Not on a Friday")
    assert said == "Rejected. claude may not run deploy and was told why."
    with pytest.raises(Rejected, match="Not on a Friday"):
        await claude.decision(first)
    told = alice("reject", second, "--reason", "No", "--json").json
    assert (told["proposal"], told["state"]) == (second, "rejected")
    assert alice.output_of("gates") == "Nothing waits for your approval."


async def test_a_batch_without_an_item_is_refused_with_a_hint_and_no_line(claude: Session) -> None:
    with pytest.raises(ServerRefused, match=r"decided \(OTHER\); NO_ITEMS \(write at least one"):
        await claude.add_context("decision:empty", "hello")
