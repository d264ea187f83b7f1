"""Our reading of trailers is git's, on messages that anybody could have written."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accord.core.provenance.commit_message.parser import parse_message
from accord.core.provenance.commit_message.trailers import trailers_in
from accord.core.provenance.commit_message.writer import MessageDraft, write_message
from tests.core.provenance.message_samples import DRAFTS, EXAMPLES, TEXTS
from tests.core.provenance.trailer_samples import TOLD
from tests.spec import proves

Pairs = list[tuple[str, str]]

ENTRY, KEY, RECORD = "\x01", "\x02", "\x03"
FORMAT = f"%(trailers:only,unfold,separator=%x01,key_value_separator=%x02){RECORD}"
FENCE = "Fence-Between-Files"
# One git process reads a whole batch.
batches = settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.data_too_large],
)


@pytest.fixture
def git(tmp_path: Path) -> "Git":
    return Git(tmp_path)


class Git:
    """A bare repository without anybody's configuration."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.count = 0
        self.run("init", "-q", "--bare", ".")

    def run(self, *arguments: str, given: bytes = b"") -> bytes:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.place),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.place,
            env=environment,
            input=given,
            capture_output=True,
            check=True,
        )
        return done.stdout

    def log(self, texts: list[str]) -> list[Pairs]:
        """`git log --format=%(trailers…)` of commits with exactly these messages."""
        self.count += 1
        branch = f"refs/heads/b{self.count}"
        self.run("fast-import", "--quiet", given=b"".join(commits(branch, texts)))
        told = self.run("log", "--reverse", f"--format={FORMAT}", branch).decode()
        records = [each.removeprefix("\n") for each in told.split(RECORD)[:-1]]
        return [[split(entry, KEY) for entry in each.split(ENTRY) if entry] for each in records]

    def interpreted(self, texts: list[str]) -> list[Pairs]:
        """`git interpret-trailers --parse`, file by file."""
        fence = self.place / "fence"
        fence.write_bytes(f"x\n\n{FENCE}: x\n".encode())
        names: list[str] = []
        for number, text in enumerate(texts):
            (self.place / f"m{number}").write_bytes(text.encode())
            names += [f"m{number}", "fence"]
        told = self.run("interpret-trailers", "--parse", "--no-divider", *names).decode()
        found: list[Pairs] = [[]]
        for line in told.removesuffix("\n").split("\n"):
            if line == f"{FENCE}: x":
                found.append([])
            else:
                found[-1].append(split(line, ": "))
        return found[:-1]


def commits(branch: str, texts: list[str]) -> Iterator[bytes]:
    for number, text in enumerate(texts):
        message = text.encode()
        yield (
            f"commit {branch}\nmark :{number + 1}\ncommitter a <a@b> {number + 1} +0000\n"
            f"data {len(message)}\n"
        ).encode()
        yield message + b"\n"
        yield f"from :{number}\n".encode() if number else b""
        yield b"\n"


def split(entry: str, separator: str) -> tuple[str, str]:
    key, _, value = entry.partition(separator)
    return key, value


def ours(text: str) -> Pairs:
    return [(each.key, each.value) for each in parse_message(text).trailers]


@proves("GIT-TRAILER-1", "GIT-EX-1", "GIT-EX-4")
def test_git_reads_the_examples_as_we_do(git: Git) -> None:
    texts = [*EXAMPLES.values(), *TOLD]
    expected = [ours(text) for text in texts]

    assert git.log(texts) == expected
    assert git.interpreted(texts) == expected


@proves("GIT-TRAILER-1", "OPEN-71", "GIT-PRINC-2")
@batches
@given(drafts=st.lists(DRAFTS, min_size=1, max_size=60))
def test_git_reads_every_message_we_write_as_we_do(git: Git, drafts: list[MessageDraft]) -> None:
    texts = [write_message(draft) for draft in drafts]
    expected = [[(each.key, each.value) for each in draft.trailers] for draft in drafts]

    assert [ours(text) for text in texts] == expected
    assert git.log(texts) == expected
    assert git.interpreted(texts) == expected


@proves("GIT-TRAILER-1", "OPEN-71")
@batches
@given(texts=st.lists(TEXTS, min_size=1, max_size=100))
def test_git_reads_every_message_of_others_as_we_do(git: Git, texts: list[str]) -> None:
    assert git.log(texts) == [ours(text) for text in texts]
    assert git.interpreted(texts) == [
        [(each.key, each.value) for each in trailers_in(text)] for text in texts
    ]
