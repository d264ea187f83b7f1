"""`accord gates`, `approve`, `reject`: deciding from a plain shell."""

from collections.abc import Callable

import pytest

from accord.cli.ballots import Waiting, pick
from accord.client import Client, Rejected, Session
from accord.core.kernel.refusal import Refused, Why
from tests.helpers.cli import Shell
from tests.spec import proves

WHAT = "\n  │ $ git push --force\n  in Fix the parser"


async def asks(claude: Session, risk: str = "high") -> str:
    """A proposal that needs an approval."""
    return await claude.propose(
        "shell",
        {"argv": ["git", "push", "--force"]},
        category="shell_execute",
        risk=risk,
        description="Publish the branch",
    )


def test_when_nothing_waits_it_says_so(alice: Shell) -> None:
    quiet, hint = alice.good("gates").splitlines()
    assert quiet == "Nothing waits for an approval."
    assert "accord gates --session ID" in hint
    assert alice("gates", "--json").json == {"gates": [], "held": []}


async def test_a_card_says_everything_there_is_to_decide_by(
    alice: Shell, session: str, claude: Session
) -> None:
    proposal = await asks(claude)

    (gate,) = alice("gates", "--json").json["gates"]
    lines = alice.good("gates").splitlines()

    assert lines[:6] == [
        "● claude wants to run shell  Fix the parser",
        f"  {gate['id']}",
        "  shell_execute, high risk",
        "  Publish the branch",
        "  │ $ git push --force",
        "  0 of 1 approval",
    ]
    assert lines[6].endswith(" s left")
    assert f"  accord approve {gate['id']}" in lines
    assert (gate["session"], gate["request"]["action_ref"]) == (session, proposal)


async def test_a_yes_that_is_enough_lets_it_run(
    alice: Shell, session: str, claude: Session
) -> None:
    proposal = await asks(claude)
    (gate,) = alice("gates", "--json").json["gates"]

    said = alice.good("approve", gate["id"][:20], "--comment", "Go on")

    assert said == "Approved, and that was enough: claude may run shell now." + WHAT
    assert (await claude.decision(proposal)).approved_by == ("alice",)
    assert alice.good("gates") == "Nothing waits for an approval."
    assert "Go on" in alice.good("session", "log", session)


async def test_a_yes_that_is_not_enough_says_what_is_missing(
    alice: Shell, claude: Session, session: str, shell: Callable[..., Shell]
) -> None:
    """Bob is no member yet: naming the session lets him in."""
    await configured(alice, session, claude)
    bob = shell("bob", "approver")
    proposal = await asks(claude)

    first = alice("approve", proposal, "--json").json
    second = bob.good("approve", proposal, "--session", session)

    assert first["state"] == "open"
    assert (first["approvals_received"], first["approvals_required"]) == (1, 2)
    assert second == "Approved, and that was enough: claude may run shell now." + WHAT
    assert (await claude.decision(proposal)).approved_by == ("alice", "bob")


async def configured(alice: Shell, session: str, claude: Session) -> None:
    """From now on two must agree."""
    async with Client(alice.env["ACCORD_URL"], token=alice.env["ACCORD_TOKEN"]) as client:
        room = await client.join(session, roles=["admin"], listen=False)
        await room.configure("Four eyes", default_gate_quorum={"type": "any", "count": 2})


async def test_in_words_too(alice: Shell, claude: Session, session: str) -> None:
    await configured(alice, session, claude)
    proposal = await asks(claude)

    said = alice.good("approve", proposal)

    assert said == "Approved. 1 more approval needed before claude may run shell." + WHAT
    assert "1 of 2 approvals (alice)" in alice.good("gates")


async def test_a_no_is_final(alice: Shell, session: str, claude: Session) -> None:
    proposal = await asks(claude)

    said = alice.good("reject", proposal, "--reason", "Not on a Friday")

    assert said == "Rejected. claude may not run shell, and was told why." + WHAT
    with pytest.raises(Rejected, match="Not on a Friday"):
        await claude.decision(proposal)
    assert alice("approve", proposal).code == 4


async def test_a_no_needs_a_reason(alice: Shell, claude: Session) -> None:
    proposal = await asks(claude)

    assert alice("reject", proposal).code == 2
    assert alice("reject", proposal, "--reason", " ").code == 2
    assert alice("gates", "--json").json["gates"]


