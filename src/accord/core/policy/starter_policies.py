"""Starter policies: what common commands of a stack are, for a person to review once."""

from collections.abc import Collection
from typing import NamedTuple

HEAD = """\
# How Accord classes the calls of coding agents in this repository.
#
# It says what a call is. Which categories wait for people is a setting of the session. A read
# (`file_read`) waits in no session with the usual settings, so list here only what you would let
# run unseen. Nothing in this file counts until a person signs it: `accord policy sign`.
# `accord policy check` explains it, `accord policy test 'COMMAND'` classes one command.
#
# In `run`, `*` is one word that is no option, and `**` at the end any words.

version = 1

# Variables that may stand before a command, such as `CI=1 make test`.
environment = ["CI", "NO_COLOR", "FORCE_COLOR"]

[reads]
# Directories outside the worktree that may be read; everything else there is `secret_access`.
outside = [{outside}]
# Files inside that are secrets, beside `.env`, keys and credentials.
secret = ["secrets/**"]

# Files whose change decides what is built, shipped or checked.
[[path]]
write = [".github/**", ".gitlab-ci.yml", "Dockerfile", "docker-compose*.yml"]
category = "deploy"
risk = "high"
reason = "changes what is built or shipped"

[[command]]
run = ["git add **", "git commit **"]
category = "file_write"
risk = "low"
reason = "records work in this repository"
"""


class Stack(NamedTuple):
    """A language or tool: the file that shows it, its rules, and where its packages are."""

    marker: str
    rules: str
    outside: tuple[str, ...] = ()


STACKS: dict[str, Stack] = {
    "python": Stack(
        "pyproject.toml",
        """
# Python. Tests run the code of this repository, so they are no reads.
[[command]]
run = ["pytest **", "python -m pytest **", "tox **", "ruff **", "mypy **", "uv run pytest **"]
category = "shell_execute"
risk = "low"
reason = "runs tests and checks"

[[path]]
write = ["pyproject.toml", "requirements*.txt", "uv.lock", "poetry.lock"]
category = "file_write"
risk = "high"
reason = "changes what is installed"
""",
        ("/usr/lib/python3", "/usr/local/lib/python3"),
    ),
    "node": Stack(
        "package.json",
        """
# Node. A script of package.json can be anything; the file itself is guarded below.
[[command]]
run = ["npm test **", "npm run test **", "npm run lint **", "npx tsc --noEmit **", "npx eslint **"]
category = "shell_execute"
risk = "low"
reason = "runs tests and checks"

[[path]]
write = ["package.json", "package-lock.json", "pnpm-lock.yaml", "yarn.lock"]
category = "file_write"
risk = "high"
reason = "changes what is installed and what scripts run"
""",
    ),
    "rust": Stack(
        "Cargo.toml",
        """
# Rust. A build runs build scripts and macros, so it is no read.
[[command]]
run = ["cargo test **", "cargo build **", "cargo check **", "cargo clippy **", "cargo fmt **"]
category = "shell_execute"
risk = "low"
reason = "builds and tests"

[[path]]
write = ["Cargo.toml", "Cargo.lock", "build.rs", ".cargo/**"]
category = "file_write"
risk = "high"
reason = "changes what is built and installed"
""",
        ("~/.cargo/registry/src",),
    ),
    "go": Stack(
        "go.mod",
        """
# Go.
[[command]]
run = ["go test **", "go build **", "go vet **", "gofmt **", "golangci-lint run **"]
category = "shell_execute"
risk = "low"
reason = "builds and tests"

[[path]]
write = ["go.mod", "go.sum"]
category = "file_write"
risk = "high"
reason = "changes what is built and installed"
""",
        ("~/go/pkg/mod", "/usr/local/go/src"),
    ),
}


def stacks_in(files: Collection[str]) -> tuple[str, ...]:
    """The stacks whose files are at the top of a repository."""
    return tuple(name for name, stack in STACKS.items() if stack.marker in files)


def starter_policy(stacks: Collection[str]) -> str:
    """The text of a policy for these stacks."""
    chosen = [STACKS[name] for name in STACKS if name in stacks]
    outside = ", ".join(f'"{path}"' for stack in chosen for path in stack.outside)
    return HEAD.replace("{outside}", outside) + "".join(stack.rules for stack in chosen)
