"""`accord stdio`: PVP in lines, for programs of this machine."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.cli.absence import GOES_ON
from accord.cli.pipes import Line, Splitter
from tests.contract.speakers import Stdio
from tests.helpers.cli import accord, environment
from tests.helpers.server import ServerProcess
from tests.helpers.web import Web, envelope, participant
from tests.spec import proves

MIB = 1 << 20
PATIENCE = 60
Bring = Callable[..., Awaitable[Stdio]]


@pytest.fixture
async def alice(server: ServerProcess) -> AsyncIterator[Web]:
    """The admin of the room."""
    web = Web.of(server, "alice", roles=["admin", "driver"])
    yield web
    await web.close()


@pytest.fixture
async def bob(server: ServerProcess, alice: Web, tmp_path: Path) -> AsyncIterator[Stdio]:
    """Somebody in that room through a pipe."""
    speaker = Stdio(server, "bob", server.issue("bob"), tmp_path / "bob")
    await speaker.open()
    session = await alice.create()
    joined = await speaker.join(session)
    await speaker.hear_until(joined.id)
    yield speaker
    await speaker.close()


async def last(alice: Web, session: str) -> dict[str, Any]:
    """What was said last in the room."""
    said: dict[str, Any] = (await alice.poll(session))["messages"][-1]
    return said


async def problem(speaker: Stdio) -> dict[str, Any]:
    """The next error they hear."""
    while (said := await asyncio.wait_for(speaker.listen(), PATIENCE))["type"] != "error":
        pass
    return said


@proves("PVP-19.4-1", "OPEN-53", "PVP-19.5-3")
async def test_the_end_of_input_leaves(alice: Web, bob: Stdio) -> None:
    code, out, err = await bob.end()

    left = await last(alice, bob.session)
    assert (left["type"], left["sender"]) == ("session.leave", "bob")
    assert json.loads(out.splitlines()[-1])["id"] == left["id"]
    assert (code, err) == (0, b"")


@proves("OPEN-53")
async def test_a_stop_signal_leaves_as_well(alice: Web, bob: Stdio) -> None:
    bob.process.send_signal(signal.SIGTERM)

    assert await asyncio.wait_for(bob.process.wait(), PATIENCE) == 0
    assert (await last(alice, bob.session))["type"] == "session.leave"


@proves("PVP-19.1-2")
async def test_a_server_that_stops_and_comes_back_is_told_on_standard_error(
    server: ServerProcess, alice: Web, bob: Stdio
) -> None:
    await asyncio.to_thread(server.stop)
    lost = await problem(bob)
    await asyncio.to_thread(server.start)
    note = {"key": "k", "content_type": "text", "content": "Hi"}
    await alice.say("context.add", bob.session, note)
    while (await asyncio.wait_for(bob.listen(), PATIENCE))["type"] != "context.add":
        pass
    code, _, err = await bob.end()

    assert lost["payload"]["message"] == "The connection was lost: the server stops"
    assert (code, err.decode().splitlines()) == (
        0,
        [
            f"accord: {server.url} says: the server stops; {GOES_ON}",
            f"accord: {server.url} answers again",
        ],
    )


@proves("OPEN-53")
async def test_blank_lines_are_nothing_and_bad_ones_are_answered(bob: Stdio) -> None:
    await bob.write(b"\n  \r\n\nnonsense\n[]\n\xff\xfe\n" + b"[" * 100_000 + b"\n")
    answers = [await problem(bob) for _ in range(4)]
    good = await bob.note("after all that")

    assert {each["payload"]["code"] for each in answers} == {"INVALID_MESSAGE"}
    assert {each["session"] for each in answers} == {""}
    assert good.seq


async def test_a_line_that_never_ends_is_refused_once_and_not_kept(bob: Stdio) -> None:
    for _ in range(12):
        await bob.write(b"x" * MIB)
    await bob.write(b"\n")
    refused = await problem(bob)
    grown = rss(bob.process.pid)

    assert refused["payload"]["code"] == "CONTEXT_TOO_LARGE"
    assert (await bob.note("after that")).seq
    assert grown < 120 * MIB


def rss(pid: int) -> int:
    """How much memory a process has, in bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@proves("PVP-19.5-4")
