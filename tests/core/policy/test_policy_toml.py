"""Policies: what a file says, what is wrong with one, and how rules class calls."""

import pytest
from msgspec.structs import replace

from accord.core.policy.call_classification import classify
from accord.core.policy.policy_toml import (
    MAX_POLICY_BYTES,
    NO_POLICY,
    PolicyError,
    digest_of,
    parse_policy,
    policy_fields,
)
from accord.core.policy.reported_call import CallKind, Place, reported_metadata, reported_of
from accord.core.policy.starter_policies import STACKS, stacks_in, starter_policy
from accord.shell_parser import parse_shell
from tests.core.policy.calls import (
    HOME,
    PLACE,
    WORKTREE,
    call_of,
    class_of,
    class_of_command,
    shell,
)

TEXT = """version = 1
environment = ["CI"]
[reads]
outside = ["~/.cargo/registry", "/usr/include"]
secret = ["keys/**"]
[[command]]
run = ["pytest **", "make test", "deploy *"]
category = "shell_execute"
risk = "low"
reason = "tests"
[[command]]
run = ["lint *"]
category = "file_read"
risk = "low"
[[path]]
write = [".github/**", "*.lock"]
category = "deploy"
risk = "high"
[[fetch]]
hosts = ["docs.example.org", "*.example.com"]
category = "file_read"
risk = "low"
[[tool]]
server = "github"
tools = ["get_*"]
category = "external_api"
risk = "low"
"""
POLICY = parse_policy(TEXT)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("version = ", 0, "Invalid value"),
        ("version = 1\nx = [", 0, "end of document"),
        ("version = 1\nx = ]", 2, "Invalid value"),
        ("x = 1", 0, "version"),
        ("version = 2", 1, "Invalid"),
        ("version = 1\nwhat = 1", 2, "what"),
        ('version = 1\n"what" = 1', 0, "what"),
        ('version = 1\n[[command]]\n"category" = "odd"', 2, "odd"),
        ('version = 1\n[[command]]\n"category" = "odd"\n[[path]]\ncategory = "x"', 2, "odd"),
        ("version = 1\nsigned = false", 2, "signed"),
        ('version = 1\n[[command]]\nrun = ["a"]\ncategory = "odd"', 4, "odd"),
        ('version = 1\n[[command]]\nrun = ["a"]\ncategory = "all"', 4, "all"),
        ('version = 1\n[[command]]\nrun = ["a"]\ncategory = "file_read"\nrisk = "high"', 4, "low"),
        ('version = 1\n[[path]]\nwrite = "a"', 3, "array"),
        ('version = 1\n[[path]]\nwrite=["a"]\ncategory="file_read"\nrisk="low"', 4, "written"),
        ('version = 1\n[[command]]\ncategory = "deploy"\nrun = ["** a"]', 4, "program"),
        ('version = 1\n[[command]]\ncategory = "deploy"\nrun = ["a ** b"]', 4, "end"),
        ('version = 1\n[[command]]\ncategory = "deploy"\nrun = ["a; b"]', 4, "quotes"),
        ('version = 1\n[[command]]\nrun = ["a"]\ncategory = "deploy"\nodd = 1', 5, "odd"),
        ('version = 1\n[[command]]\nrun = ["a"]', 2, "category"),
        ('version = 1\n[reads]\noutside = ["/"]', 3, "root"),
        ('version = 1\n[reads]\noutside = ["sub"]', 3, "name a directory"),
        ("#" * (MAX_POLICY_BYTES + 1), 0, "larger"),
    ],
)  # fmt: skip
def test_an_error_names_its_line(text: str, line: int, problem: str) -> None:
    with pytest.raises(PolicyError) as wrong:
        parse_policy(text)

    assert wrong.value.line == line, wrong.value
    assert problem in wrong.value.problem


