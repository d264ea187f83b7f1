"""A commit waits one second for servers, whatever is silent and however much there is to ask."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from accord.git import bridge_client
from accord.git.hooks.dispatch import HOOK_NAMES
from tests.git.conftest import SESSION
from tests.helpers.git.hook_timeout import HOOK_IMPORT
from tests.helpers.git.work_tree import WorkTree
from tests.helpers.servers.silent_ports import accepting_port, refused_port, unreachable_port

# A busy machine makes a commit slower than another by chance, but not every time.
SLACK_S = 0.6
MOST_S = bridge_client.BRIDGE_TIMEOUT_S + SLACK_S
ATTEMPTS = 8
# Like the C library with a name server that does not answer; addresses in figures are known.
NAMES_UNKNOWN = (
    "import socket as s, time as t; g = s.getaddrinfo; "
    's.getaddrinfo = lambda *a, **k: g(*a, **k) if k.get("flags") else t.sleep(60)'
)


@contextmanager
def silent_server(kind: str) -> Iterator[str]:
    """The address of a server that does not answer."""
    if kind == "name":
        yield "https://accord.example.test"
    else:
        scheme, _, behaviour = kind.partition(" ")
        ports = {"unreachable": unreachable_port, "accepting": accepting_port}
        with ports[behaviour]() as port:
            yield f"{scheme}://127.0.0.1:{port}"


def let_names_be_unknown(work: WorkTree) -> None:
    """The hooks' Python resolves no name."""
    for name in HOOK_NAMES:
        hook = work.path / ".git" / "hooks" / name
        text = hook.read_text("utf-8")
        hook.write_text(text.replace(HOOK_IMPORT, f"{NAMES_UNKNOWN}; {HOOK_IMPORT}"), "utf-8")


class Person:
    """Commits in a repository where hooks have as much to ask for as they can have."""

    def __init__(self, work: WorkTree, url: str) -> None:
        self.work = work.with_environment(
            **SESSION, ACCORD_URL=url, ACCORD_TOKEN="x.y.z", ACCORD_TIMEOUT=""
        )

    def commit_seconds(self) -> float:
        """How long a commit takes, with one that waits for its record and one without any."""
        git_dir = Path(self.work.path, ".git")
        for name in ("accord-bound", "accord-owed"):
            (git_dir / name).touch()
        (git_dir / "accord-pending-commits").write_text(f"{self.work.head()} 1 - main\n")
        self.work.git("update-ref", "-d", "refs/notes/pvp")
        self.work.git("update-ref", "-d", "refs/accord/decisions")
        self.work.write("file.txt", f"{time.monotonic_ns()}\n")
        began = time.monotonic()
        self.work.git("commit", "-q", "-m", "feat: go on")
        return time.monotonic() - began


@pytest.mark.parametrize(
    "kind",
    ["http accepting", "https accepting", "http unreachable", "https unreachable", "name"],
)
def test_a_commit_waits_a_second_for_a_server_that_is_silent(work: WorkTree, kind: str) -> None:
    if kind == "name":
        let_names_be_unknown(work)
    work.commit("feat: begin")
    refused = Person(work, f"http://127.0.0.1:{refused_port()}")
    with silent_server(kind) as url:
        silent = Person(work, url)
        waited: list[float] = []
        while len(waited) < ATTEMPTS and (not waited or waited[-1] > MOST_S):
            usual, took = refused.commit_seconds(), silent.commit_seconds()
            assert took > bridge_client.BRIDGE_TIMEOUT_S - SLACK_S
            waited.append(took - usual)

    assert min(waited) <= MOST_S, waited
    assert work.trailers()["PVP-Session"] == SESSION["PVP_SESSION_ID"]
    assert len(silent.work.decision_ids()) == 1
