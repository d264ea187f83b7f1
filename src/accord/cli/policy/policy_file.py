"""The policy of the repository around the working directory."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from accord.core.kernel.refusal import Reason, Refused

if TYPE_CHECKING:
    from accord.core.policy.policy_toml import Policy
    from accord.core.policy.reported_call import Place
    from accord.git.repository import Repository


def repository() -> "Repository":
    """The repository around the working directory; refuses where there is none."""
    from accord.git.repository import Repository

    found = Repository(Path.cwd())
    if found.try_text("rev-parse", "--show-toplevel") is None:
        raise Refused(
            Reason.NOT_FOUND, "This directory is not in a git repository; change into one first"
        )
    return found


def worktree() -> Path:
    """The top of the worktree, or the working directory outside a repository."""
    from accord.git.repository import Repository

    root = Repository(Path.cwd()).try_text("rev-parse", "--show-toplevel")
    return Path(root) if root else Path.cwd()


def policy_path(args: argparse.Namespace) -> Path:
    """The file that was named, else the repository's own."""
    from accord.core.policy.policy_toml import POLICY_FILE

    given: Path | None = args.file
    return given if given is not None else worktree() / POLICY_FILE


def read_text(path: Path) -> str:
    """The exact text of a policy file; refuses one that is missing or not text."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        detail = f"There is no {path}; `accord policy init` writes one for you to review"
        raise Refused(Reason.NOT_FOUND, detail) from None
    except UnicodeDecodeError:
        raise Refused(Reason.MALFORMED, f"{path} is not UTF-8 text") from None


def read_policy(path: Path) -> "Policy":
    """The policy in a file; refuses a wrong one with the line."""
    from accord.core.policy.policy_toml import PolicyError, parse_policy

    try:
        return parse_policy(read_text(path))
    except PolicyError as error:
        where = f"{path}:{error.line}" if error.line else str(path)
        raise Refused(Reason.MALFORMED, f"{where}: {error.problem}") from None


def place_here() -> "Place":
    """Where a command would run that is typed here."""
    from accord.core.policy.reported_call import Place
    from accord.own_directories import home_directory, own_directories

    return Place(
        cwd=str(Path.cwd()),
        worktree=str(worktree()),
        home=home_directory(os.environ),
        protected=own_directories(os.environ),
    )
