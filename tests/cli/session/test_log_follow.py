"""`accord session log --follow` while the server is away: what it says, and how long it waits."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from accord.cli.connection_notice import RETRY_NOTE, ConnectionNotice
from accord.cli.session.history import POLL_INTERVAL_S, follow
from accord.client import ClientError, RetryPolicy, ServerRefused, SignedOut, Unreachable
from accord.client.connection.backoff import MAX_RETRY_AFTER_S
from accord.client.http_client import HttpClient, HttpResponse
from accord.client.identity import parse_address
from tests.spec import proves

URL = "http://accord.test"
GONE = Unreachable(f"{URL} cannot be reached: no route", transient=True)
STOPS = ServerRefused("INTERNAL_ERROR", "The server stops; try again in a moment", status=503)
Said = list[dict[str, Any]]
END: Said = [{"type": "session.end", "seq": 2}]


class Source:
    """What is heard at one look after the other, or why nothing is."""

    def __init__(self, *looks: Said | ClientError) -> None:
        self.looks = list(looks)
        self.after: list[int] = []
        self.waits: list[float] = []

    async def transcript(self, id: str, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        self.after.append(after)
        found = self.looks.pop(0)
        if isinstance(found, ClientError):
            raise found
        for each in found:
            yield each

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def follow(self) -> list[Said]:
        """Everything there is to hear; each wait is the longest there may be."""
        retry = RetryPolicy(jitter=lambda: 1.0, sleep=self.sleep, clock=lambda: 0.0)
        found: list[Said] = []
        async for each in follow(self, "s", 0, retry, ConnectionNotice(URL)):  # type: ignore[arg-type]  # one of four
            found.append(each)
            if each == END:
                break
        return found


@proves("PVP-19.1-2")
async def test_who_is_away_is_asked_again_after_growing_waits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = Source([{"type": "x", "seq": 1}], GONE, GONE, GONE, STOPS, END)

    assert await source.follow() == [[{"type": "x", "seq": 1}], END]

    assert source.waits == [POLL_INTERVAL_S, 0.2, 0.4, 0.8, 1.6]
    assert source.after == [0, 1, 1, 1, 1, 1]
    told = capsys.readouterr().err.splitlines()
    assert told == [
        f"accord: {URL} cannot be reached; {RETRY_NOTE}",
        f"accord: {URL} answers again",
    ]


async def test_each_absence_is_told_with_the_words_of_the_server(
    capsys: pytest.CaptureFixture[str],
) -> None:
    await Source(STOPS, [], GONE, END).follow()

    assert capsys.readouterr().err.splitlines() == [
        f"accord: {URL} says: {STOPS.message}; {RETRY_NOTE}",
        f"accord: {URL} answers again",
        f"accord: {URL} cannot be reached; {RETRY_NOTE}",
        f"accord: {URL} answers again",
    ]


@pytest.mark.parametrize(
    ("asked", "waits"),
    [(1500, 1.7), (10**400, MAX_RETRY_AFTER_S + 0.2), (-1, 0.2)],
    ids=["moderate", "absurd", "none"],
)
async def test_a_server_that_names_a_time_is_left_alone_until_then(
    asked: int, waits: float
) -> None:
    busy = ServerRefused("RATE_LIMITED", "Wait", details={"retry_after_ms": asked}, status=429)
    source = Source(busy, END)

    await source.follow()

    assert source.waits == [pytest.approx(waits)]


@pytest.mark.parametrize(
    "no",
    [
        ServerRefused("SESSION_NOT_FOUND", "There is no session s", status=404),
        ServerRefused("UNAUTHORIZED", "The token has expired", status=401),
        ServerRefused("INTERNAL_ERROR", "Something went wrong in the server", status=500),
        Unreachable("The response is not from an Accord server (HTTP status 404)"),
        SignedOut("The token was revoked"),
    ],
)
async def test_what_no_waiting_mends_ends_it_at_once(
    no: ClientError, capsys: pytest.CaptureFixture[str]
) -> None:
    source = Source([], no)

    with pytest.raises(type(no), match=str(no).replace("(", ".").replace(")", ".")):
        await source.follow()

    assert source.waits == [POLL_INTERVAL_S]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("status", "passing"), [(502, True), (503, True), (504, True), (500, False)]
)
def test_a_proxy_whose_server_is_away_says_so(status: int, passing: bool) -> None:
    page = HttpResponse(status, {}, b"<html>Bad gateway</html>")
    no = HttpClient(parse_address(URL)).error_of(page)

    assert isinstance(no, Unreachable)
    assert no.transient is passing


def test_what_the_server_says_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    ConnectionNotice(URL).lost("the\x1b[2J server\nstops")

    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert err.count("\n") == 1
