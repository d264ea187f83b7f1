"""The shell tool: argument arrays, limits, and no access to secrets."""

import asyncio
import os
import sys
import time
from pathlib import Path

import pytest

from accord.agents.shell import (
    CommandLimits,
    CommandResult,
    InvalidCommandError,
    ShellCall,
    StreamName,
    parse_call,
    run_command,
    visible_environment,
)
from accord.child_processes import MARK_ENV_VAR
from tests.spec import proves


class RecordedOutput:
    """Records what a command prints."""

    def __init__(self) -> None:
        self.pieces: list[tuple[StreamName, str]] = []

    async def __call__(self, stream: StreamName, text: str) -> None:
        self.pieces.append((stream, text))

    def of(self, stream: StreamName) -> str:
        return "".join(text for name, text in self.pieces if name == stream)


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def python(program: str) -> ShellCall:
    return ShellCall((sys.executable, "-c", program))


async def run_recorded(
    made: ShellCall, workdir: Path, limits: CommandLimits | None = None
) -> tuple[CommandResult, RecordedOutput]:
    received = RecordedOutput()
    return await run_command(made, workdir, received, limits), received


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
        {"argv": ["ls"], "command": "ls -l"},
        {"argv": ["ls"], "command": "ls", "full_command": "ls -l"},
        {"argv": ["ls", "a b"], "full_command": "ls a b"},
        {},
    ],
)
def test_parse_call_refuses_a_shell_command_line(arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidCommandError):
        parse_call(arguments)


@proves("PVP-20.4-2")
async def test_arguments_reach_the_program_unchanged(tmp_path: Path) -> None:
    words = ("$HOME", "a b", "; touch injected", "`touch injected`", "*")
    program = "import sys; print(*sys.argv[1:], sep='|')"

    done, received = await run_recorded(
        ShellCall((sys.executable, "-c", program, *words)), tmp_path
    )

    assert done.success
    assert received.of("stdout") == "|".join(words) + "\n"
    assert files(tmp_path) == []


async def test_stdout_stderr_and_exit_code_are_reported(tmp_path: Path) -> None:
    program = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"

    done, received = await run_recorded(python(program), tmp_path)

    assert (received.of("stdout"), received.of("stderr")) == ("out\n", "err\n")
    assert (done.exit_code, done.error, done.success) == (3, "exited with 3", False)


async def test_command_runs_in_the_working_directory(tmp_path: Path) -> None:
    _, received = await run_recorded(python("import os; print(os.getcwd())"), tmp_path)

    assert received.of("stdout").strip() == str(tmp_path)


async def test_command_does_not_see_secret_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ACCORD_TOKEN", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SSH_AUTH_SOCK"):
        monkeypatch.setenv(name, "secret")

    _, received = await run_recorded(python("import os; print(*os.environ)"), tmp_path)

    seen = set(received.of("stdout").split())
    assert "PATH" in seen
    assert seen <= {
        *visible_environment(os.environ),
        MARK_ENV_VAR,
        "LC_CTYPE",
        "__CF_USER_TEXT_ENCODING",
    }
    assert not any("TOKEN" in name or "SECRET" in name or "SSH" in name for name in seen)


async def test_command_has_an_empty_stdin(tmp_path: Path) -> None:
    done, received = await run_recorded(
        python("import sys; print(repr(sys.stdin.read()))"), tmp_path
    )

    assert done.success
    assert received.of("stdout") == "''\n"


async def test_timeout_kills_the_command_and_its_children(tmp_path: Path) -> None:
    program = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""
    done, received, seconds = None, RecordedOutput(), 0.5
    while not received.pieces:  # a busy machine takes long to start it
        seconds *= 2
        done, received = await run_recorded(
            python(program), tmp_path, CommandLimits(timeout_s=seconds)
        )

    assert done is not None
    assert done.error == f"stopped after {seconds:g} s (timeout)"
    assert not done.success
    assert is_gone(int(received.of("stdout")))


def is_gone(pid: int) -> bool:
    """Whether the process ends soon, or is a zombie."""
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


async def test_command_timeout_can_be_shortened_but_not_extended(tmp_path: Path) -> None:
    slow = (sys.executable, "-c", "import time; time.sleep(600)")

    less, _ = await run_recorded(ShellCall(slow, 0.2), tmp_path, CommandLimits(timeout_s=60))
    more, _ = await run_recorded(ShellCall(slow, 9999), tmp_path, CommandLimits(timeout_s=0.2))

    assert less.error == more.error == "stopped after 0.2 s (timeout)"


async def test_excess_output_is_truncated_and_marked(tmp_path: Path) -> None:
    done, received = await run_recorded(
        python("print('x' * 100_000)"), tmp_path, CommandLimits(max_output_bytes=1000)
    )

    assert received.of("stdout") == "x" * 1000
    assert done.truncated
    assert done.success


async def test_multibyte_characters_are_not_split(tmp_path: Path) -> None:
    program = "import sys; sys.stdout.buffer.write('é'.encode() * 9000 + bytes([0xff]))"

    _, received = await run_recorded(python(program), tmp_path)

    assert received.of("stdout") == "é" * 9000 + "\ufffd"


async def test_unknown_program_gives_an_error_result(tmp_path: Path) -> None:
    done, received = await run_recorded(ShellCall(("no-such-program",)), tmp_path)

    assert (done.exit_code, done.success, received.pieces) == (None, False, [])
    assert "no-such-program cannot be run" in str(done.error)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="only Linux tells")
async def test_child_that_left_the_process_group_is_killed(tmp_path: Path) -> None:
    child = (
        "import subprocess, sys; quiet = subprocess.DEVNULL; "
        "print(subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], "
        "start_new_session=True, stdout=quiet, stderr=quiet).pid)"
    )

    done, received = await run_recorded(python(child), tmp_path)

    assert done.success
    async with asyncio.timeout(60):
        while runs(int(received.of("stdout"))):  # noqa: ASYNC110 - no event tells of it
            await asyncio.sleep(0.05)


def runs(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        return ") Z" not in stat.read_text()
    except OSError:
        return False
