"""Prompting, stopping, sharing, forking and merging from a shell."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable

from accord.client import Session
from tests.helpers.clients.cli import UserShell, clean_environment
from tests.helpers.servers.server_process import ServerProcess


def typed(person: UserShell, text: str, *words: str) -> str:
    """What a command prints that reads this from its standard input."""
    done = subprocess.run(
        [sys.executable, "-m", "accord", *words],
        input=text,
        capture_output=True,
        text=True,
        cwd=person.cwd,
        env=clean_environment(**person.env),
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done
    return done.stdout.strip()


def test_a_prompt_goes_to_an_agent_with_its_context(
    alice: UserShell, session: str, claude: Session
) -> None:
    (alice.cwd / "notes.md").write_text("The parser breaks on brackets.\n")
    assert (
        alice.output_of("session", "context", session, "add", "notes", "notes.md") == "Added notes"
    )
    first = alice.output_of(
        "session", "prompt", session, "claude", "Fix", "it", "--context", "notes"
    )
    second = typed(alice, "From a pipe\n", "session", "prompt", session, claude.me, "-")

    told = alice.output_of("session", "log", session, "--json").splitlines()
    said = {each["id"]: each["payload"] for each in map(json.loads, told)}
    assert (said[first]["content"], said[first]["context_keys"]) == ("Fix it", ["notes"])
    assert said[second]["content"] == "From a pipe\n"
    nobody = alice("session", "prompt", session, "nobody", "Hm")
    assert (nobody.code, "is not an agent" in nobody.err) == (4, True)


def test_context_is_listed_shown_and_removed(
    alice: UserShell, session: str, shell: Callable[..., UserShell], claude: Session
) -> None:
    typed(alice, "For all\n", "session", "context", session, "add", "plan", "-")
    aside = ("session", "context", session, "add", "aside", "-", "--visible-to", claude.me)
    typed(alice, "For claude\n", *aside)
    bob = shell("bob", "driver")
    bob.output_of("session", "join", session)

    assert alice.output_of("session", "context", session, "list").splitlines() == [
        "KEY    TYPE  BY     IN    FOR",
        "plan   text  alice  main  everyone",
        "aside  text  alice  main  claude",
    ]
    assert alice.output_of("session", "context", session, "show", "aside") == "For claude"
    assert "Context  plan and aside" in alice.output_of("session", "show", session)
    listed = bob("session", "context", session, "list", "--json").json["context"]
    assert [item["key"] for item in listed] == ["plan"]
    assert bob("session", "context", session, "show", "aside").code == 4
    assert bob("session", "context", session, "show").code == 2
    assert alice.output_of("session", "context", session, "remove", "plan") == "Removed plan"
    assert alice("session", "context", session, "show", "plan").code == 4


def on_a_screen(person: UserShell, *words: str) -> str:
    """What a terminal shows of a command."""
    ours, theirs = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "accord", *words],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        cwd=person.cwd,
        env=clean_environment(**person.env),
        timeout=60,
        check=True,
    )
    os.close(theirs)
    with os.fdopen(ours, "rb", buffering=0) as screen:
        assert done.returncode == 0
        return screen.read(4096).decode().replace("\r\n", "\n")


def test_context_ends_its_line_on_a_screen_and_is_what_was_added_in_a_file(
    alice: UserShell, session: str
) -> None:
    for text in ("one line", "one line\n"):
        typed(alice, text, "session", "context", session, "add", "plan", "-")
        show = ("session", "context", session, "show", "plan")

        assert alice(*show).out == text
        assert on_a_screen(alice, *show) == "one line\n"
        alice.output_of("session", "context", session, "remove", "plan")


def test_a_stopped_agent_is_shown_and_stays_so(
    alice: UserShell, session: str, claude: Session
) -> None:
    told = alice.output_of("session", "stop", session, claude.me, "--message", "Wrong branch")

    assert told == "claude cannot propose or run anything until the next prompt."
    assert "claude agent, driver stopped" in alice.output_of("session", "show", session)
    assert "Every agent was asked to pause" in alice.output_of(
        "session", "stop", session, "--pause", "--message", "One moment"
    )
    raised = alice("session", "stop", session, "--emergency", "--message", "Now", "--json").json
    assert raised["halted"] == {"claude": "emergency"}
    log = alice.output_of("session", "log", session)
    assert "alice tells claude to stop\n          Wrong branch" in log
    alice.output_of("session", "prompt", session, claude.me, "Go on")
    assert "stopped" not in alice.output_of("session", "show", session)


def test_a_fork_is_opened_used_and_merged(
    alice: UserShell, session: str, claude: Session, server: ServerProcess
) -> None:
    typed(alice, "Rewrite it\n", "session", "context", session, "add", "plan", "-")
    fork = alice.output_of(
        *("session", "fork", session, "Try a grammar", "--with", claude.me, "--reason", "Shorter")
    )
    inner = alice.output_of("session", "fork", session, "Tokens", "--in", fork)
    alice.output_of("session", "prompt", session, claude.me, "Would it do?", "--fork", fork)
    there = ("session", "context", session, "add", "finding", "-", "--fork", fork)
    typed(alice, "It does\n", *there)

    assert (fork, inner) == ("try-a-grammar", "tokens")
    assert alice.output_of("session", "forks", session).splitlines() == [
        "main",
        "  try-a-grammar Try a grammar (alice and claude; open)",
        "    tokens Tokens (alice; open)",
    ]
    done = alice.output_of("session", "merge", session, fork, "--summary", "It does")
    assert done == "try-a-grammar was merged into main"
    assert alice.output_of("session", "context", session, "show", "finding") == "It does"
    log = alice.output_of("session", "log", session)
    assert "alice opens the fork try-a-grammar with claude · Shorter" in log
    assert "alice asks claude · in try-a-grammar" in log
    assert "alice proposes to merge try-a-grammar into main (append)" in log
    assert "alice merges try-a-grammar" in log
    assert "(alice and claude; merged into main)" in alice.output_of("session", "show", session)
    server.kill()
    files = ("session", "context", session, "show", "finding", "--data-dir", str(server.home))
    assert alice.output_of(*files) == "It does"


def test_a_merge_that_needs_approval_or_answers_is_gone_on_with(
    alice: UserShell, session: str, shell: Callable[..., UserShell]
) -> None:
    bob = shell("bob", "driver", "approver")
    bob.output_of("session", "join", session)
    typed(alice, "before\n", "session", "context", session, "add", "plan", "-")
    fork = alice.output_of("session", "fork", session, "Other")
    for where in ((), ("--fork", fork)):
        typed(alice, f"{where}\n", "session", "context", session, "add", "plan", "-", *where)

    stuck = alice("session", "merge", session, fork, "--strategy", "manual")
    assert (stuck.code, "Unresolved conflicts: plan" in stuck.err) == (5, True)
    assert alice.output_of("session", "merge", session, fork, "--use-source", "plan") == (
        "other was merged into main"
    )

    again = alice.output_of("session", "fork", session, "Again")
    waits = alice.output_of("session", "merge", session, again, "--strategy", "replace")
    assert "can be merged after approval" in waits
    [gate] = bob("gates", "--json").json["gates"]
    bob.output_of("approve", gate["id"])
    assert alice("session", "merge", session, again, "--json").json["state"] == "merged"


def messages_of(shell: UserShell, session: str) -> list[str]:
    """The messages of a session without presence, which reading them changes."""
    lines = shell("session", "log", session, "--json").out.splitlines()
    return [line for line in lines if '"type":"presence.update"' not in line]


def test_an_act_of_someone_who_is_no_member_is_refused_and_joins_nothing(
    alice: UserShell, session: str, shell: Callable[..., UserShell], claude: Session
) -> None:
    bob = shell("bob", "admin")
    (bob.cwd / "notes.md").write_text("Notes\n")
    before = messages_of(alice, session)

    acts = (
        ("prompt", session, claude.me, "Hello"),
        ("stop", session, "--message", "Stop"),
        ("fork", session, "Grammar"),
        ("merge", session, "grammar"),
        ("context", session, "add", "notes", "notes.md"),
        ("context", session, "remove", "notes"),
    )
    for act in acts:
        ran = bob("session", *act)
        assert ran.code == 4, ran
        assert f"`accord session join {session}` makes you one" in ran.err

    assert messages_of(alice, session) == before
    bob.output_of("session", "join", session)
    bob.output_of("session", "leave", session)
    former = bob("session", "prompt", session, claude.me, "Hello")
    assert (former.code, "not a member of" in former.err) == (3, True)
    members = alice("session", "show", session, "--json").json["members"]
    assert [member["id"] for member in members] == ["alice", claude.me]
