"""Waking by the vendors' command lines: what is run, for whom, and what comes of it."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from accord.core.attention.runtimes import Runtime, RuntimeOrigin, RuntimeStatus
from accord.core.attention.waking.outcomes import WakeAction, WakeCause, WakeResult
from accord.core.attention.waking.prompt import MARK, wake_prompt
from accord.core.attention.waking.waker_port import WakeJob, WakeReport, WakeTarget
from accord.core.kernel.refusal import Refused
from accord.waking.adapters import ADAPTERS, arguments
from accord.waking.configuration import WakeableAgents, load_wake_file
from accord.waking.machine import machine_name
from accord.waking.waker import CommandWaker
from tests.helpers.threads.vendors import Vendor
from tests.spec import proves

REF = "0199a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"
TARGET = WakeTarget("default", "reviewer")
PROMPT = wake_prompt(thread="th_1", unread=2, by="planner", words="please\nlook")
FRESH = wake_prompt(thread="th_1", unread=2, by="planner", summary="two findings")
RESUME, SPAWN = WakeAction.RESUME_SESSION, WakeAction.SPAWN_SESSION


class Scene:
    """A server with one wakeable agent, its program, and a runtime that was seen there."""

    def __init__(self, folder: Path, runtime: str = "codex_cli", **row: object) -> None:
        self.vendor = Vendor(folder / "vendor")
        self.work = folder / "work"
        self.work.mkdir()
        self.file = folder / "wake.toml"
        self.write(
            {
                "id": "reviewer",
                "runtime": runtime,
                "directory": str(self.work),
                "program": str(self.vendor.path),
                **row,
            }
        )
        self.runtime = Runtime(
            session_id="S1",
            runtime=runtime,
            status=RuntimeStatus.IDLE,
            changed_at=0,
            resumable=True,
            origin=RuntimeOrigin(REF, machine_name(), str(self.work)),
        )

    def write(self, *rows: Mapping[str, object]) -> None:
        tables = [
            "\n".join(["[[agent]]", *(f"{key} = {json.dumps(row[key])}" for key in row)])
            for row in rows
        ]
        self.file.write_text("\n\n".join(tables))
        self.file.chmod(0o600)

    @property
    def agents(self) -> WakeableAgents:
        return load_wake_file(self.file)

    @property
    def waker(self) -> CommandWaker:
        return CommandWaker(self.agents, machine_name())

    def wake(self, *actions: WakeAction) -> WakeReport:
        job = WakeJob(TARGET, actions, PROMPT, FRESH, self.runtime)
        self.attempts: list[tuple[WakeAction, str]] = []

        async def wake() -> WakeReport:
            return await self.waker.wake(job, lambda *attempt: self.attempts.append(attempt))

        return asyncio.run(wake())


@proves("MSG-3.8-10")
@pytest.mark.parametrize(
    ("runtime", "resume", "spawn"),
    [
        ("codex_cli", ["exec", "resume", REF, PROMPT], ["exec", FRESH]),
        ("claude_code", ["-p", "--resume", REF, PROMPT], ["-p", FRESH]),
        ("gemini_cli", ["--resume", REF, "-p", PROMPT], ["-p", FRESH]),
    ],
)
def test_each_vendor_is_resumed_and_begun_by_its_own_arguments(
    tmp_path: Path, runtime: str, resume: list[str], spawn: list[str]
) -> None:
    scene = Scene(tmp_path, runtime, spawn=True)
    report = scene.wake(RESUME)
    assert (report.action, report.result) == (RESUME, WakeResult.FALLBACK_USED)
    assert scene.wake(SPAWN).action is SPAWN
    seen = [argv for argv in scene.vendor.arguments if argv != ["agents", "--json"]]
    assert seen == [resume, spawn]
    assert all(argv[-1].startswith(MARK) for argv in seen)
    assert {start["cwd"] for start in scene.vendor.starts} == {str(scene.work)}


def test_the_operators_options_stand_where_the_vendor_takes_them() -> None:
    for name, adapter in ADAPTERS.items():
        argv = arguments(adapter.resume, options=("--a", "b"), runtime_ref=REF, prompt=PROMPT)
        bare = arguments(adapter.resume, runtime_ref=REF, prompt=PROMPT)
        assert [word for word in argv if word not in {"--a", "b"}] == bare, name


def test_a_runtime_is_resumed_only_where_and_for_whom_it_was_seen(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    origin = scene.runtime.origin
    assert origin is not None

    def resumable(target: WakeTarget = TARGET, **changes: str) -> bool:
        fields = {name: getattr(origin, name) for name in origin.__struct_fields__} | changes
        one = Runtime(
            session_id="S1",
            runtime="codex_cli",
            status=RuntimeStatus.IDLE,
            changed_at=0,
            resumable=True,
            origin=RuntimeOrigin(**fields),
        )
        return scene.waker.resumable(target, [one]) == {"S1"}

    assert resumable()
    assert not resumable(machine="another-machine")
    assert not resumable(directory=str(other))
    assert not resumable(runtime_ref="latest")
    assert not resumable(WakeTarget("default", "planner"))
    assert not resumable(WakeTarget("elsewhere", "reviewer"))
    linked = tmp_path / "link"
    linked.symlink_to(scene.work)
    assert resumable(directory=str(linked))


def test_a_runtime_without_an_origin_or_of_another_program_is_not_resumed(tmp_path: Path) -> None:
    scene = Scene(tmp_path, resume=False)
    assert scene.waker.resumable(TARGET, [scene.runtime]) == frozenset()
    assert not scene.waker.can_spawn(TARGET)
    report = scene.wake(RESUME, SPAWN)
    assert (report.action, report.cause) == (WakeAction.NONE, WakeCause.NO_FALLBACK)
    assert scene.vendor.starts == []


def test_when_resuming_fails_a_new_session_is_begun_with_the_summary(tmp_path: Path) -> None:
    scene = Scene(tmp_path, spawn=True)
    scene.vendor.behaves({"when": "resume", "exit": 1, "stderr": "no such session"})
    report = scene.wake(RESUME, SPAWN)
    assert (report.action, report.result) == (SPAWN, WakeResult.FALLBACK_USED)
    assert [action for action, _ in scene.attempts] == [RESUME, SPAWN]
    assert scene.vendor.arguments == [["exec", "resume", REF, PROMPT], ["exec", FRESH]]


def test_a_failed_command_is_reported_with_what_it_said(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.vendor.behaves({"exit": 1, "stderr": "quota exceeded"})
    report = scene.wake(RESUME)
    assert (report.result, report.cause) == (WakeResult.FAILED, WakeCause.COMMAND_FAILED)
    assert report.detail == "It ended with 1: quota exceeded"
    assert report.command.startswith(f"{scene.vendor.path} exec resume {REF} '[accord wake] ")


def test_codex_says_itself_that_a_conversation_is_open_elsewhere(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.vendor.behaves({"exit": 1, "stderr": f"thread {REF} already has an active writer"})
    assert scene.wake(RESUME).cause is WakeCause.OPEN_ELSEWHERE


def test_claude_is_asked_first_because_resuming_what_is_open_would_split_it(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path, "claude_code")
    scene.vendor.behaves({"when": "agents", "stdout": f'[{{"sessionId": "{REF}"}}]'})
    assert scene.wake(RESUME).cause is WakeCause.OPEN_ELSEWHERE
    scene.vendor.behaves({"when": "agents", "exit": 1, "stderr": "unknown command"})
    assert scene.wake(RESUME).cause is WakeCause.OPEN_ELSEWHERE
    assert scene.vendor.arguments == [["agents", "--json"]] * 2


def test_a_vendors_key_reaches_its_program_and_no_other_secret_does(tmp_path: Path) -> None:
    scene = Scene(tmp_path, environment=["EXTRA"])
    environment = {
        "PATH": "/usr/bin:/bin",
        "OPENAI_API_KEY": "key",
        "ANTHROPIC_API_KEY": "other",
        "ACCORD_TOKEN": "token",
        "EXTRA": "1",
    }
    waker = CommandWaker(scene.agents, machine_name(), environment)
    job = WakeJob(TARGET, (RESUME,), PROMPT, FRESH, scene.runtime)

    async def wake() -> None:
        await waker.wake(job, lambda *_: None)

    asyncio.run(wake())
    (start,) = scene.vendor.starts
    assert {"OPENAI_API_KEY", "EXTRA"} <= set(start["env"])
    assert not {"ANTHROPIC_API_KEY", "ACCORD_TOKEN"} & set(start["env"])


# The operator's file


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"runtime": "cursor"}, "claude_code, codex_cli, gemini_cli"),
        ({"directory": "/nonexistent/work"}, "does not exist"),
        ({"directory": "work"}, "absolute path"),
        ({"program": "codex"}, "absolute path of codex"),
        ({"program": "/nonexistent/codex"}, "was not found"),
        ({"timeout_seconds": 0}, "timeout_seconds"),
        ({"command": "codex exec resume"}, "command"),
        ({"environment": ["A=B"]}, "environment"),
        ({"id": ""}, "id"),
    ],
)
def test_a_wrong_row_is_refused_with_what_to_do(
    tmp_path: Path, change: dict[str, object], words: str
) -> None:
    with pytest.raises(Refused) as refused:
        _ = Scene(tmp_path, **{"runtime": "codex_cli", **change}).agents  # type: ignore[arg-type]
    assert words in refused.value.detail


def test_a_file_that_others_may_write_is_not_trusted(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.file.chmod(0o620)
    with pytest.raises(Refused, match="mode 600"):
        _ = scene.agents


@pytest.mark.parametrize("text", ["[[agent", "agent = 3", "x" * (300 << 10)])
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    scene = Scene(tmp_path)
    scene.file.write_text(text)
    with pytest.raises(Refused, match="is not usable"):
        _ = scene.agents


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="No such file"):
        load_wake_file(tmp_path / "missing.toml")
