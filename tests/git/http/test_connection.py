"""One connection for a hook, within one deadline, whatever the server does with it."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from accord.git.http import connecting, response
from accord.git.http.connection import close_kept, exchange
from accord.git.http.request import render_request
from tests.helpers.servers.silent_ports import unreachable_port

SOON_S = 30.0
HEAD = b"HTTP/1.1 200 OK\r\n"
Serve = Callable[[socket.socket], None]


@pytest.fixture(autouse=True)
def _nothing_is_kept() -> Iterator[None]:
    yield
    close_kept()


@contextmanager
def serving(*turns: Serve) -> Iterator[str]:
    """A server that treats each connection in its turn so; its address."""

    def serve() -> None:
        for turn in turns:
            peer, _ = listener.accept()
            with peer:
                turn(peer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(SOON_S)


def answering(*answers: bytes) -> Serve:
    """Answers so many requests on one connection, and closes it."""

    def serve(peer: socket.socket) -> None:
        for answer in answers:
            if not peer.recv(65536):
                return
            peer.sendall(answer)

    return serve


def ask(url: str) -> response.WholeResponse:
    return exchange(url, render_request(url, "/git/status", b"{}"), time.monotonic() + SOON_S, {})


def sized(body: bytes, *headers: bytes) -> bytes:
    lines = [b"Content-Length: %d" % len(body), *headers]
    return HEAD + b"\r\n".join([*lines, b"", body])


def test_a_connection_is_used_again() -> None:
    with serving(answering(sized(b"one"), sized(b"two"))) as url:
        assert [ask(url).body for _ in range(2)] == [b"one", b"two"]
        close_kept()


def test_a_connection_that_the_server_closed_meanwhile_is_opened_again() -> None:
    with serving(answering(sized(b"one")), answering(sized(b"two"))) as url:
        assert [ask(url).body for _ in range(2)] == [b"one", b"two"]
        close_kept()


@pytest.mark.parametrize(
    "answer",
    [
        sized(b"one", b"Connection: Close"),
        b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\none",
        HEAD + b"\r\none",
    ],
)
def test_a_connection_that_the_server_does_not_keep_is_not_used_again(answer: bytes) -> None:
    """The server would answer there, too; a new connection is asked all the same."""
    first = answering(answer) if answer.startswith(HEAD + b"\r\n") else answering(answer, answer)
    with serving(first, answering(sized(b"two"))) as url:
        assert [ask(url).body for _ in range(2)] == [b"one", b"two"]
        close_kept()


@pytest.mark.parametrize(
    "chunks",
    [b"3\r\none\r\n0\r\n\r\n", b"1;x=y\r\no\r\n2\r\nne\r\n0\r\nTrailer: t\r\n\r\n"],
)
def test_a_body_in_chunks_is_put_together(chunks: bytes) -> None:
    answer = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    with serving(answering(answer, sized(b"two"))) as url:
        assert [ask(url).body for _ in range(2)] == [b"one", b"two"]
        close_kept()


@pytest.mark.parametrize(
    "answer",
    [
        sized(b"x" * (response.MAX_RESPONSE_BYTES + 1)),
        sized(b"one")[:-1],
        b"nonsense\r\n\r\n",
        b"",
        HEAD + b"Content-Length: many\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nmany\r\n",
    ],
)
def test_an_answer_that_is_none_is_an_error(answer: bytes) -> None:
    with serving(answering(answer)) as url, pytest.raises((OSError, ValueError)):
        ask(url)


def test_an_address_without_a_route_leaves_time_for_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where a name has an IPv6 address, and the network passes IPv4 alone."""
    with unreachable_port() as dead, socket.create_server(("127.0.0.1", 0)) as listener:
        ports = [dead, *[listener.getsockname()[1]] * 11]
        found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port)) for port in ports]
        monkeypatch.setattr(connecting, "_looked_up", lambda *_: found)
        connection = connecting.connect("accord.example.test", 443, time.monotonic() + 18.0)
        with connection:  # after a twelfth of the time
            assert connection.getpeername() == listener.getsockname()


def test_all_addresses_together_have_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    with unreachable_port() as dead:
        found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", dead))] * 20
        monkeypatch.setattr(connecting, "_looked_up", lambda *_: found)
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            connecting.connect("accord.example.test", 443, began + 1.0)

    assert time.monotonic() - began < 10.0  # twenty times a second would be twenty


def test_a_name_that_nobody_knows_is_an_error() -> None:
    with pytest.raises(OSError, match=r"."):
        connecting.connect("accord.invalid", 443, time.monotonic() + SOON_S)


def test_a_request_that_would_carry_a_second_header_is_not_made() -> None:
    with pytest.raises(ValueError, match="line break"):
        render_request("http://127.0.0.1", "/git/status", b"{}", "x\r\nHost: evil")
    assert json.loads(render_request("http://h/base", "/p", b"{}").split(b"\r\n\r\n")[1]) == {}
