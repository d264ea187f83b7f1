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

from accord.cli.connection_notice import RETRY_NOTE
from accord.cli.stdio.line_io import InputLine, LineSplitter
from tests.contract.transport_clients import Stdio
from tests.helpers.clients.cli import clean_environment, run_accord
from tests.helpers.clients.http_client import HttpClient, envelope, join_payload
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves

MIB = 1 << 20
PATIENCE = 60
Bring = Callable[..., Awaitable[Stdio]]


@pytest.fixture
async def alice(server: ServerProcess) -> AsyncIterator[HttpClient]:
    """The admin of the room."""
    web = HttpClient.with_token(server, "alice", roles=["admin", "driver"])
    yield web
    await web.close()


@pytest.fixture
async def bob(server: ServerProcess, alice: HttpClient, tmp_path: Path) -> AsyncIterator[Stdio]:
    """Somebody in that room through a pipe."""
    speaker = Stdio(server, "bob", server.issue_token("bob"), tmp_path / "bob")
    await speaker.open()
    session = await alice.create()
    joined = await speaker.join(session)
    await speaker.hear_until(joined.id)
    yield speaker
    await speaker.close()


async def disconnect_of_bob(alice: HttpClient, session: str) -> list[str]:
    """The types of all messages up to Bob's disconnection, which is waited for."""
    after, types = None, list[str]()
    while True:
        page = await asyncio.wait_for(alice.poll(session, after, wait=5), PATIENCE)
        after = page["next"]
        for said in page["messages"]:
            types.append(said["type"])
            if (
                said["payload"] | {"participant": "bob", "status": "disconnected"}
                == said["payload"]
            ):
                return types


async def problem(speaker: Stdio) -> dict[str, Any]:
    """The next error they hear."""
    while (said := await asyncio.wait_for(speaker.listen(), PATIENCE))["type"] != "error":
        pass
    return said


@proves("PVP-19.4-1", "OPEN-53", "PVP-19.5-3")
async def test_the_end_of_input_changes_presence_alone(alice: HttpClient, bob: Stdio) -> None:
    code, _, err = await bob.end()

    assert "session.leave" not in await disconnect_of_bob(alice, bob.session)
    assert (code, err) == (0, b"")


@proves("OPEN-53")
async def test_a_stop_signal_changes_presence_alone(alice: HttpClient, bob: Stdio) -> None:
    bob.process.send_signal(signal.SIGTERM)

    assert await asyncio.wait_for(bob.process.wait(), PATIENCE) == 0
    assert "session.leave" not in await disconnect_of_bob(alice, bob.session)


@proves("PVP-19.1-2")
async def test_a_server_that_stops_and_comes_back_is_told_on_standard_error(
    server: ServerProcess, alice: HttpClient, bob: Stdio
) -> None:
    await asyncio.to_thread(server.stop)
    lost = await problem(bob)
    await asyncio.to_thread(server.start)
    note = {"key": "k", "content_type": "text", "content": "Hi"}
    await alice.send("context.add", bob.session, note)
    while (await asyncio.wait_for(bob.listen(), PATIENCE))["type"] != "context.add":
        pass
    code, _, err = await bob.end()

    assert lost["payload"]["message"] == "The connection was lost: the server is stopping"
    assert (code, err.decode().splitlines()) == (
        0,
        [
            f"accord: {server.url} says: the server is stopping; {RETRY_NOTE}",
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


async def test_the_end_of_input_needs_no_server(server: ServerProcess, bob: Stdio) -> None:
    server.kill()
    await problem(bob)

    code, _, _ = await bob.end()

    assert code == 0


def test_no_server_is_try_later(tmp_path: Path) -> None:
    ran = run_accord("stdio", ACCORD_URL="http://127.0.0.1:9", ACCORD_HOME=str(tmp_path))

    assert (ran.code, ran.out) == (6, "")
    assert "cannot be reached" in ran.err


async def test_a_token_that_is_void_is_not_allowed(server: ServerProcess, tmp_path: Path) -> None:
    wish = {"id": "eve", "type": "human", "roles": ["driver"]}
    issued = server.admin_request("POST", "/admin/tokens", wish)
    server.admin_request("DELETE", f"/admin/tokens/{issued['claims']['jti']}")

    ran = await asyncio.to_thread(
        run_accord,
        "stdio",
        ACCORD_URL=server.url,
        ACCORD_TOKEN=issued["token"],
        ACCORD_HOME=str(tmp_path),
    )

    assert (ran.code, ran.out) == (3, "")


async def test_a_file_will_do_as_input(
    server: ServerProcess, alice: HttpClient, tmp_path: Path
) -> None:
    session = await alice.create()
    note = {"key": "k", "content_type": "text", "content": "from a file"}
    script = tmp_path / "script.jsonl"
    lines = [
        envelope("session.join", session, "bob", join_payload("bob")),
        envelope("context.add", session, "bob", note),
    ]
    script.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    env = clean_environment(ACCORD_URL=server.url, ACCORD_TOKEN=server.issue_token("bob"))
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
    assert heard[-3:] == ["session.join", "participant.announce", "context.add"]


async def test_an_output_that_is_closed_ends_it(alice: HttpClient, bob: Stdio) -> None:
    assert bob.process.stdout is not None
    bob.process.stdout._transport.close()  # type: ignore[attr-defined]
    note = {"key": "k", "content_type": "text", "content": "for nobody"}
    await alice.send("context.add", bob.session, note)

    assert await asyncio.wait_for(bob.process.wait(), PATIENCE) == 141
    await disconnect_of_bob(alice, bob.session)


async def test_an_output_that_is_not_read_has_a_bound_and_nothing_is_lost(
    alice: HttpClient, bob: Stdio
) -> None:
    assert bob.process.stdout is not None
    said = []
    for n in range(30):
        note = {"key": f"k{n}", "content_type": "text", "content": "x" * (MIB // 2)}
        said.append((await alice.send("context.add", bob.session, note))["id"])
    assert rss(bob.process.pid) < 160 * MIB

    heard = [each["id"] for each in await bob.hear_until(said[-1])]

    assert [id for id in heard if id in set(said)] == said


# Lines


@given(st.lists(st.binary(max_size=20)), st.data())
def test_lines_are_the_same_however_the_bytes_come(parts: list[bytes], data: st.DataObject) -> None:
    whole = b"\n".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=8)))
    chunks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    splitter = LineSplitter(max_length=1000)

    lines = [line for chunk in chunks for line in splitter.feed(chunk)] + list(splitter.flush())

    expected = whole.split(b"\n")
    assert [line.data for line in lines] == (expected if expected[-1] else expected[:-1])


def test_of_a_line_too_long_only_the_beginning_is_kept() -> None:
    splitter = LineSplitter(max_length=10, kept=4)

    lines = list(splitter.feed(b"0123456789abc\nfine\n"))

    assert lines == [InputLine(b"0123", complete=False), InputLine(b"fine")]
