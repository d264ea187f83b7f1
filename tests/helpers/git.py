"""Real repositories, whatever the machine's own configuration says."""

import os
from pathlib import Path

from accord.git.repository import Repository, find

os.environ.setdefault("GIT_CONFIG_GLOBAL", os.devnull)
os.environ.setdefault("GIT_CONFIG_NOSYSTEM", "1")


def a_repository(root: Path, files: dict[str, str] | None = None) -> Repository:
    """A repository on `main` with one commit."""
    root.mkdir(parents=True, exist_ok=True)
    bare = Repository(root)
    bare.act("init", "-q", "-b", "main")
    bare.act("config", "user.name", "Olga")
    bare.act("config", "user.email", "olga@example.org")
    for name, text in (files or {"README.md": "# Here\n"}).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    bare.act("add", ".")
    bare.act("commit", "-q", "-m", "first")
    made = find(root)
    assert made is not None
    return made
