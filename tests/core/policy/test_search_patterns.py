"""Search tools of hosts: their patterns of files count like the files."""

from typing import Any

import pytest
from msgspec.structs import replace

from accord.core.policy.path_rules import PathRules
from accord.core.policy.policy_toml import NO_POLICY, parse_policy
from accord.core.policy.reported_call import CallKind
from accord.core.policy.search_patterns import MAX_ALTERNATIVES, alternatives
from tests.core.policy.calls import HOME, PLACE, WORKTREE, call_of, class_of, class_of_command

READS: list[tuple[str, dict[str, Any]]] = [
    ("Glob", {"pattern": "**/*.py"}),
    ("Glob", {"pattern": "src/*.{ts,tsx}", "path": "web"}),
    ("Glob", {"pattern": f"{WORKTREE}/src/**"}),
    ("Glob", {"pattern": "**/.env"}),  # names alone
    ("Glob", {}),
    ("Grep", {"pattern": "../x", "glob": "*.{ts,tsx}"}),
    ("Grep", {"pattern": "x", "glob": "*.json"}),
    ("Grep", {"pattern": "x", "path": "src"}),
    ("grep_search", {"pattern": "x", "include_pattern": "src/**/*.py"}),
    ("read_many_files", {"include": ["README.md", "src/*.py"]}),
]
LEADS_OUT: list[tuple[str, dict[str, Any]]] = [
    ("Glob", {"pattern": "/etc/*"}),
    ("Glob", {"pattern": "../**"}),
    ("Glob", {"pattern": "src/../../x"}),
    ("Glob", {"pattern": "~/x"}),
    ("Glob", {"pattern": "{/etc/*,a}"}),
    ("Glob", {"pattern": "a{,/../../x}"}),
    ("Glob", {"pattern": ".{.,}/x"}),
    ("Glob", {"pattern": "{a,{b,..}}/x"}),
    ("Glob", {"pattern": "@(..)/x"}),
    ("Glob", {"pattern": "\\../x"}),
    ("Glob", {"pattern": "{a,b}" * 7}),
    ("Glob", {"pattern": "*", "path": "/etc"}),
    ("glob", {"pattern": "/etc/*", "dir_path": "src"}),
    ("read_many_files", {"include": ["a", "../b"]}),
]
FINDS_SECRETS: list[tuple[str, dict[str, Any]]] = [
    ("Grep", {"pattern": ".", "glob": ".env"}),
    ("Grep", {"pattern": ".", "glob": ".e*"}),
    ("Grep", {"pattern": ".", "glob": "**/*"}),
    ("Grep", {"pattern": ".", "glob": "{a,.ENV}"}),
    ("Grep", {"pattern": ".", "glob": "cred*.json"}),
    ("Grep", {"pattern": ".", "glob": "*.pem"}),
    ("Grep", {"pattern": ".", "glob": "*.key", "path": "src"}),
    ("search_file_content", {"pattern": ".", "include": ".ssh/*"}),
    ("read_many_files", {"include": ["README.md", ".npmrc"]}),
]


def found(tool: str, arguments: dict[str, Any]) -> Any:
    return class_of(call_of(CallKind.READ, tool, arguments))


@pytest.mark.parametrize(("tool", "arguments"), READS)
def test_search_in_the_worktree_is_a_read(tool: str, arguments: dict[str, Any]) -> None:
    assert found(tool, arguments).is_read


@pytest.mark.parametrize(("tool", "arguments"), LEADS_OUT)
def test_pattern_that_leads_out_is_no_read(tool: str, arguments: dict[str, Any]) -> None:
    assert found(tool, arguments).category == "secret_access"


@pytest.mark.parametrize(("tool", "arguments"), FINDS_SECRETS)
def test_pattern_that_finds_secrets_is_no_read(tool: str, arguments: dict[str, Any]) -> None:
    result = found(tool, arguments)

    assert (result.category, result.risk) == ("secret_access", "high")
    assert "secrets" in result.explanation


def test_secrets_of_the_policy_are_found_by_patterns() -> None:
    policy = parse_policy('version = 1\n[reads]\nsecret = ["private/**", "Payroll*"]\n')

    for glob in ("private/*", "pay*"):
        call = call_of(CallKind.READ, "Grep", {"pattern": ".", "glob": glob})
        assert class_of(call, policy).category == "secret_access"


@pytest.mark.parametrize("pattern", [1, ["a", 1], {"a": 1}])
def test_pattern_that_is_no_text_is_gated(pattern: object) -> None:
    assert found("Glob", {"pattern": pattern}).category == "shell_execute"


def test_number_of_ways_to_read_a_pattern_is_bounded() -> None:
    assert alternatives("{a,b}/{c,{d,e}}") is not None
    assert alternatives("{a,b}" * 7) is None
    assert alternatives("{" + "a," * MAX_ALTERNATIVES + "}") is None


# What a glob of a shell stands for, as the caller found it


def test_glob_that_stands_for_a_secret_is_no_read() -> None:
    """A caller that looks at the disk names the files for which there are rules."""
    call = call_of(CallKind.SHELL, "Bash", {"command": "cat ./.e*"})
    pattern, secret = f"{WORKTREE}/.e*", f"{WORKTREE}/.env"

    assert class_of(call).is_read
    assert class_of(call, links={pattern: secret}).category == "secret_access"


@pytest.mark.parametrize(
    ("name", "special"),
    [(".env", True), (".GIT/hooks/x", True), ("docs/a.md", True), ("src/a.py", False)],
)
def test_paths_that_rules_name_are_special(name: str, *, special: bool) -> None:
    text = 'version = 1\n[[path]]\nwrite = ["docs/**"]\ncategory = "file_write"\nrisk = "low"\n'
    rules = PathRules(PLACE, parse_policy(text))

    assert rules.is_special(f"{HOME}/.config/accord/profiles.toml")
    assert rules.is_special(f"{WORKTREE}/{name}") is special


@pytest.mark.parametrize("command", ["cat .ENV", "cat sub/ID_RSA", "cat .Git/Config"])
def test_secrets_are_secrets_in_any_case(command: str) -> None:
    """Some file systems ignore it."""
    assert class_of_command(command).category == "secret_access"


def test_accords_own_directories_are_refused_in_any_case() -> None:
    assert class_of_command(f"cat {HOME}/.Config/Accord/profiles.toml").refusal
    own = replace(PLACE, protected=(f"{HOME}/.config/Accord",))
    call = call_of(CallKind.READ, "Read", {"file_path": f"{HOME}/.config/accord/x"}, own)
    assert class_of(call, NO_POLICY).refusal


def test_parent_of_a_link_is_the_parent_of_what_it_stands_for() -> None:
    link = f"{WORKTREE}/link"
    call = call_of(CallKind.SHELL, "Bash", {"command": "cat link/../x"})

    assert class_of(call).is_read
    assert f"{HOME}/x" in class_of(call, links={link: f"{HOME}/other"}).explanation