@pytest.mark.parametrize(
    ("command", "category", "risk"),
    [
        ("pytest -q", "shell_execute", "low"),
        ("CI=1 pytest", "shell_execute", "low"),
        ("X=1 pytest", "shell_execute", "high"),
        ("make test", "shell_execute", "low"),
        ("make test x", "shell_execute", "medium"),
        ("deploy prod", "shell_execute", "low"),
        ("deploy --force", "shell_execute", "medium"),
        ("pytest $x", "shell_execute", "medium"),
        ("pytest && rm x", "file_delete", "high"),
        ("pytest > uv.lock", "deploy", "high"),
        ("pytest > out", "shell_execute", "medium"),
        ("lint a", "file_read", "low"),
        ("lint a; $(x)", "shell_execute", "high"),
        ("cat /usr/include/a.h", "file_read", "low"),
        ("cat ~/.cargo/registry/x", "file_read", "low"),
        ("cat keys/a", "secret_access", "high"),
        ("cp a .github/x", "deploy", "high"),
        ("git push", "deploy", "high"),
        ("git -c a=b status", "shell_execute", "high"),
        ("git checkout -f", "file_write", "high"),
        ("git odd", "shell_execute", "medium"),
        ("/opt/tool x", "shell_execute", "high"),
        ("npm publish", "deploy", "high"),
        ("npm install", "network_request", "medium"),
        ("echo x > .git/hooks/pre-commit", "file_write", "critical"),
        ("echo x > .env", "secret_access", "high"),
        ("sudo ls", "shell_execute", "critical"),
        ("echo x | xargs rm", "file_delete", "high"),
        ("find . -exec rm {} +", "file_delete", "high"),
        ("find . -delete", "file_delete", "high"),
        ("bash -c 'rm x'", "file_delete", "high"),
        ('bash -c "$x"', "shell_execute", "high"),
        ("eval 'rm x'", "file_delete", "high"),
        ("bash x.sh", "shell_execute", "medium"),
        ("python -c pass", "shell_execute", "high"),
        ("X=1", "shell_execute", "medium"),
        ("bash -c 'CI=1 ls'", "shell_execute", "high"),
        ("nice " * 5 + "rm x", "file_delete", "high"),
        ("nice " * 9 + "rm x", "shell_execute", "high"),
        ("timeout -- 5 rm x", "file_delete", "high"),
        ("find . -exec rm", "file_delete", "high"),
        ("X=$(x) true", "shell_execute", "medium"),
        ("cat <<EOF\n$x\nEOF", "shell_execute", "medium"),
        ("# only a comment", "shell_execute", "high"),
        ("cd a; " * 9 + "ls", "shell_execute", "high"),
    ],
)
def test_rules_and_built_in_meanings_class_a_command(
    command: str, category: str, risk: str
) -> None:
    found = class_of_command(command, POLICY)

    assert (found.category, found.risk) == (category, risk), found


REFUSED = [
    "accord approve x", "accord reject x", "accord policy sign", "accord --url x approve",
    "accord token issue",
    "python -m accord approve", "uvx accord login x", "bash -c 'accord approve x'",
    "$x accord approve", "accord $(x) approve",
    "f() { accord approve; }", "echo $ACCORD_TOKEN", "cat $X/profiles.toml",
    "env accord approve", "env A=b accord approve", "sudo accord invite",
    "cat ~/.config/accord/profiles.toml", "cat $HOME/.config/accord/x",
    'cat "${HOME}/.config/accord/x"', "ls /run/user/1000/accord",
    "tar --directory=/home/ada/.config/accord -cf x .", "echo x > ~/.local/share/accord/x",
    "grep -r x ~", "rm -rf /home/ada", "find / -name x",
    "bash", "bash -i", "bash -s", "bash -", "sh -l", "bash /dev/stdin", "busybox", "busybox sh",
    "zsh", "python", "python3 -i x.py",
    "python -m pdb x.py", "node", "psql", "sqlite3 a.db", "redis-cli", "gdb x", "vim a",
    "nano a", "less a", "man ls", "top",
    "ssh host", "ssh -t host ls", "ssh -p 22 host", "mosh host ls", "docker run -it x",
    "docker exec -i x sh", "docker attach x",
    "su", "sudo -i", "sudo su", "nc host 1", "xargs rm", "at now", ". /dev/stdin", "git commit",
    "git rebase -i", "git add -p",
    "git difftool", "npm init", "screen", "tmux new",
]  # fmt: skip
NOT_REFUSED = [
    "uvx accord gates",
    "accord gates", "accord why a", "accord --version", "git commit -m 'accord approve'",
    "echo hi | bash", "bash x.sh",
    "python x.py", "python - <<EOF\nx\nEOF", "psql -c x", "sqlite3 a.db .tables",
    "redis-cli get x", "gdb --batch x", "ssh host ls",
    "docker run x", "docker ps", "sudo ls", "su -c ls", "echo x | nc host 1",
    "git commit --amend --no-edit", "git add a", "npm init -y",
    "emacs --batch x", "bash --version", "busybox ls", ". ./env.sh", "git commit -am x", "ls ~",
]  # fmt: skip


@pytest.mark.parametrize("command", REFUSED)
def test_what_decides_or_opens_a_prompt_is_refused(command: str) -> None:
    assert class_of_command(command).refusal, class_of_command(command)


@pytest.mark.parametrize("command", NOT_REFUSED)
def test_what_only_resembles_it_is_not_refused(command: str) -> None:
    assert not class_of_command(command).refusal, class_of_command(command)


