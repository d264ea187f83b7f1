"""The server log contains events, ids and numbers, and never message content."""

import io
import json
import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import accord
from accord.core.dialects.pvp import BODIES
from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.conversation.prompts import PromptSubmit
from accord.telemetry.logs import BURST_LINES as AT_ONCE
from accord.telemetry.logs import (
    EVENT_NAME,
    MAX_KINDS,
    LineFormatter,
    RateLimitFilter,
    set_up_logging,
)
from accord.transports.refusal_log import LINE_BURST, RefusalLog
from tests.helpers.attacks.approval_scene import PROMPT, PROPOSAL, get, scene
from tests.helpers.attacks.raw_socket import plug, rest
from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.servers.server_process import ServerProcess, run_server

MARK = "xyzzy-content-7f3a"
SOURCE = Path(accord.__file__).parent
LOGGED = re.compile(r"\blog\.(?:debug|info|warning|error|exception|critical)\(\s*f?\"([^\"]*)")
ENDING = frozenset({"session.end", "session.leave"})


def lines(server: ServerProcess) -> list[dict[str, Any]]:
    return [json.loads(line) for line in server.log.splitlines() if line.startswith("{")]


def record(msg: Any, *args: Any, name: str = "accord.engine", **fields: Any) -> logging.LogRecord:
    made = logging.LogRecord(name, logging.INFO, __file__, 1, msg, args, None)
    made.__dict__.update(fields)
    return made


async def say_marked(wires: Sequence[WebSocketClient], session: str) -> None:
    """Every type there is, with the mark wherever something can be written, by all in turn.

    Only so many mistakes are reported, and nobody's alone.
    """
    for type in sorted({*BODIES, MARK} - ENDING):
        fields = BODIES[type].__struct_fields__ if type in BODIES else ("content",)
        payload = dict.fromkeys(fields, MARK)
        for wire in wires:
            await wire.send(type, session, payload, ref=MARK, causal_refs=[MARK], id=MARK + type)
            await wire.send(type, session, {name: {MARK: [MARK]} for name in fields} | {MARK: MARK})
            await wire.send(type, MARK, payload)
            await wire.socket.send(MARK)
            await wire.socket.send(json.dumps({"v": 1, "id": MARK, "session": MARK, "type": MARK}))
            last = await wire.send("prompt.submit", session, PROMPT | {"target_agent": MARK})
            await wire.receive_until("error", related_to=last)


async def test_log_at_debug_level_contains_no_content(tmp_path: Path) -> None:
    with run_server(tmp_path, "token", "--log-level", "debug") as server:
        here = await scene(server)
        arguments = PROPOSAL | {"arguments": {MARK: MARK}, "description": MARK}
        await here.bot.send("tool.propose", here.session, arguments)
        await here.alice.receive_until("tool.propose")
        await say_marked((here.bot, here.alice), here.session)
        await here.alice.send(
            "session.end", here.session, {"reason": MARK, "final_state": "completed"}
        )
        await here.alice.receive_until("session.end")
        await here.alice.send("secret.share", here.session, {"key": MARK, "value": MARK})
        await get(f"{server.url}/sessions/{MARK}?as={MARK}&token={MARK}", MARK, Cookie=MARK)
        await get(f"{server.url}/{MARK}", **{f"X-{MARK}": MARK})
        await here.alice.socket.close()
        await here.bot.socket.close()
        server.stop()
        log, told = server.log, lines(server)

    assert MARK not in log
    assert server.admin_token not in log
    events = {line["event"] for line in told}
    assert {"message.refused", "http.request", "stop.begun", "stop.done"} <= events
    refused = [line for line in told if line["event"] == "message.refused"]
    assert {"alice", "bot"} <= {line["principal"] for line in refused}
    assert here.session in {line.get("session") for line in refused}
    assert "INVALID_MESSAGE" in {line["code"] for line in refused}


@pytest.mark.parametrize("text", [True, False])
@given(value=st.text(max_size=200))
def test_field_values_cannot_break_the_line(text: bool, value: str) -> None:
    line = LineFormatter(text=text).format(record("message.refused", principal=value))

    assert line.isprintable()
    assert line.isascii()


def test_unknown_fields_are_left_out() -> None:
    told = json.loads(
        LineFormatter(text=False).format(record("commit.lost", payload=MARK, stream="room/r"))
    )

    assert told["stream"] == "room/r"
    assert MARK not in str(told)