async def test_every_session_hears_of_a_lost_connection(server: ServerProcess, bob: Stdio) -> None:
    server.kill()

    heard = await problem(bob)

    assert (heard["type"], heard["session"]) == ("error", bob.session)
    assert heard["payload"]["code"] == "TRANSPORT_ERROR"
    assert heard["payload"]["recoverable"] is False


async def test_without_a_server_to_tell_the_end_is_a_failure_in_words(
    server: ServerProcess, bob: Stdio
) -> None:
    server.kill()
    await problem(bob)

    code, _, err = await bob.end()

    assert code == 6
    assert b"could not be told" in err


def test_no_server_is_try_later(tmp_path: Path) -> None:
    ran = accord("stdio", ACCORD_URL="http://127.0.0.1:9", ACCORD_HOME=str(tmp_path))

    assert (ran.code, ran.out) == (6, "")
    assert "cannot be reached" in ran.err


async def test_a_token_that_is_void_is_not_allowed(server: ServerProcess, tmp_path: Path) -> None:
    wish = {"id": "eve", "type": "human", "roles": ["driver"]}
    issued = server.admin("POST", "/admin/tokens", wish)
    server.admin("DELETE", f"/admin/tokens/{issued['claims']['jti']}")

    ran = await asyncio.to_thread(
        accord,
        "stdio",
        ACCORD_URL=server.url,
        ACCORD_TOKEN=issued["token"],
        ACCORD_HOME=str(tmp_path),
    )

    assert (ran.code, ran.out) == (3, "")


async def test_a_file_will_do_as_input(server: ServerProcess, alice: Web, tmp_path: Path) -> None:
    session = await alice.create()
    note = {"key": "k", "content_type": "text", "content": "from a file"}
    script = tmp_path / "script.jsonl"
    lines = [
        envelope("session.join", session, "bob", participant("bob")),
        envelope("context.add", session, "bob", note),
    ]
    script.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    env = environment(ACCORD_URL=server.url, ACCORD_TOKEN=server.issue("bob"))
    with script.open("rb") as file:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "accord", "stdio"),
            stdin=file,
            stdout=asyncio.subprocess.PIPE,
            env=env | {"ACCORD_HOME": str(tmp_path)},
        )
        out, _ = await asyncio.wait_for(process.communicate(), PATIENCE)

    assert process.returncode == 0
    heard = [json.loads(line)["type"] for line in out.splitlines()]
    assert heard[-4:] == ["session.join", "participant.announce", "context.add", "session.leave"]


async def test_an_output_that_nobody_reads_ends_it_after_a_goodbye(alice: Web, bob: Stdio) -> None:
    assert bob.process.stdout is not None
    bob.process.stdout._transport.close()  # type: ignore[attr-defined]
    note = {"key": "k", "content_type": "text", "content": "for nobody"}
    await alice.say("context.add", bob.session, note)

    assert await asyncio.wait_for(bob.process.wait(), PATIENCE) == 141
    assert (await last(alice, bob.session))["type"] == "session.leave"


async def test_an_output_that_is_not_read_has_a_bound_and_nothing_is_lost(
    alice: Web, bob: Stdio
) -> None:
    assert bob.process.stdout is not None
    said = []
    for n in range(30):
        note = {"key": f"k{n}", "content_type": "text", "content": "x" * (MIB // 2)}
        said.append((await alice.say("context.add", bob.session, note))["id"])
    assert rss(bob.process.pid) < 160 * MIB

    heard = [each["id"] for each in await bob.hear_until(said[-1])]

    assert [id for id in heard if id in set(said)] == said


# Lines


@given(st.lists(st.binary(max_size=20)), st.data())
def test_lines_are_the_same_however_the_bytes_come(parts: list[bytes], data: st.DataObject) -> None:
    whole = b"\n".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    chunks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    splitter = Splitter(longest=1000)

    lines = [line for chunk in chunks for line in splitter.feed(chunk)] + list(splitter.rest())

    expected = whole.split(b"\n")
    assert [line.data for line in lines] == (expected if expected[-1] else expected[:-1])


def test_of_a_line_too_long_only_the_beginning_is_kept() -> None:
    splitter = Splitter(longest=10, kept=4)

    lines = list(splitter.feed(b"0123456789abc\nfine\n"))

    assert lines == [Line(b"0123", whole=False), Line(b"fine")]
