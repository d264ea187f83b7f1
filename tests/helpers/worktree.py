"""Real git in a temporary repository, with nothing of this machine's configuration."""

import os
import subprocess
import sys
from pathlib import Path

from tests.helpers.cli import Ran

PATIENCE = 60
ROOT = Path(__file__).resolve().parents[2]


def environment(home: Path, **env: str) -> dict[str, str]:
    """A person's, with a home of their own and no bridge in reach."""
    kept = ("PATH", "LANG", "COVERAGE_PROCESS_START")
    ours = {name: os.environ[name] for name in kept if name in os.environ}
    return ours | {
        "HOME": str(home),
        "ACCORD_HOME": str(home / "accord"),
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
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


class Work:
    """A repository and somebody who works in it."""

    def __init__(self, path: Path, home: Path, **env: str) -> None:
        self.path, self.home, self.env = path, home, environment(home, **env)

    @classmethod
    def new(cls, folder: Path, name: str = "repo", *flags: str) -> "Work":
        """An empty repository."""
        home = folder / "home"
        home.mkdir(exist_ok=True)
        work = cls(folder / name, home)
        (folder / name).mkdir(exist_ok=True)
        work.git("init", "-q", "-b", "main", *flags)
        work.git("config", "user.name", "Alice")
        return work

    def at(self, path: Path) -> "Work":
        """The same person elsewhere."""
        other = Work(path, self.home)
        other.env = self.env
        return other

    def told(self, **env: str) -> "Work":
        """The same with more in the environment."""
        other = self.at(self.path)
        other.env = self.env | env
        return other

    def run(self, *words: str, data: bytes = b"") -> Ran:
        """Any program."""
        done = subprocess.run(
            words,
            input=data,
            capture_output=True,
            cwd=self.path,
            env=self.env,
            timeout=PATIENCE,
            check=False,
        )
        return Ran(
            done.returncode,
            done.stdout.decode("utf-8", "surrogateescape"),
            done.stderr.decode("utf-8", "replace"),
        )

    def git(self, *words: str, data: bytes = b"") -> str:
        """Git, which must succeed."""
        ran = self.run("git", *words, data=data)
        assert ran.code == 0, f"git {' '.join(words)}\n{ran.out}{ran.err}"
        return ran.out.removesuffix("\n")

    def accord(self, *words: str) -> Ran:
        """Our own command."""
        return self.run(sys.executable, "-m", "accord", *words)

    def write(self, name: str, content: str) -> None:
        """A file of the work tree, staged."""
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, "utf-8")
        self.git("add", "--", name)

    def commit(self, message: str, name: str = "file.txt", content: str | None = None) -> str:
        """A commit that changes a file; says which."""
        self.write(name, message + "\n" if content is None else content)
        self.git("commit", "-q", "-m", message)
        return self.head()

    def head(self) -> str:
        """The commit that is checked out."""
        return self.git("rev-parse", "HEAD")

    def message(self, rev: str = "HEAD") -> str:
        """The whole message of a commit."""
        return self.git("log", "-1", "--format=%B", rev)

    def trailers(self, rev: str = "HEAD") -> dict[str, str]:
        """The trailers of a commit, as git reads them."""
        shown = self.git("log", "-1", "--format=%(trailers:only,unfold)", rev)
        pairs = (line.partition(": ") for line in shown.splitlines() if line)
        return {key: value for key, _, value in pairs}

    def note(self, rev: str = "HEAD") -> str:
        """The note of a commit."""
        return self.git("notes", "--ref=pvp", "show", rev)

    def decisions(self, rev: str = "HEAD") -> list[str]:
        """The ids in its note."""
        import json

        ran = self.run("git", "notes", "--ref=pvp", "show", rev)
        return [each["id"] for each in json.loads(ran.out)["decisions"]] if not ran.code else []