@pytest.mark.parametrize(
    ("kind", "tool", "arguments", "category", "risk"),
    [
        ("read", "Read", {"file_path": f"{WORKTREE}/a"}, "file_read", "low"),
        ("read", "Grep", {"pattern": "x"}, "file_read", "low"),
        ("read", "Read", {"file_path": "/etc/passwd"}, "secret_access", "medium"),
        ("read", "Read", {"file_path": 1}, "shell_execute", "high"),
        ("read", "Read", {"path": "a", "command": "rm x"}, "shell_execute", "high"),
        ("read", "Read", {"paths": ["a", ".env"]}, "secret_access", "high"),
        ("write", "Write", {"file_path": "a"}, "file_write", "medium"),
        ("write", "Write", {"file_path": "../a"}, "file_write", "high"),
        ("write", "Write", {"file_path": "/dev/null"}, "file_read", "low"),
        ("write", "Write", {"file_path": ".claude/settings.json"}, "file_write", "critical"),
        ("write", "Write", {"file_path": "a/.claude/skills/b/SKILL.md"}, "file_write", "critical"),
        ("write", "Write", {"file_path": "a/.codex"}, "file_write", "critical"),
        ("write", "Write", {}, "shell_execute", "high"),
        ("patch", "apply_patch", {"command": "*** Update File: a\n"}, "file_write", "medium"),
        ("patch", "apply_patch", {"input": "*** Delete File: a\n"}, "file_delete", "high"),
        ("patch", "apply_patch", {"patch": "--- a/x.lock\n+++ b/x.lock\n"}, "deploy", "high"),
        ("patch", "apply_patch", {"patch": "--- /dev/null\n+++ b/new\n"}, "file_write", "medium"),
        ("patch", "apply_patch", {"patch": "nothing"}, "shell_execute", "high"),
        ("patch", "apply_patch", {"patch": "--- a/x", "input": "y"}, "shell_execute", "high"),
        ("fetch", "WebFetch", {"url": "https://docs.example.org/x"}, "file_read", "low"),
        ("fetch", "WebFetch", {"url": "https://a.example.com"}, "file_read", "low"),
        ("fetch", "WebFetch", {"url": "https://example.com.evil.org"}, "network_request", "medium"),
        ("fetch", "WebFetch", {}, "network_request", "medium"),
        ("mcp", "get_issue", {}, "external_api", "low"),
        ("mcp", "delete_repo", {}, "external_api", "medium"),
        ("other", "TodoWrite", {}, "file_read", "low"),
        ("other", "Unknown", {}, "shell_execute", "high"),
        ("other", "Skill", {"skill": "a"}, "shell_execute", "high"),
        ("other", "SlashCommand", {"command": "/a"}, "shell_execute", "high"),
        ("shell", "shell", {"argv": ["git", "status"]}, "file_read", "low"),
        ("shell", "shell", {"argv": ["ls"], "command": "rm x"}, "shell_execute", "high"),
        ("shell", "shell", {}, "shell_execute", "high"),
    ],
)  # fmt: skip
def test_policy_classifies_each_kind_of_call(
    kind: str, tool: str, arguments: dict[str, object], category: str, risk: str
) -> None:
    call = call_of(CallKind(kind), tool, arguments, replace(PLACE, mcp_server="github"))

    found = class_of(call, POLICY)

    assert (found.category, found.risk) == (category, risk), found


def test_links_are_followed_by_the_caller_and_unknown_ones_are_outside() -> None:
    link = f"{WORKTREE}/link"

    assert class_of(shell("cat link"), links={link: f"{HOME}/.ssh/id_rsa"}).risk == "high"
    assert class_of(shell("cat link"), links={link: "/etc/passwd"}).category == "secret_access"
    assert classify(shell("cat a"), NO_POLICY, parse_shell).category == "secret_access"
    assert classify(shell("echo > a"), NO_POLICY, parse_shell).risk == "high"


def test_subjects_are_what_a_standing_grant_can_match() -> None:
    def subjects(command: str) -> list[object]:
        return [each.run or each.write for each in class_of_command(command).subjects]

    assert subjects("pytest -q") == [("pytest", "-q")]
    assert subjects("git status && pytest") == [("pytest",)]
    assert subjects("pytest > out") == ["out", ("pytest",)]
    assert subjects("pytest $x") == subjects("pytest > /x") == []
    edit = call_of(CallKind.WRITE, "Edit", {"file_path": "src/a"})
    assert [each.write for each in class_of(edit).subjects] == ["src/a"]


def test_a_report_survives_the_wire() -> None:
    metadata = reported_metadata(shell("ls"), "repo", "codex")

    found = reported_of(metadata)
    assert found is not None
    assert (found.kind, found.repository, found.host) == (CallKind.SHELL, "repo", "codex")
    assert found.place == PLACE
    assert reported_of(None) is None
    assert Place("/", "/").resolved == {}


@pytest.mark.parametrize("stack", STACKS)
def test_starters_are_valid_policies(stack: str) -> None:
    text = starter_policy([stack])

    assert parse_policy(text).command
    assert stacks_in([STACKS[stack].marker]) == (stack,)
    assert policy_fields(parse_policy(text))["version"] == 1
    assert len(digest_of(text)) == 64