@pytest.mark.parametrize(
    ("msg", "args", "name"),
    [
        (f"frame {MARK}", (), "picows"),
        ("frame %s", (MARK,), "picows"),
        ("request %s", (MARK,), "uvicorn.error"),
        (f"Exception\n{MARK}", (), "uvicorn.error"),
        ("cannot read %s", (MARK,), "accord.engine"),
        (f"cannot read {MARK}", (), "accord.engine"),
        (MARK, (), "accord.engine"),
    ],
)
def test_library_messages_are_not_logged(msg: str, args: tuple[str, ...], name: str) -> None:
    told = json.loads(LineFormatter(text=False).format(record(msg, *args, name=name)))

    assert told["event"] == "library.said"
    assert MARK not in str(told)


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    """The log of this process, put back afterwards."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    root.handlers.clear()
    to = io.StringIO()
    yield to
    root.handlers[:] = before
    root.setLevel(level)
    logging.getLogger("accord").setLevel(logging.NOTSET)


def test_error_has_its_stack_without_its_text(written: io.StringIO) -> None:
    set_up_logging("json", "info", written)
    try:
        int(MARK)
    except ValueError:
        logging.getLogger("accord.x").exception("decide.failed", extra={"stream": "room/r"})
    told = json.loads(written.getvalue())

    assert told["error"] == "ValueError"
    assert told["stack"][-1].endswith("test_error_has_its_stack_without_its_text")
    assert MARK not in written.getvalue()


def test_text_format_for_a_terminal(written: io.StringIO) -> None:
    set_up_logging("text", "warning", written)
    log = logging.getLogger("accord.x")
    log.info("stop.begun")
    log.warning("reader.cut_off", extra={"principal": "o l\nga", "ms": 7})

    (line,) = written.getvalue().splitlines()
    assert line.endswith('warning reader.cut_off principal="o l\\nga" ms=7')


def test_repeated_refusals_are_rate_limited_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "accord.refusals")
    at = 100.0
    reports = RefusalLog(lambda: at)
    no = Refused(Reason.TOO_MANY, MARK)
    for _ in range(10_000):
        reports.log_refusal(no, "alice", "r", PromptSubmit)
    assert len(caplog.records) == LINE_BURST
    at += 1
    reports.log_refusal(no, "alice", "r", None)

    assert [each.msg for each in caplog.records[-2:]] == ["refusal.unreported", "message.refused"]
    assert getattr(caplog.records[-2], "count", 0) == 10_000 - LINE_BURST


def test_server_code_logs_only_event_names() -> None:
    """A sentence would be left out of the log, with everything in it that an operator needs."""
    said = [
        f"{path.name}: {msg}"
        for path in sorted(SOURCE.rglob("*.py"))
        if not {"client", "cli", "agents", "daemon", "demo"} & set(path.relative_to(SOURCE).parts)
        for msg in LOGGED.findall(path.read_text("utf-8"))
        if not EVENT_NAME.fullmatch(msg)
    ]

    assert said == []


def test_reference_lists_exactly_the_logged_events() -> None:
    logged = {
        msg
        for path in SOURCE.rglob("*.py")
        for msg in LOGGED.findall(path.read_text("utf-8"))
        if EVENT_NAME.fullmatch(msg)
    }
    page = SOURCE.parent.parent / "docs" / "reference" / "log.md"
    listed = re.findall(r"^\| `([a-z_.]+)` \|", page.read_text("utf-8"), re.MULTILINE)

    assert sorted(listed) == sorted(logged | {"library.said"})


# What is said over and over


def warned(msg: str = "Invalid HTTP request received.", level: int = logging.WARNING) -> Any:
    """What a library says of a request that is none."""
    return logging.LogRecord("uvicorn.error", level, __file__, 1, msg, (), None)


def test_repeated_warnings_are_rate_limited_and_counted() -> None:
    now = [0.0]
    few = RateLimitFilter(lambda: now[0])

    told = [few.filter(warned()) for _ in range(1000)]
    assert sum(told) == AT_ONCE
    assert few.filter(warned("another")), "of another kind there was none yet"
    now[0] = 1.0
    again = warned()
    assert few.filter(again)
    assert json.loads(LineFormatter(text=False).format(again))["unreported"] == 1000 - AT_ONCE
    after = warned()
    assert few.filter(after)
    assert "unreported" not in LineFormatter(text=False).format(after)


@pytest.mark.parametrize("level", [logging.DEBUG, logging.ERROR, logging.CRITICAL])
def test_errors_and_debug_records_are_never_rate_limited(level: int) -> None:
    few = RateLimitFilter(lambda: 0.0)

    assert all(few.filter(warned(level=level)) for _ in range(1000))


def test_number_of_remembered_kinds_is_bounded() -> None:
    few = RateLimitFilter(lambda: 0.0)

    for number in range(10 * MAX_KINDS):
        assert few.filter(warned(f"kind {number}"))
    assert len(few.kinds) <= MAX_KINDS


def test_client_cannot_fill_the_disk_with_log_lines(tmp_path: Path) -> None:
    with run_server(tmp_path) as server:
        for _ in range(400):
            with plug(server) as opened:
                opened.sendall(b"nonsense\r\n\r\n")
                assert rest(opened)
        said = [each for each in lines(server) if each["event"] == "library.said"]

    assert len(said) < 400
