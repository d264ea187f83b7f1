"""The rules for every HTTP request of the client and the command line."""

import asyncio

import pytest

from accord.client import http_client
from accord.client.errors import ServerRefused, Unreachable
from accord.client.http_client import HttpClient, HttpResponse, is_listening, is_transient
from accord.client.identity import parse_address
from tests.client.connection.test_backoff import unused_url
from tests.helpers.servers.scripted_http import answering, responding

OK_HEAD = b"HTTP/1.1 200 OK\r\n"
# Reserved for documentation (RFC 5737), so a direct connection would not succeed.
REMOTE_URL = "http://192.0.2.1:7420"
REFUSAL = (
    b'{"error":{"code":"RATE_LIMITED","message":"Wait","details":{"retry_after_ms":1500},"new":1}}'
)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def test_request_carries_token_method_body_and_quoted_path() -> None:
    heads: list[bytes] = []

    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        heads.append(head)
        writer.write(OK_HEAD + b"Content-Length: 2\r\n\r\n{}")

    async with responding(respond) as url:
        http = HttpClient(parse_address(url + "/base/"), "secret")
        content = await http.request(("a b", "c/d"), {"q": "x&y"}, method="POST", body=b"[1]")

    (head,) = heads
    assert content == b"{}"
    assert head.startswith(b"POST /base/a%20b/c%2Fd?q=x%26y HTTP/1.1\r\n")
    assert b"Authorization: Bearer secret\r\n" in head
    assert b"Content-Type: application/json\r\n" in head
    assert b"Content-Length: 3\r\n" in head


async def test_response_over_the_size_limit_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_RESPONSE_BYTES", 1 << 20)
    sent = 0

    async def respond(_: bytes, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(OK_HEAD + b"\r\n")
        while sent < 1 << 30:
            writer.write(bytes(1 << 16))
            await writer.drain()
            sent += 1 << 16

    async with responding(respond) as url:
        with pytest.raises(Unreachable, match="larger than 1 MiB"):
            await HttpClient(parse_address(url)).request(("sessions",))

    assert sent < 1 << 29


async def test_response_sent_byte_by_byte_ends_at_the_timeout() -> None:
    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        assert head
        writer.write(OK_HEAD + b"Content-Length: 1000\r\n\r\n")
        for _ in range(1000):
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    async with responding(respond) as url:
        with pytest.raises(Unreachable, match=r"longer than 0\.3 s") as error:
            await HttpClient(parse_address(url), timeout_s=0.3).request(("sessions",))

    assert is_transient(error.value)


async def test_error_response_without_an_explanation_is_unreachable() -> None:
    async with answering("HTTP/1.1 502 Bad Gateway", "Content-Length: 5", "", "<html") as url:
        with pytest.raises(Unreachable, match="HTTP status 502") as error:
            await HttpClient(parse_address(url)).request(())

    assert url in str(error.value)


@pytest.mark.parametrize(
    ("status", "transient"),
    [(408, True), (425, True), (429, True), (503, True), (400, False), (404, False), (500, False)],
)
def test_status_says_whether_a_retry_may_help(status: int, transient: bool) -> None:
    error = HttpClient(parse_address(REMOTE_URL)).error_of(HttpResponse(status, {}, REFUSAL))

    assert isinstance(error, ServerRefused)
    assert (error.code, error.message, error.status) == ("RATE_LIMITED", "Wait", status)
    assert is_transient(error) is transient
    assert http_client.retry_after_s(error) == 1.5


async def test_remote_server_is_asked_through_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heads: list[bytes] = []

    async def respond(head: bytes, writer: asyncio.StreamWriter) -> None:
        heads.append(head)
        writer.write(OK_HEAD + b"Content-Length: 2\r\n\r\nok")

    async with responding(respond) as proxy:
        monkeypatch.setenv("http_proxy", proxy.removeprefix("http://"))
        content = await HttpClient(parse_address(REMOTE_URL)).request(("healthz",))
        assert await asyncio.to_thread(is_listening, REMOTE_URL)

    assert content == b"ok"
    assert heads[0].startswith(f"GET {REMOTE_URL}/healthz HTTP/1.1".encode())


async def test_server_on_this_machine_is_asked_without_a_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", unused_url())
    async with answering("HTTP/1.1 200 OK", "Content-Length: 2", "", "ok") as url:
        assert await HttpClient(parse_address(url)).request(("healthz",)) == b"ok"
        assert await asyncio.to_thread(is_listening, url.replace("http:", "ws:"))


@pytest.mark.parametrize("url", ["", "ftp://x", "http://", "http://[::1"])
def test_nothing_listens_at_an_invalid_address(url: str) -> None:
    assert not is_listening(url)


def test_nothing_listens_at_an_unused_address() -> None:
    assert not is_listening(unused_url())
