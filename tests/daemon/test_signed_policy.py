"""The policy that an operator signed decides which calls of a host wait."""

import secrets
from pathlib import Path

import pytest

from accord.core.policy.policy_toml import digest_of
from tests.helpers.hosts.gated_agent import GatedAgent, People
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves

TOUCH = "touch made.txt"
LIVE_WITH = """version = 1

[reads]
secret = ["private/**"]

[[command]]
run = ["touch *"]
category = "file_write"
risk = "low"
"""


@pytest.fixture
def people(shared_server: ServerProcess) -> People:
    """A session in which deployments alone need approval."""
    return People(shared_server, require_approval_for=["deploy", "secret_access"])


def make_agent(people: People, home: Path, name: str, repository: str) -> GatedAgent:
    root = home / name
    root.mkdir(exist_ok=True)
    return GatedAgent(people, home, "claude-code", root, repository=repository)


def sign(people: People, repository: str, text: str = LIVE_WITH) -> None:
    request = {"repository": repository, "digest": digest_of(text), "text": text}
    people.server.admin_request("POST", "/admin/policies", request)


def test_without_a_signed_policy_all_but_reads_waits(
    people: People, shared_home: Path, tmp_path: Path
) -> None:
    agent = make_agent(people, shared_home, tmp_path.name, "")

    assert agent.ask("ls").output == ""
    assert agent.ask(TOUCH).decision == "deny"


def test_policy_file_in_the_repository_counts_for_nothing(
    people: People, shared_home: Path, tmp_path: Path
) -> None:
    agent = make_agent(people, shared_home, tmp_path.name, f"repo-{secrets.token_hex(4)}")
    (agent.root / ".accord").mkdir()
    (agent.root / ".accord" / "policy.toml").write_text(LIVE_WITH)

    assert agent.ask(TOUCH).decision == "deny"


def test_call_that_needs_no_gate_is_recorded_once_it_ran(
    people: People, shared_home: Path, tmp_path: Path
) -> None:
    repository = f"repo-{secrets.token_hex(4)}"
    sign(people, repository)
    agent = make_agent(people, shared_home, tmp_path.name, repository)
    payload = agent.shell_payload(TOUCH)

    assert agent.hook("pre-tool", payload).output == ""
    assert people.history("tool.propose") == []
    agent.hook("post-tool", {**payload, "tool_response": {"stdout": "", "stderr": ""}})

    assert len(people.history("tool.propose")) == len(people.history("tool.result")) == 1
    assert people.state.gates == ()


def test_signed_policy_makes_a_read_wait(people: People, shared_home: Path, tmp_path: Path) -> None:
    repository = f"repo-{secrets.token_hex(4)}"
    sign(people, repository)
    agent = make_agent(people, shared_home, tmp_path.name, repository)

    assert agent.ask("cat notes.txt").output == ""
    assert agent.ask("cat private/key.pem").decision == "deny"


def test_policy_of_another_repository_does_not_count(
    people: People, shared_home: Path, tmp_path: Path
) -> None:
    """The id comes from the connection, whatever an agent writes into git's configuration."""
    other = f"repo-{secrets.token_hex(4)}"
    sign(people, other)
    agent = make_agent(people, shared_home, tmp_path.name, f"repo-{secrets.token_hex(4)}")
    (agent.root / ".git").mkdir()
    (agent.root / ".git" / "config").write_text(f"[accord]\n\trepo = {other}\n")

    assert agent.ask(TOUCH).decision == "deny"


@proves("PVP-20.4-1", "PVP-20.4-3")
def test_risky_call_waits_though_the_session_gates_other_categories(
    people: People, shared_home: Path, tmp_path: Path
) -> None:
    repository = f"repo-{secrets.token_hex(4)}"
    sign(people, repository)
    agent = make_agent(people, shared_home, tmp_path.name, repository)

    assert agent.ask(TOUCH).output == ""
    assert agent.ask("rm -rf build").decision == "deny"
    (gate,) = people.state.gates
    assert gate.action is not None
    assert (gate.action.category, gate.action.risk_level) == ("file_delete", "high")


def test_older_signed_policy_put_back_into_the_repository_counts_for_nothing(
    people: People, shared_home: Path, tmp_path: Path
) -> None:
    repository = f"repo-{secrets.token_hex(4)}"
    sign(people, repository)
    sign(people, repository, LIVE_WITH.replace('"low"', '"high"'))
    agent = make_agent(people, shared_home, tmp_path.name, repository)
    (agent.root / ".accord").mkdir()
    (agent.root / ".accord" / "policy.toml").write_text(LIVE_WITH)

    assert agent.ask(TOUCH).decision == "deny"
