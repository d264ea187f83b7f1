"""Polling messages over plain HTTP, from a real server process."""

import asyncio
from typing import Any

import pytest

from accord.core.kernel.role_permissions import Kind, Role
from accord.core.people.state import CLOCK_SKEW_MS
from accord.identity.keyring import Keyring, wall_clock_ms
from accord.identity.token_signing import issue_token
from tests.helpers.clients.cli import run_accord
from tests.helpers.clients.http_client import HttpClient
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves
from tests.transports.http.messages.plain_http import PATIENCE, ids, note


@proves("PVP-19.3-2", "OPEN-50")
async def test_poll_returns_messages_after_the_given_id(alice: HttpClient) -> None:
    session = await alice.create()
    first = await alice.poll(session)
    said = [(await alice.send("context.add", session, note(f"k{n}")))["id"] for n in range(5)]

    page = await alice.poll(session, first["next"], limit=2)
    rest = await alice.poll(session, page["next"], limit=3)

    assert (ids(page), page["has_more"]) == (said[:2], True)
    assert (ids(rest), rest["has_more"], rest["next"]) == (said[2:], False, said[-1])
    assert await alice.poll(session, rest["next"]) == {
        "messages": [],
        "next": said[-1],
        "has_more": False,
    }


@proves("OPEN-50")
async def test_an_unknown_message_is_not_found(alice: HttpClient) -> None:
    session = await alice.create()

    answer = await alice.http.get(f"/sessions/{session}/messages", params={"after": "nothing"})

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "INVALID_STATE"


@pytest.mark.parametrize(
    "query", [{"limit": "0"}, {"limit": "1001"}, {"wait": "61"}, {"wait": "-1"}, {"wait": "x"}]
)
async def test_bounds_of_a_poll_are_kept(alice: HttpClient, query: dict[str, str]) -> None:
    session = await alice.create()

    answer = await alice.http.get(f"/sessions/{session}/messages", params=query)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_MESSAGE")


async def test_a_waiting_poll_is_answered_by_what_comes(alice: HttpClient, bob: HttpClient) -> None:
    session = await alice.create()
    await bob.join(session)
    last = (await alice.poll(session))["next"]
    waiting = asyncio.create_task(alice.poll(session, last, wait=50))
    await asyncio.sleep(0)

    told = await bob.send("context.add", session, note())

    assert ids(await waiting) == [told["id"]]


async def test_a_waiting_poll_ends_empty(alice: HttpClient) -> None:
    session = await alice.create()
    last = (await alice.poll(session))["next"]

    page = await alice.poll(session, last, wait=1)

    assert page == {"messages": [], "next": last, "has_more": False}


async def test_nobody_goes_idle_in_a_waiting_poll(alice: HttpClient) -> None:
    session = await alice.create(
        heartbeat_interval_seconds=1, idle_timeout_seconds=8, away_timeout_seconds=9
    )
    last = (await alice.poll(session))["next"]

    page = await alice.poll(session, last, wait=50)
    again = await alice.poll(session, last, wait=50)

    assert page["messages"] == again["messages"] == []


async def test_waiting_polls_are_limited(signed: ServerProcess) -> None:
    dora = HttpClient.with_token(signed, "dora", roles=["admin", "driver"])
    session = await dora.create()
    last = (await dora.poll(session))["next"]
    query = {"after": last, "wait": "50"}
    asks = [
        asyncio.create_task(dora.http.get(f"/sessions/{session}/messages", params=query))
        for _ in range(20)
    ]

    done, waiting = set[Any](), set(asks)
    while len(done) < 4:
        now, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        done |= now

    assert {each.result().status_code for each in done} == {429}
    await dora.send("context.add", session, note())
    answers = await asyncio.gather(*waiting)
    assert [each.status_code for each in answers] == [200] * 16
    await dora.close()


@proves("OPEN-49")
async def test_former_members_poll_what_they_could_see(alice: HttpClient, bob: HttpClient) -> None:
    session = await alice.create()
    await bob.join(session)
    left = await bob.send("session.leave", session, {})
    await alice.send("context.add", session, note())

    page = await bob.poll(session, wait=50)

    assert ids(page)[-1] == left["id"]


async def test_a_revoked_token_ends_a_waiting_poll(
    signed: ServerProcess, alice: HttpClient
) -> None:
    session = await alice.create()
    wish = {"id": "eve", "type": "human", "roles": ["driver"]}
    issued = signed.admin_request("POST", "/admin/tokens", wish)
    eve = HttpClient(signed.url, "eve", issued["token"])
    await eve.join(session)
    last = (await eve.poll(session))["next"]
    query = {"after": last, "wait": "50"}
    waiting = asyncio.create_task(eve.http.get(f"/sessions/{session}/messages", params=query))
    await alice.poll(session)

    await asyncio.to_thread(
        signed.admin_request, "DELETE", f"/admin/tokens/{issued['claims']['jti']}"
    )

    assert (await asyncio.wait_for(waiting, PATIENCE)).status_code == 401
    await eve.close()


async def test_a_waiting_poll_ends_with_its_token(signed: ServerProcess, alice: HttpClient) -> None:
    session = await alice.create()
    life, left = 60, 5_000
    then = wall_clock_ms() - CLOCK_SKEW_MS - life * 1000 + left
    who: dict[str, Any] = {"id": "fay", "kind": Kind.HUMAN, "roles": [Role.DRIVER]}
    ring = Keyring.open(signed.home / "keys")
    fay = HttpClient(signed.url, "fay", issue_token(ring, **who, now=then, ttl_s=life).token)
    await fay.join(session)
    query = {"after": (await fay.poll(session))["next"], "wait": "50"}

    async with asyncio.timeout(30):
        answer = await fay.http.get(f"/sessions/{session}/messages", params=query)

    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "UNAUTHORIZED")
    await fay.close()


async def test_nobody_reads_on_over_what_was_removed(
    alice: HttpClient, signed: ServerProcess
) -> None:
    session = await alice.create()
    said, _ = [(await alice.send("context.add", session, note()))["id"] for _ in range(2)]
    await alice.send("session.end", session, {"reason": "Done", "final_state": "completed"})
    assert (await alice.poll(session, said))["messages"]
    words = ("compact", "--data-dir", str(signed.home), "--session", session)
    done = await asyncio.to_thread(run_accord, *words)
    assert done.code == 0, done

    for where, headers in ((f"messages?after={said}", {}), ("events", {"Last-Event-ID": said})):
        answer = await alice.http.get(f"/sessions/{session}/{where}", headers=headers)
        problem = answer.json()["error"]
        assert (answer.status_code, problem["code"]) == (410, "INVALID_STATE")
        assert "removed by retention" in problem["message"]
    rest = [each["type"] for each in (await alice.poll(session))["messages"]]
    assert rest == ["session.end"]
