"""Real git repositories, independent of this machine's git configuration."""

import os
from pathlib import Path

from accord.git.repository import Repository, find_repository

os.environ.setdefault("GIT_CONFIG_GLOBAL", os.devnull)
os.environ.setdefault("GIT_CONFIG_NOSYSTEM", "1")


def create_repository(root: Path, files: dict[str, str] | None = None) -> Repository:
    """Create a repository on `main` with one commit."""
    root.mkdir(parents=True, exist_ok=True)
    repository = Repository(root)
    repository.run_with_hooks("init", "-q", "-b", "main")
    repository.run_with_hooks("config", "user.name", "Olga")
    repository.run_with_hooks("config", "user.email", "olga@example.org")
    for name, text in (files or {"README.md": "# Here\n"}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    repository.run_with_hooks("add", ".")
    repository.run_with_hooks("commit", "-q", "-m", "first")
    created = find_repository(root)
    assert created is not None
    return created