@proves("UNI-26")
async def test_not_everybody_may_decide(
    alice: Shell, claude: Session, session: str, shell: Callable[..., Shell]
) -> None:
    proposal = await asks(claude)
    driver = shell("dora", "driver")
    agent = shell("codex", "driver", kind="agent")

    for who in (driver, agent):
        ran = who("approve", proposal, "--session", session)
        assert (ran.code, ran.out) == (3, "")
    assert driver("approve", proposal, "--session", "ses_nowhere").code == 4
    assert driver("approve", "no-such-gate").code == 4
    assert alice("gates", "--json").json["gates"][0]["approvals"] == []


async def test_what_is_missing_is_said_by_rule_and_a_second_yes_is_not_sent(
    alice: Shell, claude: Session, session: str, shell: Callable[..., Shell]
) -> None:
    async with Client(alice.env["ACCORD_URL"], token=alice.env["ACCORD_TOKEN"]) as client:
        rules = [{"type": "any", "count": 2}, {"type": "label", "label": "security", "count": 1}]
        room = await client.join(session, roles=["admin"], listen=False)
        await room.configure("Strict", default_gate_quorum={"type": "all_of", "rules": rules})
    proposal = await asks(claude)

    said = alice.good("approve", proposal)
    assert said.startswith("Approved. It still needs 1 approval by label security before claude")
    assert alice.good("approve", proposal).startswith("You have approved this already. It still")
    assert alice.good("gates").splitlines()[-1] == (
        "1 gate open. You have approved; it still needs 1 approval by label security."
    )
    shell("bob", "approver").good("approve", proposal, "--session", session)
    shown = alice.good("gates")
    assert "2 approvals (alice and bob); still needs 1 approval by label security" in shown
    assert "somebody else has to join" in shown
    log = alice.good("session", "log", session)
    assert log.count("alice approves shell") == 1


async def test_who_is_not_in_yet_is_told_how_to_come_in(
    alice: Shell, claude: Session, session: str, shell: Callable[..., Shell]
) -> None:
    bob = shell("bob", "approver")
    proposal = await asks(claude)

    context = bob("session", "context", session, "show", "session:tasks")
    for ran in (bob("approve", proposal), bob("session", "show", session), context):
        assert ran.code == 4
        assert "accord gates --session" in ran.err
    assert bob("approve", proposal, "--as", "bob").err == (
        "accord: this server is not open; leave out --as, and put a token into ACCORD_TOKEN\n"
    )


async def test_what_waits_when_the_session_ends_was_not_too_late(
    alice: Shell, claude: Session, session: str
) -> None:
    await asks(claude)

    said = alice.good("session", "end", session)

    assert said.endswith("has ended (completed), and 1 open gate with it; it can still be read")
    log = alice.good("session", "log", session)
    assert "shell: closed with the session (0 of 1 approval)" in log
    assert "time is up" not in log


def waiting(gate: str, proposal: str) -> Waiting:
    return Waiting({"id": "s"}, {"id": gate, "request": {"action_ref": proposal}})


def test_a_gate_goes_by_its_id_its_proposal_or_the_beginning_of_one() -> None:
    one, two = waiting("g-one", "p-one"), waiting("g-two", "p-two")

    assert pick("g-one", [one, two]) is one
    assert pick("p-two", [one, two]) is two
    assert pick("g-t", [one, two]) is two
    with pytest.raises(Refused, match="could be g-one, g-two") as no:
        pick("g-", [one, two])
    assert no.value.why is Why.MALFORMED
    with pytest.raises(Refused, match="no open gate x") as no:
        pick("x", [one, two])
    assert no.value.why is Why.UNKNOWN


def test_of_two_that_begin_alike_only_a_whole_id_decides() -> None:
    shown = waiting("01M7GN84G29DZEZRJSYK08Q96P", "p")
    longer = waiting("01M7GN84G29DZEZRJSYK08Q96P-2", "q")
    forged, short = waiting("g", "01M7GN84"), waiting("01M7GN84", "r")

    assert pick("01M7GN84G29DZEZRJSYK08Q96P", [longer, shown]) is shown
    for other in (forged, short, longer):
        with pytest.raises(Refused, match="01M7GN84 could be"):
            pick("01M7GN84", [shown, other])
