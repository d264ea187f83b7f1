"""Arguments with which a model says where its command runs count as that directory."""

import secrets

import pytest

from tests.daemon.conftest import MakeAgent
from tests.daemon.test_signed_policy import sign
from tests.helpers.hosts.gated_agent import GatedAgent, HookAnswer, People

WORKFLOWS = """version = 1

[[path]]
write = [".github/workflows/**"]
category = "deploy"
risk = "high"
"""
KEYS = [("gemini", "dir_path"), ("gemini", "directory"), ("cursor", "working_directory")]


def ask(agent: GatedAgent, command: str, key: str, directory: object) -> HookAnswer:
    """The answer to a command that is to run in a directory."""
    return agent.ask(command, tool_input={"command": command, key: directory})


@pytest.mark.parametrize(("host", "key"), KEYS)
def test_command_in_a_directory_of_secrets_is_no_read(
    make_agent: MakeAgent, people: People, host: str, key: str
) -> None:
    agent = make_agent(host)
    (agent.root / ".ssh").mkdir()
    (agent.root / "src").mkdir()

    assert ask(agent, "cat config", key, "src").decision != "deny"
    assert ask(agent, "cat config", key, ".ssh").decision == "deny"
    (gate,) = people.state.gates
    assert gate.action is not None
    assert gate.action.category == "secret_access"
    assert gate.action.arguments["cwd"] == str(agent.root / ".ssh")


@pytest.mark.parametrize(("host", "key"), KEYS)
def test_accords_own_directory_is_refused_as_a_directory(
    make_agent: MakeAgent, people: People, host: str, key: str
) -> None:
    agent = make_agent(host)

    for directory in (agent.config, "../.config/accord", "src/../../.config/accord"):
        answer = ask(agent, "cat profiles.toml", key, str(directory))

        assert "No approval would change that" in answer.reason
    assert not people.state.gates


def test_rule_for_a_path_counts_in_a_chosen_directory(
    make_agent: MakeAgent, people: People
) -> None:
    repository = f"repo-{secrets.token_hex(4)}"
    sign(people, repository, WORKFLOWS)
    agent = make_agent("gemini", repository=repository)
    (agent.root / ".github" / "workflows").mkdir(parents=True)

    refused = ask(agent, "echo x > ci.yml", "dir_path", ".github/workflows")

    assert "deploy, risk high" in refused.reason


def test_link_is_followed_and_a_link_that_moved_is_another_call(
    make_agent: MakeAgent, people: People
) -> None:
    agent = make_agent("gemini")
    outside = agent.home / f"outside-{secrets.token_hex(4)}"
    (agent.root / "inside").mkdir()
    outside.mkdir()
    link = agent.root / "link"
    link.symlink_to(outside)
    assert ask(agent, "cat notes.txt", "dir_path", "link").decision == "deny"
    people.approve()
    link.unlink()
    link.symlink_to(agent.root / "inside")

    assert ask(agent, "cat notes.txt", "dir_path", "link").decision != "deny"
    assert ask(agent, "touch made", "dir_path", "link").decision == "deny"
    people.approve()
    link.unlink()
    link.symlink_to(outside)

    assert ask(agent, "touch made", "dir_path", "link").decision == "deny"


def test_directory_that_is_not_clear_is_refused(make_agent: MakeAgent, people: People) -> None:
    agent = make_agent("gemini")
    both = {"command": "ls", "dir_path": "src", "directory": ".ssh"}

    answers = [
        ask(agent, "ls", "dir_path", ["src"]),
        ask(agent, "ls", "dir_path", 1),
        agent.ask("ls", tool_input=both),
    ]

    assert all("no single directory" in answer.reason for answer in answers)
    assert not people.state.gates
