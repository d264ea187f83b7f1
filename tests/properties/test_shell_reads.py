"""Nothing that bash would run beyond reads passes as a read.

Commands are put together at random from pieces that hide things. Each one that counts as a read
is run by a real bash in a sandbox in which every program is a stub that records how it was called:
only programs that read may be called, with words under which they only read, and no file changes.
"""

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from accord.core.policy.call_classification import classify
from accord.core.policy.policy_toml import NO_POLICY
from accord.core.policy.reported_call import CallKind, Place, ReportedCall
from accord.real_paths import resolve
from accord.shell_parser import parse_shell

READERS = ("cat", "ls", "head", "grep", "find", "git", "sort", "wc", "sed", "awk", "rg", "diff")
HARMFUL = ("rm", "touch", "evil", "tee", "sh", "bash", "xargs", "env", "python", "cp", "sudo", "dd")
# Words that make a reading program do more, in the calls that bash really makes.
HARMFUL_WORDS = (
    *("-exec", "-delete", "-i", "-o", "--output", "--pre", "-fprint", "--ext-diff", "-c", "-w"),
    *("push", "commit", "add", "rm", "-execdir", "-okdir", "--open-files-in-pager"),
)
SEPARATORS = (
    *(" ", " ", " ", "  ", "\t", "", " && ", " || ", "; ", ";", " | ", "|", "\n", " & ", "&"),
    *(
        "\\\n",
        "\u00a0",
        "\u2003",
        "\r",
        "\v",
        " > ",
        " >> ",
        " 2>&1 ",
        " >/dev/null ",
        " < ",
        "<<<",
    ),
    *(" |& ", "&>", ">|", " <> ", "\n\n", " # ", "#", "\\\n\n", "\x0b", "\u3000"),
)
WORDS = (
    *READERS,
    *HARMFUL,
    *("a.txt", "sub", ".", "-n", "-l", "-r", "status", "log", "diff", "-name", "'*.txt'", "*.txt"),
    *("$(touch x)", "`touch x`", "$(evil)", '"$(evil)"', "'$(evil)'", "<(evil)", ">(evil)", "${x}"),
    *("${x:-$(evil)}", "$((a[$(evil)]))", "$'\\x65vil'", "$'a'", '$"evil"', "\\evil", "e\\vil"),
    *("'e'vil", '"evil"', "x=1", "PATH=.", "LD_PRELOAD=x", "GIT_PAGER=evil", "function", "f()"),
    *("{", "}", "(", ")", "[[", "]]", "!", "if", "then", "fi", "for", "in", "do", "done", "case"),
    *("{evil,a}", "{a,b}", "a{b", "eval", "source", ".", "exec", "command", "builtin", "time"),
    *("timeout 1", "nice", "cd sub", "cd ..", "cd", "-c", "-exec", "-delete", "{}", "\\;", "+"),
    *("1,2p", "'1,2p'", "'w x'", "'1e evil'", "'{print $1}'", "'BEGIN{system(\"evil\")}'", "-i"),
    *(
        "-o",
        "out",
        "--output=out",
        "-w",
        "--pre=evil",
        "--",
        "-",
        "~",
        "~/x",
        "/etc/passwd",
        "../x",
    ),
    *("<<EOF\nevil\nEOF\n", "<<'EOF'\n$(evil)\nEOF\n", "EOF", "alias ls=evil", "'", '"', "\\", "$"),
    *("test -f a.txt", "test -v 'a[$(evil)]'", "echo hi", "echo -e '\\x65'", "printf %s a", "true"),
    *("printf -v 'a[$(evil)]' x", "HEAD~1", "stash@{0}", "-p", "--", "a\nevil", "'a\nevil'", "éa"),
)
# What reads, so that many of the commands are taken for reads.
PLAIN = (
    *(
        "cat a.txt",
        "ls",
        "ls -l sub",
        "git status",
        "git log -n 3",
        "head -n 1 a.txt",
        "wc -l a.txt",
    ),
    *("grep -r a sub", "find . -name '*.txt'", "sort a.txt", "sed -n '1,2p' a.txt", "rg a sub"),
    *("echo 'x y'", 'cat "a.txt"', "diff a.txt sub/b.txt", "awk '{print $1}' a.txt", "cat ./*.txt"),
)
piece = st.one_of(st.sampled_from(PLAIN), st.sampled_from(WORDS), st.text(max_size=3))
commands = st.lists(st.tuples(piece, st.sampled_from(SEPARATORS)), min_size=1, max_size=6).map(
    lambda parts: "".join(word + separator for word, separator in parts)
)


