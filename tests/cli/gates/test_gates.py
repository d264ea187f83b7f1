"""`accord gates`, `approve`, `reject`: deciding from a plain shell."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from accord.cli.gates.voting import Card, Concerns, find_gate
from accord.client import Client, Rejected, ServerRefused, Session
from accord.core.kernel.refusal import Reason, Refused
from tests.helpers.clients.cli import UserShell, clean_environment
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves

WHAT = "\n▌ │ $ git push --force\n▌ in Fix the parser"


async def asks(claude: Session, risk: str = "high") -> str:
    """A proposal that needs an approval."""
    return await claude.propose(
        "shell",
        {"argv": ["git", "push", "--force"]},
        category="shell_execute",
        risk=risk,
        description="Publish the branch",
    )


def test_when_nothing_waits_it_says_so(alice: UserShell) -> None:
    assert alice.output_of("gates") == "Nothing waits for your approval."
    nothing = {"gates": [], "stalls": [], "ended_gates": [], "has_more": False}
    assert alice("gates", "--json").json == nothing


async def test_a_card_says_everything_there_is_to_decide_by(
    alice: UserShell, session: str, claude: Session
) -> None:
    proposal = await asks(claude)

    (gate,) = alice("gates", "--json").json["gates"]
    lines = alice.output_of("gates").splitlines()

    assert lines[:6] == [
        "▌ claude wants to run shell",
        "▌ in Fix the parser",
        "▌ │ $ git push --force",
        "▌ “ Publish the branch",
        "▌ high risk, shell_execute: claimed by claude, not checked by the server",
        "▌ ○ needs 1 approval; alice may approve",
    ]
    assert " left, until " in lines[6]
    assert lines[7] == f"▌ {gate['id']}"
    assert f"  accord approve {gate['id']}" in lines
    assert (gate["session"], gate["request"]["action_ref"]) == (session, proposal)


async def test_a_yes_that_is_enough_lets_it_run(
    alice: UserShell, session: str, claude: Session
) -> None:
    proposal = await asks(claude)
    (gate,) = alice("gates", "--json").json["gates"]

    said = alice.output_of("approve", gate["id"][:20], "--comment", "Go on")

    assert said == "Approved, and that was enough: claude may run shell now." + WHAT
    assert (await claude.decision(proposal)).approved_by == ("alice",)
    quiet, _, ended = alice.output_of("gates").partition("\n\n")
    assert quiet == "Nothing waits for your approval."
    assert re.search(
        r"shell of claude was approved by alice at \d\d:\d\d, in Fix the parser", ended
    )
    assert "Go on" in alice.output_of("session", "log", session)


async def test_a_yes_that_is_not_enough_says_what_is_missing(
    alice: UserShell, claude: Session, session: str, shell: Callable[..., UserShell]
) -> None:
    await configured(alice, session, claude)
    bob = shell("bob", "approver")
    bob.output_of("session", "join", session)
    proposal = await asks(claude)

    first = alice("approve", proposal, "--json").json
    second = bob.output_of("approve", proposal)

    assert first["state"] == "open"
    assert (first["approvals_received"], first["approvals_required"]) == (1, 2)
    assert second == "Approved, and that was enough: claude may run shell now." + WHAT
    assert (await claude.decision(proposal)).approved_by == ("alice", "bob")


async def configured(alice: UserShell, session: str, claude: Session) -> None:
    """From now on two must agree."""
    async with Client(alice.env["ACCORD_URL"], token=alice.env["ACCORD_TOKEN"]) as client:
        room = await client.join(session, roles=["admin"], listen=False)
        await room.configure("Four eyes", default_gate_quorum={"type": "any", "count": 2})


async def test_in_words_too(alice: UserShell, claude: Session, session: str) -> None:
    await configured(alice, session, claude)
    proposal = await asks(claude)

    said = alice.output_of("approve", proposal)

    assert said == "Approved. 1 more approval needed before claude may run shell." + WHAT
    shown = alice.output_of("gates")
    assert "▌ ✓ approved by alice" in shown
    assert "▌ ○ needs 1 more approval (1 of 2 so far)" in shown


async def test_a_no_is_final(alice: UserShell, session: str, claude: Session) -> None:
    proposal = await asks(claude)

    said = alice.output_of("reject", proposal, "--reason", "Not on a Friday")

    assert said == "Rejected. claude may not run shell and was told why." + WHAT
    with pytest.raises(Rejected, match="Not on a Friday"):
        await claude.decision(proposal)
    late = alice("approve", proposal)
    assert late.code == 5
    assert re.search(r"was rejected by alice at \d\d:\d\d: Not on a Friday", late.err)


async def test_an_approval_is_taken_back_until_the_agent_uses_it(
    alice: UserShell, session: str, claude: Session
) -> None:
    proposal = await asks(claude)
    alice.output_of("approve", proposal)

    said = alice.output_of("reject", proposal, "--reason", "Too early")

    assert said == "Taken back. claude may no longer run shell and was told why."
    ended = " ".join(alice.output_of("gates").split())
    assert ", and the approval was taken back, in Fix the parser" in ended
    granted = await claude.decision(proposal)
    with pytest.raises(ServerRefused, match="alice took the grant back"):
        await claude.execute(granted)
    await claude.result(granted, success=True, duration_ms=1)  # it ran anyway
    after = " ".join(alice.output_of("gates").split())
    assert ", and the approval was taken back, in Fix the parser" in after

    used = await asks(claude)
    alice.output_of("approve", used)
    await claude.execute(await claude.decision(used))
    late = alice("reject", used, "--reason", "Too late")
    assert (late.code, "claude already used the grant" in late.err) == (5, True)


async def test_a_no_needs_a_reason(alice: UserShell, claude: Session) -> None:
    proposal = await asks(claude)

    assert alice("reject", proposal).code == 2
    assert alice("reject", proposal, "--reason", " ").code == 2
    assert alice("gates", "--json").json["gates"]


@proves("UNI-26")
async def test_not_everybody_may_decide(
    alice: UserShell, claude: Session, session: str, shell: Callable[..., UserShell]
) -> None:
    proposal = await asks(claude)
    driver = shell("dora", "driver")
    agent = shell("codex", "driver", kind="agent")

    for who in (driver, agent):
        who.output_of("session", "join", session)
        assert "can only be decided by others" in who.output_of("gates")
        assert "that you may vote on; 1 in your sessions" in who("approve", proposal).err
        ran = who("approve", proposal, "--session", session)
        assert (ran.code, ran.out) == (3, "")
    assert driver("approve", proposal, "--session", "ses_nowhere").code == 4
    assert driver("approve", "no-such-gate").code == 4
    assert alice("gates", "--json").json["gates"][0]["approvals"] == []


async def test_what_is_missing_is_said_by_rule_and_a_second_yes_is_not_sent(
    alice: UserShell, claude: Session, session: str, shell: Callable[..., UserShell]
) -> None:
    async with Client(alice.env["ACCORD_URL"], token=alice.env["ACCORD_TOKEN"]) as client:
        rules = [{"type": "any", "count": 2}, {"type": "label", "label": "security", "count": 1}]
        room = await client.join(session, roles=["admin"], listen=False)
        await room.configure("Strict", default_gate_quorum={"type": "all_of", "rules": rules})
    proposal = await asks(claude)

    said = alice.output_of("approve", proposal)
    assert said.startswith("Approved. It still needs 1 approval by label security before claude")
    assert alice.output_of("approve", proposal).startswith(
        "You have approved this already. It still"
    )
    assert alice.output_of("gates").splitlines()[-1] == (
        "1 gate open. You have approved; it still needs 1 approval by label security."
    )
    bob = shell("bob", "approver")
    bob.output_of("session", "join", session)
    bob.output_of("approve", proposal)
    shown = alice.output_of("gates")
    assert "approved by alice and bob" in shown
    assert "needs 1 approval by label security" in shown
    assert "a member who can must join" in shown
    log = alice.output_of("session", "log", session)
    assert log.count("alice approves shell") == 1


async def test_who_is_not_in_yet_is_told_how_to_come_in(
    alice: UserShell, claude: Session, session: str, shell: Callable[..., UserShell]
) -> None:
    bob = shell("bob", "approver")
    proposal = await asks(claude)

    context = bob("session", "context", session, "show", "session:tasks")
    for ran in (bob("approve", proposal), bob("session", "show", session), context):
        assert ran.code == 4
        assert "accord session join" in ran.err
    assert bob("gates", "--json").json["gates"] == []
    assert bob("approve", proposal, "--as", "bob").err == (
        "accord: this server does not run with --auth open; leave out --as and log in\n"
    )


async def test_what_waits_when_the_session_ends_was_not_too_late(
    alice: UserShell, claude: Session, session: str
) -> None:
    await asks(claude)

    said = alice.output_of("session", "end", session)

    assert said.endswith("has ended (completed), and 1 open gate with it; it can still be read")
    log = alice.output_of("session", "log", session)
    assert "shell: closed with the session (0 of 1 approval)" in log
    assert "time is up" not in log


# Choosing a gate by its id


def waiting(gate: str, proposal: str) -> Card:
    return {"id": gate, "session": "s", "request": {"action_ref": proposal}}


def choose(word: str, *gates: Card) -> Card:
    return find_gate(word, Concerns(list(gates)))


@pytest.mark.parametrize("word", ["", "g", "gate-id"])
def test_an_empty_or_short_word_chooses_no_gate(word: str) -> None:
    with pytest.raises(Refused, match="at least its first 8 characters") as refusal:
        choose(word, waiting("gate-id-one", "p-one"))

    assert refusal.value.reason is Reason.MALFORMED


def test_a_gate_goes_by_its_id_its_proposal_or_the_beginning_of_one() -> None:
    one, two = waiting("gate-id-one", "p-one"), waiting("gate-id-two", "p-two")

    assert choose("gate-id-one", one, two) is one
    assert choose("p-two", one, two) is two
    assert choose("gate-id-t", one, two) is two
    with pytest.raises(Refused, match="could be gate-id-one, gate-id-two") as refusal:
        choose("gate-id-", one, two)
    assert refusal.value.reason is Reason.MALFORMED
    with pytest.raises(Refused, match="no open gate no-such-gate") as no:
        choose("no-such-gate", one, two)
    assert no.value.reason is Reason.NOT_FOUND


def test_of_two_that_begin_alike_only_a_whole_id_decides() -> None:
    shown = waiting("01M7GN84G29DZEZRJSYK08Q96P", "p")
    longer = waiting("01M7GN84G29DZEZRJSYK08Q96P-2", "q")
    forged, short = waiting("g", "01M7GN84"), waiting("01M7GN84", "r")

    assert choose("01M7GN84G29DZEZRJSYK08Q96P", longer, shown) is shown
    for other in (forged, short, longer):
        with pytest.raises(Refused, match="01M7GN84 could be"):
            choose("01M7GN84", shown, other)


# Without joining, in every session


async def test_gates_of_every_session_are_seen_and_reading_changes_no_membership(
    alice: UserShell,
    session: str,
    claude: Session,
    shell: Callable[..., UserShell],
    server: ServerProcess,
) -> None:
    other = alice.output_of("session", "create", "--name", "Other")
    token = server.issue_token("claude", "agent", ("driver",))
    async with Client(server.url, token=token) as client:
        await asks(await client.join(other, listen=False))
    await asks(claude)
    log = alice.output_of("session", "log", session)

    sessions = {gate["session"] for gate in alice("gates", "--json").json["gates"]}

    assert sessions == {session, other}
    assert "Other" not in alice.output_of("gates", "--session", session)
    stranger = shell("bob", "approver")
    assert stranger("gates", "--json").json["gates"] == []
    assert stranger("gates", "--session", session).code == 4
    assert alice.output_of("session", "log", session) == log


async def test_a_vote_is_one_message_and_changes_no_presence(
    alice: UserShell, session: str, claude: Session
) -> None:
    proposal = await asks(claude)
    before = alice("session", "log", session, "--json").out.count("session.join")

    alice.output_of("approve", proposal)

    after = alice("session", "log", session, "--json").out
    assert after.count("session.join") == before


async def test_a_large_call_is_read_from_its_session(
    alice: UserShell, session: str, claude: Session
) -> None:
    for _ in range(4):
        await claude.propose(
            "write", {"path": "a", "content": "x\n" * 300_000}, category="file_write", risk="low"
        )

    shown = alice.output_of("gates")

    assert shown.count("299961 more lines not shown") == 4
    assert "too large" not in shown


async def test_gates_are_watched_until_they_end(
    alice: UserShell, session: str, claude: Session, tmp_path: Path
) -> None:
    watching = await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", "-m", "accord", "gates", "--watch"),
        env=clean_environment(**alice.env),
        stdout=subprocess.PIPE,
        cwd=tmp_path,
    )
    try:
        out = watching.stdout
        assert out is not None
        await read_until(out, "new gates appear here")
        proposal = await asks(claude)
        await read_until(out, "claude wants to run shell")
        await asyncio.to_thread(alice.output_of, "approve", proposal)
        await read_until(out, "was approved by alice")
    finally:
        watching.terminate()
        await watching.communicate()


async def read_until(out: asyncio.StreamReader, words: str) -> None:
    """Read lines up to one with these words."""
    async with asyncio.timeout(60):
        while words not in (line := (await out.readline()).decode()):
            assert line, "the command has ended"


def test_gates_of_a_session_that_does_not_exist_are_refused_with_a_similar_one(
    alice: UserShell, session: str
) -> None:
    wrong = alice("gates", "--session", "nonsense")
    assert wrong.code == 4
    assert "not a member of a session nonsense; `accord session list` shows yours" in wrong.err

    typo = alice("gates", "--session", session[:-1])
    assert (typo.code, f"did you mean {session}?" in typo.err) == (4, True)
    assert alice("gates", "--watch", "--session", session[:-1]).code == 4
    assert alice.output_of("gates", "--session", session) == "Nothing waits for your approval."


def test_gates_of_a_session_that_the_caller_left_are_refused(
    alice: UserShell, session: str, shell: Callable[..., UserShell]
) -> None:
    bob = shell("bob", "approver")
    bob.output_of("session", "join", session)
    bob.output_of("session", "leave", session)

    former = bob("gates", "--session", session)
    assert (former.code, "no longer a member" in former.err) == (3, True)
