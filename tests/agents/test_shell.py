"""The shell tool: arrays of words, bounded, and blind to secrets."""

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from accord.agents.shell import (
    MARK,
    Call,
    Done,
    Limits,
    NotACommandError,
    Stream,
    call,
    environment,
    run,
)
from tests.spec import proves


class Heard:
    """What a command printed."""

    def __init__(self) -> None:
        self.pieces: list[tuple[Stream, str]] = []

    async def __call__(self, stream: Stream, text: str) -> None:
        self.pieces.append((stream, text))

    def of(self, stream: Stream) -> str:
        return "".join(text for name, text in self.pieces if name == stream)


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def python(program: str) -> Call:
    return Call((sys.executable, "-c", program))


async def ran(made: Call, workdir: Path, limits: Limits | None = None) -> tuple[Done, Heard]:
    heard = Heard()
    return await run(made, workdir, heard, limits), heard


@proves("PVP-20.4-2")
@pytest.mark.parametrize(
    "arguments",
    [
        {"command": "ls; rm -rf /"},
        {"argv": "ls -l"},
        {"argv": []},
        {"argv": [""]},
        {"argv": ["ls", 1]},
        {"argv": ["ls", "a\0b"]},
        {"argv": ["ls"], "shell": True},
        {},
    ],
)
def test_a_line_for_a_shell_is_no_command(arguments: dict[str, object]) -> None:
    with pytest.raises(NotACommandError):
        call(arguments)


@proves("PVP-20.4-2")
async def test_words_reach_the_program_as_they_are(tmp_path: Path) -> None:
    words = ("$HOME", "a b", "; touch injected", "`touch injected`", "*")
    program = "import sys; print(*sys.argv[1:], sep='|')"

    done, heard = await ran(Call((sys.executable, "-c", program, *words)), tmp_path)

    assert done.success
    assert heard.of("stdout") == "|".join(words) + "\n"
    assert files(tmp_path) == []


async def test_both_streams_and_the_exit_code_are_told(tmp_path: Path) -> None:
    program = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"

    done, heard = await ran(python(program), tmp_path)

    assert (heard.of("stdout"), heard.of("stderr")) == ("out\n", "err\n")
    assert (done.code, done.problem, done.success) == (3, "ended with 3", False)


async def test_it_runs_where_it_is_told_to(tmp_path: Path) -> None:
    _, heard = await ran(python("import os; print(os.getcwd())"), tmp_path)

    assert heard.of("stdout").strip() == str(tmp_path)


async def test_no_secret_of_ours_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ACCORD_TOKEN", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "secret")

    _, heard = await ran(python("import os; print(*os.environ)"), tmp_path)

    seen = set(heard.of("stdout").split())
    assert "PATH" in seen
    assert seen <= {*environment(os.environ), MARK, "LC_CTYPE", "__CF_USER_TEXT_ENCODING"}
    assert not any("TOKEN" in name or "SECRET" in name or "SSH" in name for name in seen)


async def test_nobody_answers_its_questions(tmp_path: Path) -> None:
    done, heard = await ran(python("import sys; print(repr(sys.stdin.read()))"), tmp_path)

    assert done.success
    assert heard.of("stdout") == "''\n"


async def test_too_long_is_ended_with_all_its_children(tmp_path: Path) -> None:
    program = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""
    done, heard, seconds = None, Heard(), 0.5
    while not heard.pieces:  # a machine that is busy takes long to begin
        seconds *= 2
        done, heard = await ran(python(program), tmp_path, Limits(seconds=seconds))

    assert done is not None
    assert done.problem == f"stopped after {seconds:g} s"
    assert not done.success
    assert is_gone(int(heard.of("stdout")))


def is_gone(pid: int) -> bool:
    """Whether there is soon no such process, or only its remains."""
    deadline = time.monotonic() + 60
    while is_running(pid) and time.monotonic() < deadline:
        os.sched_yield()
    return not is_running(pid)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_a_command_may_ask_for_less_time_and_never_for_more(tmp_path: Path) -> None:
    slow = (sys.executable, "-c", "import time; time.sleep(600)")

    less, _ = await ran(Call(slow, 0.2), tmp_path, Limits(seconds=60))
    more, _ = await ran(Call(slow, 9999), tmp_path, Limits(seconds=0.2))

    assert less.problem == more.problem == "stopped after 0.2 s"


async def test_too_much_output_is_cut_and_said_to_be(tmp_path: Path) -> None:
    done, heard = await ran(python("print('x' * 100_000)"), tmp_path, Limits(output=1000))

    assert heard.of("stdout") == "x" * 1000
    assert done.cut
    assert done.success


async def test_letters_are_never_cut_in_two(tmp_path: Path) -> None:
    program = "import sys; sys.stdout.buffer.write('é'.encode() * 9000 + bytes([0xff]))"

    _, heard = await ran(python(program), tmp_path)

    assert heard.of("stdout") == "é" * 9000 + "\ufffd"


async def test_what_is_not_there_does_not_run(tmp_path: Path) -> None:
    done, heard = await ran(Call(("no-such-program",)), tmp_path)

    assert (done.code, done.success, heard.pieces) == (None, False, [])
    assert "no-such-program cannot be run" in str(done.problem)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux tells")
async def test_a_child_that_left_its_group_ends_too(tmp_path: Path) -> None:
    child = (
        "import subprocess, sys; quiet = subprocess.DEVNULL; "
        "print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], "
        "start_new_session=True, stdout=quiet, stderr=quiet).pid)"
    )

    done, heard = await ran(python(child), tmp_path)

    assert done.success
    async with asyncio.timeout(60):
        while runs(int(heard.of("stdout"))):  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(0.05)


def runs(pid: int) -> bool:
    """Whether it is there, and no mere rest of a process."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        return ") Z" not in stat.read_text()
    except OSError:
        return False
