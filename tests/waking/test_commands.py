"""A wake's command: bounded in time and output, a clean environment, no process left behind."""

import asyncio
import contextlib
import os
import time
from pathlib import Path

import pytest

from accord.child_processes import MARK_ENV_VAR
from accord.waking.commands import (
    KEPT_BYTES,
    MAX_DETAIL,
    CommandOutcome,
    CommandState,
    WakeCommand,
    environment_for,
    run_wake_command,
    shown,
)
from tests.helpers.threads.vendors import Vendor

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}


@pytest.fixture
def vendor(tmp_path: Path) -> Vendor:
    return Vendor(tmp_path / "vendor")


def command(vendor: Vendor, *argv: str, timeout_s: float = 60.0) -> WakeCommand:
    return WakeCommand((str(vendor.path), *argv), str(vendor.folder), ENVIRONMENT, timeout_s)


def run(one: WakeCommand) -> CommandOutcome:
    return asyncio.run(run_wake_command(one))


def is_running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"
    return False


def test_arguments_arrive_as_they_are_and_no_shell_reads_them(vendor: Vendor) -> None:
    words = ("exec", "$(touch /tmp/owned)", "; rm -rf ~", "a\nb\tc", "`id`", "*", "")
    assert run(command(vendor, *words)).state is CommandState.DONE
    assert vendor.arguments == [list(words)]


def test_the_program_runs_in_its_directory_with_the_given_environment_alone(
    vendor: Vendor,
) -> None:
    run(command(vendor, "exec"))
    (start,) = vendor.starts
    assert start["cwd"] == os.path.realpath(vendor.folder)
    added_by_the_system = {MARK_ENV_VAR, "PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}
    assert set(start["env"]) - added_by_the_system == set(ENVIRONMENT)


def test_only_common_and_named_variables_are_passed_on() -> None:
    full = {
        "PATH": "/bin",
        "LC_ALL": "C",
        "ACCORD_TOKEN": "secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "OPENAI_API_KEY": "named",
        "LD_PRELOAD": "/evil.so",
    }
    assert environment_for(full, ("OPENAI_API_KEY",)) == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "OPENAI_API_KEY": "named",
    }


def test_a_program_that_takes_too_long_is_stopped_with_its_children(vendor: Vendor) -> None:
    vendor.behaves({"seconds": 600, "child": 600, "escapes": True})
    outcome = run(command(vendor, "exec", timeout_s=2.0))
    assert outcome.state is CommandState.TIMED_OUT
    assert "took too long" in outcome.detail
    (start,) = vendor.starts
    assert not is_running(start["pid"])
    assert not _marked(start["env"][MARK_ENV_VAR])


def test_children_that_a_program_leaves_behind_end_with_it(vendor: Vendor) -> None:
    vendor.behaves({"child": 600})
    assert run(command(vendor, "exec")).state is CommandState.DONE
    assert not _marked(vendor.starts[0]["env"][MARK_ENV_VAR])


def test_cancelling_a_wake_stops_its_program(vendor: Vendor) -> None:
    vendor.behaves({"seconds": 600})

    async def cancelled() -> None:
        started = asyncio.Event()
        task = asyncio.create_task(run_wake_command(command(vendor, "exec"), started.set))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert all(not is_running(start["pid"]) for start in vendor.starts)


def test_endless_output_neither_blocks_the_program_nor_fills_memory(vendor: Vendor) -> None:
    vendor.behaves({"stdout": "x" * 1023 + "\n", "times": 4096, "stderr": "the end", "exit": 3})
    outcome = run(command(vendor, "exec"))
    assert (outcome.state, outcome.exit_code) == (CommandState.FAILED, 3)
    assert len(outcome.output) <= 2 * KEPT_BYTES + 1
    assert outcome.detail == "It ended with 3: the end"


def test_what_the_audit_keeps_is_one_clean_bounded_line_without_secrets() -> None:
    printed = f"first\nlast \x1b[31mred\x07 ghp_{'a' * 36} {'z' * 999}\n\n"
    detail = CommandOutcome(CommandState.FAILED, 1, printed).detail
    assert detail.startswith("It ended with 1: last [31mred [redacted] zzz")
    assert len(detail) == MAX_DETAIL
    assert CommandOutcome(CommandState.DONE, 0, "\n").detail == "It ended with 0"


def test_a_program_that_cannot_be_started_is_an_outcome(tmp_path: Path) -> None:
    missing = WakeCommand((str(tmp_path / "missing"),), str(tmp_path), ENVIRONMENT, 5)
    outcome = run(missing)
    assert outcome.state is CommandState.NOT_STARTED
    assert outcome.detail.startswith("It could not be started: No such file")


def test_the_shown_command_is_quoted_and_clean() -> None:
    assert shown(["codex", "exec", "resume", "a b", "x\x1b[2Jy"]) == (
        "codex exec resume 'a b' 'x[2Jy'"
    )


def _marked(mark: str) -> list[int]:
    """Processes with this mark that still run; a killed one may need a moment to go."""
    give_up = time.monotonic() + 10
    while (found := [pid for pid in _pids_with(mark) if is_running(pid)]) and (
        time.monotonic() < give_up
    ):
        time.sleep(0.01)
    return found


def _pids_with(mark: str) -> list[int]:
    wanted, pids = f"{MARK_ENV_VAR}={mark}".encode(), []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in file.read_bytes().split(b"\0"):
                pids.append(int(file.parent.name))
    return pids
