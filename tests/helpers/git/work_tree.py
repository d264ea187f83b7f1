"""A git work tree in a temporary directory, independent of this machine's git configuration."""

import os
import subprocess
import sys
from pathlib import Path

from tests.helpers.clients.cli import CommandRun

COMMAND_TIMEOUT_S = 60
REPOSITORY_ROOT = Path(__file__).resolve().parents[3]


def git_environment(home: Path, **env: str) -> dict[str, str]:
    """The environment of a user with their own home and no reachable bridge."""
    kept = ("PATH", "LANG", "COVERAGE_PROCESS_START")
    ours = {name: os.environ[name] for name in kept if name in os.environ}
    return ours | {
        "HOME": str(home),
        "ACCORD_HOME": str(home / "accord"),
        # On a busy machine a server takes longer, and a hook that times out writes nothing.
        "ACCORD_TIMEOUT": "60",
        "PYTHONPATH": f"{REPOSITORY_ROOT / 'src'}{os.pathsep}{REPOSITORY_ROOT}",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Alice",
        "GIT_AUTHOR_EMAIL": "alice@example.org",
        "GIT_COMMITTER_NAME": "Alice",
        "GIT_COMMITTER_EMAIL": "alice@example.org",
        "GIT_EDITOR": "true",
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "TZ": "UTC",
        **env,
    }


class WorkTree:
    """A work tree, and the environment in which commands run in it."""

    def __init__(self, path: Path, home: Path, **env: str) -> None:
        self.path, self.home, self.env = path, home, git_environment(home, **env)

    @classmethod
    def create(cls, folder: Path, name: str = "repo", *flags: str) -> "WorkTree":
        """Create an empty repository."""
        home = folder / "home"
        home.mkdir(exist_ok=True)
        work = cls(folder / name, home)
        (folder / name).mkdir(exist_ok=True)
        work.git("init", "-q", "-b", "main", *flags)
        work.git("config", "user.name", "Alice")
        return work

    def in_directory(self, path: Path) -> "WorkTree":
        """The same environment in another directory."""
        other = WorkTree(path, self.home)
        other.env = self.env
        return other

    def with_environment(self, **env: str) -> "WorkTree":
        """The same directory with more environment variables."""
        other = self.in_directory(self.path)
        other.env = self.env | env
        return other

    def run(self, *words: str, data: bytes = b"") -> CommandRun:
        """Run any program."""
        done = subprocess.run(
            words,
            input=data,
            capture_output=True,
            cwd=self.path,
            env=self.env,
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
        return CommandRun(
            done.returncode,
            done.stdout.decode("utf-8", "surrogateescape"),
            done.stderr.decode("utf-8", "replace"),
        )

    def git(self, *words: str, data: bytes = b"") -> str:
        """Run git, which must succeed; returns its output."""
        ran = self.run("git", *words, data=data)
        assert ran.code == 0, f"git {' '.join(words)}\n{ran.out}{ran.err}"
        return ran.out.removesuffix("\n")

    def accord(self, *words: str) -> CommandRun:
        """Run an `accord` command."""
        return self.run(sys.executable, "-m", "accord", *words)

    def write(self, name: str, content: str) -> None:
        """Write and stage a file."""
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, "utf-8")
        self.git("add", "--", name)

    def commit(self, message: str, name: str = "file.txt", content: str | None = None) -> str:
        """Commit a change of one file; returns the commit's id."""
        self.write(name, message + "\n" if content is None else content)
        self.git("commit", "-q", "-m", message)
        return self.head()

    def head(self) -> str:
        """The id of the commit that is checked out."""
        return self.git("rev-parse", "HEAD")

    def message(self, rev: str = "HEAD") -> str:
        """The full message of a commit."""
        return self.git("log", "-1", "--format=%B", rev)

    def trailers(self, rev: str = "HEAD") -> dict[str, str]:
        """The trailers of a commit, as git reads them."""
        shown = self.git("log", "-1", "--format=%(trailers:only,unfold)", rev)
        pairs = (line.partition(": ") for line in shown.splitlines() if line)
        return {key: value for key, _, value in pairs}

    def note(self, rev: str = "HEAD") -> str:
        """The `pvp` note of a commit."""
        return self.git("notes", "--ref=pvp", "show", rev)

    def decision_ids(self, rev: str = "HEAD") -> list[str]:
        """The ids of the decisions in a commit's note."""
        import json

        ran = self.run("git", "notes", "--ref=pvp", "show", rev)
        return [item["id"] for item in json.loads(ran.out)["decisions"]] if not ran.code else []
