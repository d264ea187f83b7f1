"""The log tells what happened and to whom, and never what anybody said."""

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
from accord.core.kernel.refusal import Refused, Why
from accord.core.room.prompts import PromptSubmit
from accord.logs import BURST as AT_ONCE
from accord.logs import EVENT, MOST_KINDS, Few, Lines, set_up
from accord.transports.reports import BURST, Reports
from tests.helpers.server import ServerProcess, a_server
from tests.helpers.wire import Wire
from tests.security.raw import plug, rest
from tests.security.scene import PROMPT, PROPOSAL, get, scene

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


async def say_marked(wires: Sequence[Wire], session: str) -> None:
    """Every type there is, with the mark wherever something can be written, by all in turn.

    Only so many mistakes are reported, and nobody's alone.
    """
    for type in sorted({*BODIES, MARK} - ENDING):
        fields = BODIES[type].__struct_fields__ if type in BODIES else ("content",)
        payload = dict.fromkeys(fields, MARK)
        for wire in wires:
            await wire.say(type, session, payload, ref=MARK, causal_refs=[MARK], id=MARK + type)
            await wire.say(type, session, {name: {MARK: [MARK]} for name in fields} | {MARK: MARK})
            await wire.say(type, MARK, payload)
            await wire.socket.send(MARK)
            await wire.socket.send(json.dumps({"v": 1, "id": MARK, "session": MARK, "type": MARK}))
            last = await wire.say("prompt.submit", session, PROMPT | {"target_agent": MARK})
            await wire.hear_until("error", related_to=last)


async def test_no_content_reaches_the_log_even_when_it_says_everything(tmp_path: Path) -> None:
    with a_server(tmp_path, "token", "--log-level", "debug") as server:
        here = await scene(server)
        arguments = PROPOSAL | {"arguments": {MARK: MARK}, "description": MARK}
        await here.bot.say("tool.propose", here.session, arguments)
        await here.alice.hear_until("tool.propose")
        await say_marked((here.bot, here.alice), here.session)
        await here.alice.say(
            "session.end", here.session, {"reason": MARK, "final_state": "completed"}
        )
        await here.alice.hear_until("session.end")
        await here.alice.say("secret.share", here.session, {"key": MARK, "value": MARK})
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
def test_no_value_can_end_its_line(text: bool, value: str) -> None:
    line = Lines(text=text).format(record("message.refused", principal=value))

    assert line.isprintable()
    assert line.isascii()


def test_what_is_no_field_of_ours_is_left_out() -> None:
    told = json.loads(
        Lines(text=False).format(record("commit.lost", payload=MARK, stream="room/r"))
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
def test_of_sentences_no_word_that_could_be_content_is_told(
    msg: str, args: tuple[str, ...], name: str
) -> None:
    told = json.loads(Lines(text=False).format(record(msg, *args, name=name)))

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


def test_an_error_has_its_stack_and_not_its_words(written: io.StringIO) -> None:
    set_up("json", "info", written)
    try:
        int(MARK)
    except ValueError:
        logging.getLogger("accord.x").exception("decide.failed", extra={"stream": "room/r"})
    told = json.loads(written.getvalue())

    assert told["error"] == "ValueError"
    assert told["stack"][-1].endswith("test_an_error_has_its_stack_and_not_its_words")
    assert MARK not in written.getvalue()


def test_on_a_terminal_it_is_words(written: io.StringIO) -> None:
    set_up("text", "warning", written)
    log = logging.getLogger("accord.x")
    log.info("stop.begun")
    log.warning("reader.cut_off", extra={"principal": "o l\nga", "ms": 7})

    (line,) = written.getvalue().splitlines()
    assert line.endswith('warning reader.cut_off principal="o l\\nga" ms=7')


def test_many_refusals_are_a_few_lines_and_a_count(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "accord.refusals")
    at = 100.0
    reports = Reports(lambda: at)
    no = Refused(Why.TOO_MANY, MARK)
    for _ in range(10_000):
        reports.tell(no, "alice", "r", PromptSubmit)
    assert len(caplog.records) == BURST
    at += 1
    reports.tell(no, "alice", "r", None)

    assert [each.msg for each in caplog.records[-2:]] == ["refusal.unreported", "message.refused"]
    assert getattr(caplog.records[-2], "count", 0) == 10_000 - BURST


def test_the_server_logs_events_by_name_and_never_sentences() -> None:
    """A sentence would be left out of the log, with everything in it that an operator needs."""
    said = [
        f"{path.name}: {msg}"
        for path in sorted(SOURCE.rglob("*.py"))
        if not {"client", "cli", "agents", "demo"} & set(path.relative_to(SOURCE).parts)
        for msg in LOGGED.findall(path.read_text("utf-8"))
        if not EVENT.fullmatch(msg)
    ]

    assert said == []


def test_the_reference_has_every_event_and_none_that_is_not() -> None:
    logged = {
        msg
        for path in SOURCE.rglob("*.py")
        for msg in LOGGED.findall(path.read_text("utf-8"))
        if EVENT.fullmatch(msg)
    }
    page = SOURCE.parent.parent / "docs" / "reference" / "log.md"
    listed = re.findall(r"^\| `([a-z_.]+)` \|", page.read_text("utf-8"), re.MULTILINE)

    assert sorted(listed) == sorted(logged | {"library.said"})


# What is said over and over


def warned(msg: str = "Invalid HTTP request received.", level: int = logging.WARNING) -> Any:
    """What a library says of a request that is none."""
    return logging.LogRecord("uvicorn.error", level, __file__, 1, msg, (), None)


def test_what_comes_over_and_over_is_told_so_often_and_counted() -> None:
    now = [0.0]
    few = Few(lambda: now[0])

    told = [few.filter(warned()) for _ in range(1000)]
    assert sum(told) == AT_ONCE
    assert few.filter(warned("another")), "of another kind there was none yet"
    now[0] = 1.0
    again = warned()
    assert few.filter(again)
    assert json.loads(Lines(text=False).format(again))["unreported"] == 1000 - AT_ONCE
    after = warned()
    assert few.filter(after)
    assert "unreported" not in Lines(text=False).format(after)


@pytest.mark.parametrize("level", [logging.DEBUG, logging.ERROR, logging.CRITICAL])
def test_what_is_wrong_and_what_was_asked_for_is_always_told(level: int) -> None:
    few = Few(lambda: 0.0)

    assert all(few.filter(warned(level=level)) for _ in range(1000))


def test_kinds_without_end_are_not_remembered() -> None:
    few = Few(lambda: 0.0)

    for number in range(10 * MOST_KINDS):
        assert few.filter(warned(f"kind {number}"))
    assert len(few.kinds) <= MOST_KINDS


def test_nobody_outside_fills_a_disk_with_lines(tmp_path: Path) -> None:
    with a_server(tmp_path) as server:
        for _ in range(400):
            with plug(server) as opened:
                opened.sendall(b"nonsense\r\n\r\n")
                assert rest(opened)
        said = [each for each in lines(server) if each["event"] == "library.said"]

    assert len(said) < 400
