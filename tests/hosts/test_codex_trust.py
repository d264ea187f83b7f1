"""Codex runs our hooks only if the person says so, and is not called gated before."""

import os
import tomllib
from pathlib import Path

import pytest

from tests.helpers.hosts.connecting_shell import ConnectingShell
from tests.helpers.hosts.scripted_model.script import Script
from tests.helpers.hosts.scripted_model.server import serve
from tests.helpers.hosts.table import chosen_hosts
from tests.helpers.servers.server_process import ServerProcess
from tests.hosts.conftest import MakeAgent
from tests.hosts.test_connect_pages import install_program

pytestmark = [
    pytest.mark.network,
    pytest.mark.timeout(600),
    pytest.mark.skipif("codex" not in chosen_hosts(), reason="Codex is not chosen"),
]

WRITE_AND_TRUST, WRITE_ALONE = "y\ny\n", "y\nn\n"


def trusted_hooks(shell: ConnectingShell) -> dict[str, object]:
    """The trust that Codex' settings hold."""
    settings = tomllib.loads((shell.home / ".codex" / "config.toml").read_text("utf-8"))
    found: dict[str, object] = settings["hooks"].get("state", {})
    return found


def test_only_a_yes_at_the_terminal_makes_codex_trust_our_hooks(
    server: ServerProcess, make_agent: MakeAgent, tmp_path: Path
) -> None:
    with serve(Script({})) as model:
        agent = make_agent("codex", model, None)
        agent.prepare()
        path = f"{install_program(agent)}:{os.environ['PATH']}"
        shell = ConnectingShell(server, tmp_path / "person", "ann", PATH=path)

        code, shown = shell.on_terminal(WRITE_ALONE, "connect", "codex")
        assert "Trust these hooks?" in shown
        assert "NOTHING IS GATED" in shown
        assert code == 5
        assert trusted_hooks(shell) == {}
        checks = shell.json("connect", "codex", "--check", code=5)["checks"]
        assert next(each for each in checks if each["about"] == "trust")["state"] == "fail"

        code, shown = shell.on_terminal(WRITE_AND_TRUST.partition("\n")[2], "connect", "codex")
        assert code == 0, shown
        assert trusted_hooks(shell) != {}
        checks = shell.json("connect", "codex", "--check")["checks"]
        assert next(each for each in checks if each["about"] == "trust")["state"] == "ok"
        shell("daemon", "stop")
