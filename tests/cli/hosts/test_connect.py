"""`accord connect` and `disconnect` at a shell: shown first, asked, undone to the byte."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from accord.hosts.adapters.table import HOSTS
from tests.helpers.hosts.connecting_shell import ACCORD, ConnectingShell, StartShell
from tests.helpers.servers.server_process import ServerProcess, run_server


@pytest.mark.parametrize("host", sorted(HOSTS))
def test_a_host_is_connected_and_disconnected_without_a_trace(
    host: str, shell_of: StartShell
) -> None:
    shell = shell_of(f"ann{len(host)}")
    settings = shell.home / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  // mine\n  "theme": "dark"\n}\n')
    before = shell.config_files()

    # Without the program nobody knows whether Codex trusts our hooks.
    done = shell.json("connect", host, "--yes", code=5 if host == "codex" else 0)

    assert done["written"]
    assert done["agent"] == f"ann{len(host)}-{host}"
    records = shell.home / ".config" / "accord" / "connections"
    record = json.loads((records / f"{done['connection']}.json").read_text())
    assert (record["agent"], record["session"]) == (done["agent"], done["session"])
    members = shell.json("session", "show", done["session"])["members"]
    agent = next(each for each in members if each["id"] == done["agent"])
    assert (agent["type"], agent["roles"]) == ("agent", ["driver"])
    assert done["agent"] in shell.devices()
    assert shell.config_files() != before
    assert record["key"] not in str(shell.config_files())
    status = subprocess.run(
        ["git", "status", "--porcelain"], cwd=shell.repo, capture_output=True, check=True
    )
    assert status.stdout == b"", "nothing is written into the repository"

    assert shell("disconnect", host, "--yes").code == 0
    assert shell.config_files() == before
    assert done["agent"] not in shell.devices()
    members = shell.json("session", "show", done["session"])["members"]
    assert done["agent"] not in {each["id"] for each in members}


def test_connecting_again_changes_nothing(shell_of: StartShell) -> None:
    shell = shell_of("bea")
    first = shell.json("connect", "gemini", "--yes")
    files = shell.config_files()

    again = shell.json("connect", "gemini")

    assert (again["connection"], again["files"]) == (first["connection"], [])
    assert shell.config_files() == files


def test_another_session_moves_the_same_agent(shell_of: StartShell) -> None:
    shell = shell_of("cid")
    first = shell.json("connect", "gemini", "--yes")
    other = shell("session", "create", "--name", "other").out.strip()

    second = shell.json("connect", "gemini", "--session", other)

    assert (second["connection"], second["session"]) == (first["connection"], other)
    members = shell.json("session", "show", other)["members"]
    assert first["agent"] in {each["id"] for each in members}


def test_an_agent_moves_into_a_fork_of_which_it_is_a_member_and_back(shell_of: StartShell) -> None:
    shell = shell_of("cora")
    missing = shell("connect", "gemini", "--yes", "--fork", "aside")
    assert (missing.code, "There is no fork aside" in missing.err) == (4, True)
    assert shell.config_files() == {}
    first = shell.json("connect", "gemini", "--yes")
    session, agent = first["session"], first["agent"]
    assert shell("session", "fork", session, "Without it").out.strip() == "without-it"
    stranger = shell("connect", "gemini", "--fork", "without-it")
    assert "is not in the fork without-it" in stranger.err
    assert f"accord session fork {session}" in stranger.err
    shell("session", "fork", session, "Aside", "--with", agent)

    moved = shell("connect", "gemini", "--fork", "aside")
    assert f"Gemini CLI is connected as {agent}, session {session}, fork aside." in moved.out
    assert shell.json("connect", "gemini")["fork"] == "aside", "it stays there"
    shell("session", "merge", session, "aside")
    merged = shell("connect", "gemini", "--fork", "aside")
    assert (merged.code, "was merged" in merged.err) == (5, True)
    assert shell.json("connect", "gemini", "--fork", "main")["fork"] is None


def test_two_that_connect_at_once_leave_one_connection_and_disconnect_to_the_byte(
    shell_of: StartShell,
) -> None:
    shell = shell_of("cyd")
    settings = shell.home / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"theme": "dark"}\n')
    before = shell.config_files()

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda _: shell("connect", "gemini", "--yes"), range(4)))

    assert [each.err for each in done if each.code] == []
    records = shell.home / ".config" / "accord" / "connections"
    assert len(list(records.glob("gemini-*.json"))) == 1
    assert settings.read_text().count('"BeforeTool"') == 1
    assert shell("disconnect", "gemini", "--yes").code == 0
    assert shell.config_files() == before


def test_a_dry_run_shows_the_diff_and_makes_nothing(shell_of: StartShell) -> None:
    shell = shell_of("dan")

    done = shell("connect", "claude-code", "--dry-run")

    assert done.code == 0
    assert '+            "onFailure": "block"' in done.out
    assert '+      "alwaysLoad": true' in done.out
    assert "claude --bare" in done.out
    assert shell.config_files() == {}
    assert shell.devices() == {"dan"}
    assert shell.json("session", "list")["sessions"] == []


def test_without_a_terminal_or_yes_nothing_is_written(shell_of: StartShell) -> None:
    shell = shell_of("eli")

    done = shell("connect", "codex")

    assert done.code == 2
    assert "add --yes" in done.err
    assert shell.config_files() == {}
    assert shell.devices() == {"eli"}


@pytest.mark.parametrize(("answer", "written"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_on_a_terminal_the_person_decides(answer: str, written: bool, shell_of: StartShell) -> None:
    who = f"fay{len(answer)}{written}"
    shell = shell_of(who)

    code, shown = shell.on_terminal(answer, "connect", "gemini")

    assert code == 0
    assert "Write this? [y/N]" in shown
    assert bool(shell.config_files()) is written
    assert (f"{who}-gemini" in shell.devices()) is written


def test_a_broken_file_is_one_sentence_and_nothing_is_made(shell_of: StartShell) -> None:
    shell = shell_of("gil")
    (shell.home / ".claude.json").write_text('{"mcpServers": {"accord": {}}}')

    done = shell("connect", "claude-code", "--yes")

    assert done.code == 5
    assert "already has mcpServers.accord" in done.err
    assert "Nothing was changed" in done.err
    assert set(shell.config_files()) == {".claude.json"}
    assert shell.devices() == {"gil"}


def test_outside_a_repository_and_without_a_connection_it_says_so(shell_of: StartShell) -> None:
    shell = shell_of("hal")

    outside = shell("connect", "codex", "--yes", cwd=shell.home)
    assert (outside.code, "not a git repository" in outside.err) == (4, True)
    for words in (("disconnect", "codex"), ("connect", "codex", "--check")):
        missing = shell(*words)
        assert (missing.code, "is not connected" in missing.err) == (4, True)


def test_an_observer_connects_nothing(shell_of: StartShell) -> None:
    shell = shell_of("ida", "observer")

    done = shell("connect", "codex", "--yes")

    assert done.code == 3
    assert shell.config_files() == {}


def test_an_agent_connects_nothing(shell_of: StartShell, house: ServerProcess) -> None:
    shell = shell_of("jon")
    token = house.issue_token("robot", "agent", ["driver"])
    own = {"ACCORD_TOKEN": token, "ACCORD_URL": house.url}
    done = subprocess.run(
        [*ACCORD, "connect", "codex", "--yes"],
        capture_output=True,
        text=True,
        cwd=shell.repo,
        env=shell.environment | own,
        check=False,
    )

    assert done.returncode == 3
    assert "only a person can connect a host" in done.stderr


def test_another_agent_id_needs_a_disconnect_first(shell_of: StartShell) -> None:
    shell = shell_of("kim")
    shell.json("connect", "gemini", "--yes", "--agent", "kims-gem")

    done = shell("connect", "gemini", "--yes", "--agent", "another")

    assert done.code == 5
    assert "accord disconnect gemini" in done.err


def test_disconnect_works_while_the_server_is_away(house: ServerProcess, tmp_path: Path) -> None:
    with run_server(tmp_path / "own") as server:
        shell = ConnectingShell(server, tmp_path / "lea", "lea")
        shell.json("connect", "gemini", "--yes")

    done = shell("disconnect", "gemini", "--yes")

    assert done.code == 0
    assert "did not confirm" in done.err
    assert shell.config_files() == {}


def test_the_mcp_server_speaks_as_the_agent_inside_the_repository_alone(
    shell_of: StartShell,
) -> None:
    shell = shell_of("max")
    shell.json("connect", "gemini", "--yes")
    settings = json.loads((shell.home / ".gemini" / "settings.json").read_text())
    server = settings["mcpServers"]["accord"]
    words = [server["command"], *server["args"]]

    inside = talk(words, shell.repo, shell.environment)
    outside = talk(words, shell.home, shell.environment)

    assert len(inside[2]["tools"]) == 14
    assert outside[2]["tools"] == []
    assert "not in a repository" in outside[1]["instructions"]
    assert not inside[3].get("isError")
    assert "no method" in outside[3]["message"]


def talk(words: list[str], cwd: Path, env: dict[str, str]) -> dict[int, Any]:
    """The results of a handshake, a listing and a call, by the id of the request."""
    about = {"name": "test", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
    requests: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": {"name": "whats_waiting", "arguments": {}}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in requests)
    done = subprocess.run(
        words, input=lines, capture_output=True, text=True, cwd=cwd, env=env, timeout=60, check=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    return {each["id"]: each.get("result") or each.get("error") for each in answers}