class Sandbox(NamedTuple):
    """A worktree, and a bash for which every program is a stub that records its words."""

    worktree: Path
    bin: Path
    log: Path

    def is_read(self, command: str) -> bool:
        place = Place(str(self.worktree), str(self.worktree), str(self.worktree.parent))
        call = ReportedCall(CallKind.SHELL, "Bash", {"command": command}, place)
        return classify(resolve(call, parse_shell), NO_POLICY, parse_shell).is_read

    def run(self, command: str) -> list[list[str]]:
        """The programs that bash called, with their words."""
        for earlier in self.recorded():
            earlier.unlink()
        env = {"PATH": str(self.bin), "LOG": str(self.log), "HOME": str(self.worktree.parent)}
        subprocess.run(
            ["/bin/bash", "--norc", "--noprofile", "-c", command],
            cwd=self.worktree,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=20,
            check=False,
        )
        calls = [path.read_bytes().split(b"\0")[:-1] for path in self.recorded()]
        return [[os.fsdecode(word) for word in call] for call in calls if call]

    def recorded(self) -> list[Path]:
        """What each call wrote."""
        return sorted(self.log.parent.glob(f"{self.log.name}.*"))

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.worktree)): path.read_bytes() if path.is_file() else b""
            for path in sorted(self.worktree.rglob("*"))
        }


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    root = tmp_path_factory.mktemp("sandbox")
    made = Sandbox(root / "worktree", root / "bin", root / "calls")
    (made.worktree / "sub").mkdir(parents=True)
    made.bin.mkdir()
    (made.worktree / "a.txt").write_text("a\n")
    (made.worktree / "sub" / "b.txt").write_text("b\n")
    (made.worktree / "-exec.txt").write_text("a file named like an option\n")
    # A file for each call: two programs of a pipe record themselves at the same time.
    stub = '#!/bin/bash\nprintf \'%s\\0\' "${0##*/}" "$@" > "$LOG.$$"\n'
    for name in (*READERS, *HARMFUL, "timeout", "nice"):
        file = made.bin / name
        file.write_text(stub)
        file.chmod(0o755)
    return made


def offences(calls: list[list[str]]) -> list[list[str]]:
    """The calls of programs that do more than read."""
    return [
        call
        for call in calls
        if call[0] not in (*READERS, "timeout", "nice")
        or any(word.split("=")[0] in HARMFUL_WORDS for word in call[1:])
    ]


@settings(
    max_examples=3_000 if os.environ.get("ACCORD_LONG") else 400,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(command=commands)
def test_bash_runs_nothing_but_reads_for_what_counts_as_one(sandbox: Sandbox, command: str) -> None:
    if not sandbox.is_read(command) or "\0" in command:
        return
    before = sandbox.files()

    calls = sandbox.run(command)

    note(f"{calls}")
    assert offences(calls) == []
    assert sandbox.files() == before


@pytest.mark.parametrize("command", ["evil", "ls; evil", "ls $(evil)", "ls -exec", "touch x"])
def test_the_sandbox_sees_what_is_more_than_a_read(sandbox: Sandbox, command: str) -> None:
    assert offences(sandbox.run(command)) != []


@pytest.mark.parametrize("command", PLAIN)
def test_the_plain_pieces_are_reads(sandbox: Sandbox, command: str) -> None:
    assert sandbox.is_read(command)
    assert offences(sandbox.run(command)) == []


def test_the_sandbox_sees_a_file_that_bash_itself_writes(sandbox: Sandbox) -> None:
    before = sandbox.files()

    sandbox.run("echo x > made")

    assert sandbox.files() != before
    (sandbox.worktree / "made").unlink()
