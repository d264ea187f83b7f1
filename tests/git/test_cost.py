"""What hooks cost: CPU time with all that they start, and how many processes of git that is."""

import json
import resource
from pathlib import Path
from typing import NamedTuple

import pytest

from accord.git.hook import HOOKS
from tests.git.conftest import SESSION
from tests.helpers.worktree import Work

MOST_S = 0.1
TRIES = 40
# A machine at work makes times uncertain; this is certain.
MOST_GITS = {
    "without": {
        "prepare-commit-msg": 1,
        "commit-msg": 0,
        "post-commit": 3,
        "post-merge": 3,
        "post-rewrite": 1,
        "pre-push": 2,
    },
    "within": {
        "prepare-commit-msg": 3,
        "commit-msg": 1,
        "post-commit": 9,
        "post-merge": 9,
        "post-rewrite": 8,
        "pre-push": 13,
    },
}


RECORDS = ("refs/notes/pvp", "refs/accord/decisions")


class Call(NamedTuple):
    """A hook as git calls it: with which draft, and when records were as they are set before."""

    words: tuple[str, ...] = ()
    data: bytes = b""
    draft: str = ""
    records: str = ""


def records(work: Work) -> str:
    """Our refs, as `git update-ref --stdin` takes them."""
    refs = work.git("for-each-ref", "--format=update %(refname) %(objectname)", *RECORDS)
    return f"{refs}\n" if refs else ""


def scene(work: Work, trailers: str) -> dict[str, Call]:
    """A branch beside the trunk with a merge on top, and what git says to hooks there."""
    work.git("update-ref", "refs/remotes/origin/main", work.commit("feat: begin"))
    work.git("switch", "-qc", "topic")
    old = work.commit("feat: go on", "a.txt")
    work.git("switch", "-qc", "side", "main")
    work.commit("feat: aside", "b.txt")
    work.git("switch", "-q", "topic")
    before = records(work)
    work.git("merge", "-q", "--no-ff", "-m", f"feat: take it in\n\n{trailers}", "side")
    new, file = work.head(), str(work.path / "message")
    pushed = f"refs/heads/topic {new} refs/heads/topic {'0' * 40}\n".encode()
    return {
        "prepare-commit-msg": Call((file, "message"), draft="feat: begin\n"),
        "commit-msg": Call((file,), draft=f"feat: begin\n\n{trailers}"),
        "post-commit": Call(records=before),
        "post-merge": Call(("0",), records=before),
        "post-rewrite": Call(("amend",), f"{old} {new}\n".encode(), records=before),
        "pre-push": Call(("origin", "there"), pushed, records=records(work)),
    }


class Bench:
    """Runs a hook again and again from the same state."""

    def __init__(self, work: Work, name: str, call: Call) -> None:
        self.work, self.call = work, call
        self.words = (str(work.path / ".git/hooks" / name), *call.words)

    def run(self, **env: str) -> float:
        """CPU seconds of one run."""
        (self.work.path / "message").write_text(self.call.draft)
        self.work.git("update-ref", "--stdin", data=self.call.records.encode())
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ran = self.work.told(**env).run(*self.words, data=self.call.data)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert (ran.code, ran.err) == (0, "")
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def seconds(self) -> float:
        """The least of a few tries: what is more is the machine's."""
        found = self.run()
        for _ in range(TRIES):
            if found < MOST_S:
                break
            found = min(found, self.run())
        return found

    def gits(self, trace: Path) -> int:
        """How often git was started, by us or by git itself."""
        self.run(GIT_TRACE2_EVENT=str(trace))
        rows = map(json.loads, trace.read_text("utf-8").splitlines()) if trace.exists() else ()
        return sum(row["event"] == "start" for row in rows)


@pytest.mark.parametrize("session", [False, True], ids=["without", "within"])
def test_every_hook_takes_less_than_a_tenth_of_a_second(
    work: Work, tmp_path: Path, *, session: bool
) -> None:
    trailers = "PVP-Session: ses_1\nDecision-By: human:alice\n" if session else ""
    someone = work.told(**SESSION) if session else work
    benches = {name: Bench(someone, name, call) for name, call in scene(someone, trailers).items()}
    took = {name: bench.seconds() for name, bench in benches.items()}
    gits = {name: bench.gits(tmp_path / name) for name, bench in benches.items()}
    most = MOST_GITS["within" if session else "without"]

    assert set(took) == set(HOOKS)
    assert {name: each for name, each in took.items() if each >= MOST_S} == {}
    assert gits == most
