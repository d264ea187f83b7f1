"""Offers of another protocol are declined; nothing of a request is lost or taken for another."""

import json
import re
import socket
from collections.abc import Iterator
from itertools import pairwise

import pytest
from httptools import HttpParserUpgrade
from hypothesis import given
from hypothesis import strategies as st

from accord.transports.edge.declined_upgrade import UpgradeDecliningParser, without_upgrade_headers
from tests.helpers.attacks.raw_socket import plug, rest
from tests.helpers.clients.http_client import envelope
from tests.helpers.clients.websocket_client import SESSION_CONFIG
from tests.helpers.servers.server_process import ServerProcess, run_server

OFFERS = {
    "http/2": "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
    "anything": "Upgrade: tea/1\r\nConnection: keep-alive,upgrade\r\n",
}
SMUGGLED = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
STATUS = re.compile(rb"HTTP/1\.1 (\d+)")


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


def head(house: ServerProcess, offer: str, size: int) -> bytes:
    lines = f"POST /sessions/new/messages HTTP/1.1\r\nHost: localhost:{house.port}\r\n"
    lines += f"Authorization: Bearer {house.issue_token('alice', roles=['admin'])}\r\n"
    lines += f"Content-Type: application/json\r\n{OFFERS[offer]}Content-Length: {size}\r\n\r\n"
    return lines.encode()


def answers(opened: socket.socket, count: int) -> bytes:
    """So many, and whatever else comes when no more is asked."""
    heard = b""
    while len(STATUS.findall(heard)) < count and (more := opened.recv(1 << 16)):
        heard += more
    opened.shutdown(socket.SHUT_WR)
    return heard + rest(opened)


@pytest.mark.parametrize("size", [0, 20_000, 300_000])
@pytest.mark.parametrize("offer", OFFERS)
def test_a_message_with_an_offer_is_heard_whole_and_so_is_the_next(
    house: ServerProcess, offer: str, size: int
) -> None:
    wish = {"config": SESSION_CONFIG, "name": "Offered"}
    said = json.dumps(envelope("session.create", "new", "alice", wish)).encode().ljust(size)
    with plug(house) as opened:
        opened.sendall(head(house, offer, len(said)) + said + SMUGGLED)
        heard = answers(opened, 2)

    assert STATUS.findall(heard) == [b"200", b"200"]
    assert b'"session":"ses_' in heard


@pytest.mark.parametrize("offer", OFFERS)
def test_a_body_behind_an_offer_is_no_request(house: ServerProcess, offer: str) -> None:
    with plug(house) as opened:
        opened.sendall(head(house, offer, len(SMUGGLED)))
        opened.sendall(SMUGGLED)
        heard = answers(opened, 1)

    assert STATUS.findall(heard) == [b"400"]


# By itself


class Notes:
    """What a parser tells."""

    def __init__(self) -> None:
        self.parser = UpgradeDecliningParser(self)
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.declines_upgrade = False
        self.told: list[tuple[str, object]] = []
        self.body = b""

    def on_message_begin(self) -> None:
        self.url, self.headers, self.body = b"", [], b""

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.declines_upgrade = self.parser.should_upgrade() and not self.parser.is_tunnel()
        if not self.declines_upgrade:
            stays = self.parser.should_keep_alive()
            self.told.append((f"{self.parser.get_method()!r} {self.url!r}", stays))
            self.told.append(("headers", self.headers))

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        if not self.declines_upgrade:
            self.told.append(("body", self.body))


bodies = st.one_of(st.just(b""), st.binary(max_size=60), st.just(SMUGGLED))
offers = st.sampled_from(
    [b"", b"Upgrade: h2c\r\nConnection: Upgrade\r\n", b"Connection: x, upgrade\r\nUPGRADE: tea\r\n"]
)


def request(body: bytes, offer: bytes, *, chunked: bool, last: bool) -> tuple[bytes, bytes]:
    """A request, with this offer and without."""
    how = b"Connection: close\r\n" if last else b""
    if chunked:
        whole = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
        how, body = how + b"Transfer-Encoding: chunked\r\n", whole + b"0\r\n\r\n"
    else:
        how += b"Content-Length: %d\r\n" % len(body)
    start = b"POST /x?y HTTP/1.1\r\nHost: here\r\n"
    kept = b"Connection: x\r\n" if b"x, upgrade" in offer else b""
    return start + offer + how + b"\r\n" + body, start + kept + how + b"\r\n" + body


def told(data: bytes, cuts: list[int]) -> list[tuple[str, object]]:
    notes, places = Notes(), [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for begin, end in pairwise(places):
        notes.parser.feed_data(memoryview(data)[begin:end])
    return notes.told


@given(
    st.lists(st.tuples(bodies, offers, st.booleans()), min_size=1, max_size=3),
    st.lists(st.integers(0, 2000), max_size=6),
)
def test_what_is_told_is_what_would_be_told_without_the_offer(
    asked: list[tuple[bytes, bytes, bool]], cuts: list[int]
) -> None:
    both = [
        request(body, offer, chunked=chunked, last=at == len(asked) - 1)
        for at, (body, offer, chunked) in enumerate(asked)
    ]

    with_offers, without = (b"".join(each) for each in zip(*both, strict=True))

    assert told(with_offers, cuts) == told(without, [])


def test_connect_is_not_treated_as_an_upgrade() -> None:
    notes = Notes()

    with pytest.raises(HttpParserUpgrade):
        notes.parser.feed_data(b"CONNECT there:1 HTTP/1.1\r\nHost: here\r\n\r\n")


def test_what_else_a_connection_says_stays_said() -> None:
    said = [(b"connection", b"close, Upgrade"), (b"upgrade", b"h2c"), (b"connection", b"upgrade")]

    assert list(without_upgrade_headers(said)) == [(b"connection", b"close")]
