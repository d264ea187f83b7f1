"""`accord session`, through a real server and on its files when it is gone."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accord.cli.session.quorum_parser import parse_quorum
from accord.client import Client, Session
from tests.helpers.clients.cli import CommandRun, UserShell, clean_environment, run_accord
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves

EVIL = "<script>alert(1)</script> \x1b[2J & co"


async def talk(server: ServerProcess, session: str, claude: Session) -> None:
    """Alice asks, the agent answers and runs something that needs no approval."""
    async with Client(server.url, token=server.issue_token("alice", "human", ("admin",))) as client:
        alice = await client.join(session, roles=["admin"], listen=False)
        prompt = await alice.prompt(f"Look at the parser {EVIL}", "claude")
        async with claude.respond(prompt) as out:
            for word in ("I ", "will ", "look."):
                await out.write(word)
        proposal = await claude.propose(
            "read_file", {"path": "parser.py"}, category="file_read", prompt=prompt
        )
        granted = await claude.decision(proposal)
        await claude.execute(granted)
        await claude.output(granted, "def parse():\n")
        await claude.output(granted, "    pass\n")
        await claude.result(granted, success=True, duration_ms=1200)


def envelopes(lines: str) -> list[Any]:
    return [json.loads(line) for line in lines.splitlines()]


def test_creating_prints_the_id_and_nothing_else(alice: UserShell) -> None:
    made = alice("session", "create", "--name", "First steps")

    assert (made.code, made.err) == (0, "")
    session = made.out.strip()
    assert alice("session", "list", "--json").json["sessions"][0]["id"] == session


def test_a_session_has_the_usual_rules_but_for_what_was_said(alice: UserShell) -> None:
    usual = alice.output_of("session", "create")
    other = alice.output_of(
        *("session", "create", "--id", "ses_other", "--require-approval-for", "deploy,database"),
        *("--quorum", "any 2 + label security 1", "--max-participants", "3", "--no-forks"),
        *("--ordering", "causal", "--on-participant-timeout", "wait"),
        *("--heartbeat-interval", "5", "--idle-timeout", "10", "--away-timeout", "20"),
    )

    assert alice("session", "show", usual, "--json").json["config"] == {
        "require_approval_for": [
            *("file_write", "file_delete", "shell_execute", "network_request"),
            *("deploy", "database", "secret_access", "external_api"),
        ],
        "default_gate_quorum": {"type": "any", "count": 1},
        "allow_forks": True,
        "max_participants": 10,
        "ordering_mode": "total",
        "on_participant_timeout": "wait",
        "heartbeat_interval_seconds": 30,
        "idle_timeout_seconds": 120,
        "away_timeout_seconds": 300,
    }
    assert other == "ses_other"
    assert alice("session", "show", other, "--json").json["config"] == {
        "require_approval_for": ["deploy", "database"],
        "default_gate_quorum": {
            "type": "all_of",
            "rules": [
                {"type": "any", "count": 2},
                {"type": "label", "label": "security", "count": 1},
            ],
        },
        "allow_forks": False,
        "max_participants": 3,
        "ordering_mode": "causal",
        "on_participant_timeout": "wait",
        "heartbeat_interval_seconds": 5,
        "idle_timeout_seconds": 10,
        "away_timeout_seconds": 20,
    }


@pytest.mark.parametrize(
    ("typed", "rule"),
    [
        ("any", {"type": "any", "count": 1}),
        ("any 3", {"type": "any", "count": 3}),
        ("2", {"type": "any", "count": 2}),
        (
            "2 + label legal",
            {
                "type": "all_of",
                "rules": [
                    {"type": "any", "count": 2},
                    {"type": "label", "label": "legal", "count": 1},
                ],
            },
        ),
        ("anyone", {"type": "any", "count": 1}),
        ("all", {"type": "all"}),
        ("everybody", {"type": "all"}),
        ("Everyone", {"type": "all"}),
        ("unanimous", {"type": "all"}),
        ("most", {"type": "majority"}),
        ("majority", {"type": "majority"}),
        ("role approver", {"type": "role", "role": "approver", "count": 1}),
        ("role approver 2", {"type": "role", "role": "approver", "count": 2}),
        ("label legal 1", {"type": "label", "label": "legal", "count": 1}),
        ("alice,bob", {"type": "specific", "participants": ["alice", "bob"]}),
        ("specific alice", {"type": "specific", "participants": ["alice"]}),
        ('{"type": "any", "count": 4}', {"type": "any", "count": 4}),
    ],
)
def test_a_quorum_is_typed_as_it_is_said(typed: str, rule: dict[str, object]) -> None:
    assert parse_quorum(typed) == rule


@proves("UNI-26")
@pytest.mark.parametrize(
    ("flags", "hint"),
    [
        (("--quorum", "any many"), "any N"),
        (("--quorum", "{"), "--quorum"),
        (("--quorum", ""), "--quorum"),
        (("--quorum", "role king 1"), "navigator"),
        (("--quorum", '{"type": "any"}'), "--quorum"),
        (("--require-approval-for", "everything"), "shell_execute"),
        (("--max-participants", "0"), "from 1 to 10000"),
        (("--idle-timeout", "5"), "heartbeat_interval < idle_timeout"),
        (("--id", "with space"), "session"),
    ],
)
def test_rules_that_make_no_sense_are_bad_input(
    flags: tuple[str, ...], hint: str, alice: UserShell
) -> None:
    ran = alice("session", "create", *flags)

    assert (ran.code, ran.out) == (2, "")
    assert hint in ran.err
    assert ran.err.count("\n") == 1


def test_an_empty_list_says_how_to_begin(alice: UserShell) -> None:
    assert "accord session create" in alice.output_of("session", "list")


async def test_the_list_and_the_portrait(alice: UserShell, session: str, claude: Session) -> None:
    listed = alice.output_of("session", "list").splitlines()
    assert listed[0].split() == ["SESSION", "NAME", "STATUS", "PEOPLE", "GATES", "OPENED"]
    assert listed[1].split()[:6] == [session, "Fix", "the", "parser", "active", "2"]

    shown = alice.output_of("session", "show", session)
    assert "Rules    everything but reading files needs 1 approval" in shown
    assert "claude agent, driver" in shown
    assert "No open gates" in shown


async def test_the_log_is_a_conversation(
    server: ServerProcess, alice: UserShell, session: str, claude: Session
) -> None:
    await talk(server, session, claude)

    lines = alice.output_of("session", "log", session).splitlines()
    told = [line[10:] if line[:2].isdigit() else line for line in lines[2:]]

    assert told == [
        "alice opened the session · Fix the parser",
        "claude joined as driver · an agent",
        "",
        "alice asks claude",
        r"          Look at the parser <script>alert(1)</script> \x1b[2J & co",
        "",
        "claude answers",
        "          I will look.",
        "",
        "claude proposes read_file (file_read, low risk)",
        "          │ {",
        '          │   "path": "parser.py"',
        "          │ }",
        "read_file may run, no gate needed",
        "claude runs read_file",
        "          │ def parse():",
        "          │     pass",
        "claude finished read_file in 1.2 s",
    ]


async def test_one_can_stand_at_an_earlier_moment(
    server: ServerProcess, alice: UserShell, session: str, claude: Session
) -> None:
    await talk(server, session, claude)
    said = [
        json.loads(line)
        for line in alice.output_of("session", "log", session, "--json").split("\n")
    ]
    prompt = next(each for each in said if each["type"] == "prompt.submit")

    then = envelopes(
        alice.output_of("session", "log", session, "--json", "--at", str(prompt["seq"]))
    )

    assert then == [each for each in said if each["seq"] <= prompt["seq"]]
    assert alice.output_of("session", "log", session, "--at", str(prompt["seq"])).endswith("& co")


async def test_moments_have_numbers(alice: UserShell, session: str) -> None:
    assert "alice opened the session [1] · Fix" in alice.output_of(
        "session", "log", "--numbers", session
    )
    past = alice("session", "log", session, "--at", "99")
    assert past.err.startswith("accord: there is no message 99 yet; the last is ")
    assert alice("session", "log", session, "--at", "0").code == 2


async def test_following_ends_with_the_session(
    server: ServerProcess, alice: UserShell, session: str, claude: Session
) -> None:
    await talk(server, session, claude)
    alice.output_of("session", "end", session, "--reason", "Merged", "--state", "aborted")

    told = alice.output_of("session", "log", session, "--follow")

    assert told.endswith("alice ended the session: aborted · Merged")


def test_following_outlasts_a_killed_server_and_tells_everything_once(
    server: ServerProcess, alice: UserShell, session: str
) -> None:
    words = [sys.executable, "-m", "accord", "session", "log", session, "--follow", "--json"]
    with subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=alice.cwd,
        env=clean_environment(**alice.env),
    ) as watch:
        assert watch.stdout
        assert watch.stderr
        first = json.loads(watch.stdout.readline())
        server.kill()
        away = watch.stderr.readline()
        server.restart()
        alice.output_of("session", "end", session, "--reason", "Merged")
        # Not `communicate`, which knows nothing of what was read ahead of a line.
        out, err = watch.stdout.read(), watch.stderr.read()

    goes_on = "retrying until it answers; Ctrl-C stops"
    assert away == f"accord: {server.url} cannot be reached; {goes_on}\n"
    assert watch.returncode == 0
    assert err.splitlines() == [
        f"accord: {server.url} answers again",
        "accord: the session has ended (completed); nothing more will follow",
    ]
    told = [first, *envelopes(out)]
    assert told == envelopes(alice.output_of("session", "log", session, "--json"))


async def test_the_page_is_one_file_in_which_nothing_runs(
    server: ServerProcess, alice: UserShell, session: str, claude: Session, tmp_path: Path
) -> None:
    await talk(server, session, claude)
    file = tmp_path / "page.html"

    assert alice("session", "export", session, "--html", "--output", str(file)).out == ""

    page = file.read_text("utf-8")
    assert page == alice("session", "export", session, "--html").out
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; \\x1b[2J &amp; co" in page
    assert "I will look." in page
    for outside in ("http://", "https://", "src=", "@import", "url("):
        assert outside not in page


async def test_the_export_is_markdown_or_json(
    server: ServerProcess, alice: UserShell, session: str, claude: Session
) -> None:
    await talk(server, session, claude)

    text = alice.output_of("session", "export", session)
    assert text.startswith("# Fix the parser\n")
    assert "```text\ndef parse():\n    pass\n```" in text
    assert "<script" not in text.replace("\\<script", "")

    whole = alice("session", "export", session, "--json").json
    assert whole["session"]["id"] == session
    assert whole["messages"][0]["type"] == "session.create"


async def test_the_files_tell_the_same_when_no_server_answers(
    server: ServerProcess, alice: UserShell, session: str, claude: Session
) -> None:
    await talk(server, session, claude)
    words = (("log", session), ("log", session, "--json"), ("export", session))
    before = [alice.output_of("session", *verb) for verb in words]
    server.kill()

    dead = alice("session", "log", session, ACCORD_HOME=str(server.home))
    assert (dead.code, dead.out) == (6, "")  # an address that was chosen is never replaced
    here = {"ACCORD_HOME": str(server.home), "ACCORD_URL": ""}
    after = [alice("session", *verb, **here) for verb in words]

    assert all("does not answer; reading" in ran.err for ran in after)
    assert after[0].out.strip() == before[0]
    assert set(after[1].out.splitlines()) >= set(before[1].splitlines())
    assert after[2].out.splitlines()[6:] == before[2].splitlines()[6:]
    listed = alice("session", "list", "--data-dir", str(server.home))
    assert (listed.code, listed.err) == (0, "")
    assert session in listed.out
    assert "--expect" in alice("session", "export", session, "--html", **here).out


def test_a_session_is_named_by_the_environment(alice: UserShell, session: str) -> None:
    assert session in alice.output_of("session", "show", ACCORD_SESSION=session)

    ran = alice("session", "show")
    assert ran.code == 2
    assert "ACCORD_SESSION" in ran.err


@proves("UNI-26")
def test_who_says_no_decides_the_exit_code(
    alice: UserShell, session: str, shell: Callable[..., UserShell], server: ServerProcess
) -> None:
    bob = shell("bob", "driver")

    def ends(ran: CommandRun, code: int) -> None:
        assert (ran.code, ran.out) == (code, ""), ran
        assert ran.err.startswith("accord: ")
        assert ran.err.count("\n") == 1

    ends(alice("session", "show", session, ACCORD_TOKEN=""), 3)
    ends(alice("session", "show", session, ACCORD_TOKEN="no.such.token"), 3)
    ends(bob("session", "show", session), 4)
    ends(bob("session", "end", session), 4)
    ends(alice("session", "log", "ses_nowhere"), 4)
    ends(alice("session", "end", "ses_nowhere"), 4)
    alice.output_of("session", "end", session)
    ends(alice("session", "end", session), 5)
    ends(alice("session", "create", "--id", session), 5)
    server.kill()
    ends(alice("session", "create"), 6)
    ends(alice("session", "list"), 6)


def test_on_trust_one_says_who_one_is(open_server: ServerProcess, tmp_path: Path) -> None:
    here = {"ACCORD_URL": open_server.url, "ACCORD_HOME": str(tmp_path / "none")}

    session = run_accord("session", "create", "--as", "carol", cwd=tmp_path, **here).out.strip()

    shown = run_accord("session", "show", session, "--as", "carol", "--json", cwd=tmp_path, **here)
    assert [each["id"] for each in shown.json["members"]] == ["carol"]
    assert run_accord("session", "show", session, "--as", "dave", cwd=tmp_path, **here).code == 4


def test_an_ended_session_has_nobody_in_it_any_more(alice: UserShell, session: str) -> None:
    assert "Absent   gates wait for members who are away for 5 min" in alice.output_of(
        "session", "show", session
    )
    alice.output_of("session", "end", session)

    shown = alice.output_of("session", "show", session)

    assert "People   none; the session ended with 1" in shown
    assert "(disconnected)" not in shown
