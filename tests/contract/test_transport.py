"""Contract of every transport, against a real server; a new transport is a row of the table."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.contract.transport_clients import TRANSPORTS, Refusal, Said, Speaker
from tests.helpers.clients.http_client import HttpClient, envelope, join_payload
from tests.helpers.clients.websocket_client import SESSION_CONFIG
from tests.helpers.servers.certificates import run_tls_server
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.spec import proves

MIB = 1 << 20
MANY = 30
SECRET = "hunter2-hunter2"
Bring = Callable[..., Awaitable[Speaker]]
RISE = {"participant": "bob", "old_roles": ["driver"], "new_roles": ["admin"], "changed_by": "bob"}
# What a driver may not say, and the code that tells why.
REFUSED: tuple[tuple[str, Any, str], ...] = (
    ("prompt.submit", {"content": 7}, "INVALID_MESSAGE"),
    ("nothing.known", {}, "INVALID_MESSAGE"),
    ("gate.approve", {"gate": "none", "approver": "bob"}, "UNAUTHORIZED"),
    ("participant.role_change", RISE, "UNAUTHORIZED"),
    ("context.remove", {"key": "not-there", "reason": "tidy"}, "INVALID_STATE"),
    (
        "context.add",
        {"key": "x", "content_type": "text", "content": "x" * (MIB + 1)},
        "CONTEXT_TOO_LARGE",
    ),
)


@pytest.fixture(scope="module", params=[run_server, run_tls_server], ids=["plain", "tls"])
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """One for all tests here, without TLS and with it; each has a room of its own."""
    with request.param(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
async def alice(server: ServerProcess) -> AsyncIterator[HttpClient]:
    """The admin of the room, over HTTP."""
    web = HttpClient.with_token(server, "alice", roles=["admin", "driver"])
    yield web
    await web.close()


@pytest.fixture
async def session(alice: HttpClient) -> str:
    """A room."""
    return await alice.create(max_participants=10)


@pytest.fixture
async def bring(server: ServerProcess, tmp_path: Path, session: str) -> AsyncIterator[Bring]:
    """People, each on a transport, in the room unless said otherwise."""
    here: list[Speaker] = []

    async def one(
        transport: str, seat: str, *roles: str, join: bool = True, **wish: Any
    ) -> Speaker:
        token = server.issue_token(seat, roles=roles or ("driver",), **wish)
        speaker = TRANSPORTS[transport](server, seat, token, tmp_path / seat)
        here.append(speaker)
        await speaker.open()
        speaker.session = session
        if join:
            joined = await speaker.join(session, roles=roles or ("driver",))
            await speaker.hear_until(joined.id)
        return speaker

    yield one
    for speaker in here:
        await speaker.close()


every = pytest.mark.parametrize("transport", tuple(TRANSPORTS))


async def record(alice: HttpClient, session: str) -> list[tuple[int, str]]:
    """The room as its log has it, for its admin."""
    page = await alice.poll(session, limit=1000)
    return [(each["seq"], each["id"]) for each in page["messages"]]


async def heard_all(alice: HttpClient, session: str, said: list[Said]) -> bool:
    """Whether somebody heard a stretch of that record, none twice and none missing."""
    heard = [(each["seq"], each["id"]) for each in said]
    first, last = heard[0][0], heard[-1][0]
    return heard == [each for each in await record(alice, session) if first <= each[0] <= last]


@proves("PVP-19.5-1", "PVP-19.1-1", "PVP-19.3-1", "PVP-19.3-2", "PVP-19.4-1")
@every
async def test_messages_arrive_in_the_order_sent(bring: Bring, transport: str) -> None:
    bob, carol = await bring(transport, "bob"), await bring(transport, "carol")

    said = [(await bob.note(f"n{n}")).id for n in range(MANY)]

    for each in (bob, carol):
        heard = [m["id"] for m in await each.hear_until(said[-1]) if m["type"] == "context.add"]
        assert heard == said


@proves("PVP-19.5-2", "OPEN-36")
@every
async def test_repeated_message_counts_once(
    bring: Bring, alice: HttpClient, session: str, transport: str
) -> None:
    bob, carol = await bring(transport, "bob"), await bring(transport, "carol")

    first = await bob.note("same", id="only-once")
    again = await bob.note("same", id="only-once")
    with pytest.raises(Refusal) as other:
        await bob.note("another", id="only-once")
    last = await bob.note("last")

    assert first == again
    assert other.value.code == "INVALID_MESSAGE"
    heard = [each["id"] for each in await carol.hear_until(last.id)]
    assert heard.count("only-once") == 1
    assert [id for _, id in await record(alice, session)].count("only-once") == 1


@proves("PVP-19.1-3", "PVP-19.5-2", "OPEN-37")
@every
async def test_returning_client_gets_missed_messages_once(
    server: ServerProcess, bring: Bring, alice: HttpClient, session: str, transport: str
) -> None:
    bob = await bring(transport, "bob")
    await bob.hear_until((await bob.note("before")).id)

    server.restart()
    meanwhile = [await alice.send("context.add", session, text(f"m{n}")) for n in range(MANY)]
    await bob.resume()
    after = await alice.send("context.add", session, text("after"))
    await bob.hear_until(after["id"])

    heard = [each["id"] for each in bob.heard]
    assert [id for id in heard if id in {each["id"] for each in meanwhile}] == [
        each["id"] for each in meanwhile
    ]
    assert await heard_all(alice, session, bob.heard)


@proves("OPEN-49")
@every
async def test_refusal_has_a_code_and_changes_nothing(
    bring: Bring, alice: HttpClient, session: str, transport: str
) -> None:
    bob = await bring(transport, "bob")
    before = await record(alice, session)

    for type, payload, code in REFUSED:
        with pytest.raises(Refusal) as refused:
            await bob.say(type, payload)
        assert (type, refused.value.code) == (type, code)

    assert await record(alice, session) == before
    assert (await bob.note("still here")).seq == before[-1][0] + 1


# What is wrong with an envelope, whoever looks at it first.
WRONG: dict[str, dict[str, Any]] = {
    "a reference too long": {"ref": "x" * 129},
    "too many references": {"causal_refs": ["x"] * 65},
    "another version": {"v": 2},
    "no time": {"ts": "yesterday"},
    "a time too long": {"ts": "2" * 65},
    "no type": {"type": "nothing.known"},
    "no payload of that type": {"payload": {"key": 7}},
    "a reference to nothing": {"causal_refs": ["nothing"]},
    "no such fork": {"fork": "nowhere"},
}


async def test_refusal_is_the_same_over_every_transport(bring: Bring) -> None:
    people = [await bring(transport, "bob") for transport in TRANSPORTS]
    for name, wrong in WRONG.items():
        heard = list[Said]()
        for bob in people:
            said = envelope("context.add", bob.session, "bob", text("note"), id="once-more")
            with pytest.raises(Refusal) as no:
                await bob.send(said | wrong)
            heard.append(no.value.said)
        assert heard == heard[:1] * len(people), name


@proves("OPEN-36")
@pytest.mark.parametrize(("first", "second"), [*permutations(("websocket", "http", "stdio"), 2)])
async def test_join_retried_over_another_transport_is_a_retry(
    bring: Bring, alice: HttpClient, session: str, first: str, second: str
) -> None:
    bob, again = [await bring(each, "bob", join=False) for each in (first, second)]
    join = envelope("session.join", session, "bob", join_payload("bob"))
    join["payload"]["participant"]["transport"] = "websocket"

    answers = [await bob.send(join), await again.send(join)]

    assert answers[0] == answers[1]
    assert [id for _, id in await record(alice, session)].count(join["id"]) == 1


@proves("OPEN-5", "OPEN-36")
@pytest.mark.parametrize("unnamed", ["", "new"])
@pytest.mark.parametrize("transport", ["websocket", "http"])
async def test_repeated_create_returns_the_same_session(
    bring: Bring, transport: str, unnamed: str
) -> None:
    bob = await bring(transport, "bob", join=False)
    wish = envelope(
        "session.create", unnamed, "bob", {"config": SESSION_CONFIG, "name": "Only one"}
    )

    first, again = await bob.send(wish), await bob.send(wish)
    with pytest.raises(Refusal) as other:
        await bob.send(wish | {"payload": {"config": SESSION_CONFIG, "name": "Another"}})
    carol = await bring(transport, "carol", join=False)
    theirs = await carol.send(wish | {"sender": "carol"})

    assert first == again
    assert other.value.code == "INVALID_MESSAGE"
    assert re.fullmatch(r"ses_[0-7][0-9A-HJKMNP-TV-Z]{25}", first.session)
    assert theirs.session != first.session


@proves("OPEN-49", "UNI-7")
@every
async def test_sender_must_match_the_token(bring: Bring, transport: str) -> None:
    bob = await bring(transport, "bob")

    with pytest.raises(Refusal) as refused:
        await bob.say("context.add", text("forged"), sender="alice")

    assert refused.value.code == "UNAUTHORIZED"


@proves("PVP-19.5-3", "OPEN-53")
@every
async def test_leave_is_delivered_and_ends_delivery(
    bring: Bring, alice: HttpClient, session: str, transport: str
) -> None:
    bob, carol = await bring(transport, "bob"), await bring("websocket", "carol")

    left = await bob.say("session.leave", {"reason": "done"})
    after = await alice.send("context.add", session, text("after"))

    assert (await carol.hear_until(left.id))[-1]["type"] == "session.leave"
    await carol.hear_until(after["id"])
    assert [each["id"] for each in await bob.hear_until(left.id)][-1] == left.id
    with pytest.raises(Refusal):
        await bob.note("from outside")
    assert after["id"] not in {each["id"] for each in bob.heard}


@proves("PVP-19.5-4")
@every
async def test_failed_transport_is_detected_and_a_retry_counts_once(
    server: ServerProcess, bring: Bring, alice: HttpClient, session: str, transport: str
) -> None:
    bob = await bring(transport, "bob")
    server.kill()

    with pytest.raises(bob.failure) as failed:
        await bob.note("lost", id="lost-once")
    if isinstance(failed.value, Refusal):
        assert failed.value.code == "TRANSPORT_ERROR"
    server.start()
    await bob.resume()
    answer = await until_sent(bob, "lost", "lost-once")

    ids = [id for _, id in await record(alice, session)]
    assert ids.count("lost-once") == 1
    assert (answer.seq, "lost-once") in await record(alice, session)


async def until_sent(speaker: Speaker, key: str, id: str) -> Any:
    """Try again while the transport says that it is not there yet."""
    while True:
        try:
            return await speaker.note(key, id=id)
        except Refusal as refused:
            if refused.code != "TRANSPORT_ERROR":
                raise


@proves("OPEN-49", "UNI-12")
@every
async def test_session_is_not_found_for_non_members(
    bring: Bring, alice: HttpClient, session: str, transport: str
) -> None:
    before = await record(alice, session)
    eve = await bring(transport, "eve", join=False, workspace="elsewhere")

    for type, payload in [("context.add", text("x")), ("session.join", join_payload("eve"))]:
        with pytest.raises(Refusal) as refused:
            await eve.say(type, payload)
        assert refused.value.code == "SESSION_NOT_FOUND"

    assert await record(alice, session) == before


@proves("UNI-12")
@every
async def test_messages_do_not_reach_another_session(
    bring: Bring, alice: HttpClient, session: str, transport: str
) -> None:
    bob = await bring(transport, "bob")
    other = await alice.create()

    there = await alice.send("context.add", other, text("there"))
    here = await alice.send("context.add", session, text("here"))

    await bob.hear_until(here["id"])
    assert there["id"] not in {each["id"] for each in bob.heard}
    assert {each["session"] for each in bob.heard} == {session}


@proves("UNI-12")
@every
async def test_messages_of_a_fork_do_not_reach_outsiders(
    server: ServerProcess, bring: Bring, alice: HttpClient, session: str, transport: str
) -> None:
    inside, outside = await bring(transport, "bob"), await bring(transport, "carol")
    point = await alice.send("context.add", session, text("start"))
    payload = {
        "name": "Aside",
        "from_point": point["id"],
        "reason": "to try",
        "participants": ["alice", "bob"],
        "copy_context": False,
    }
    await alice.send("fork.create", session, payload)
    detail = await alice.http.get(f"/sessions/{session}")
    fork = detail.json()["forks"][0]["id"]

    within = await inside.note("aside", fork=fork)
    last = await alice.send("context.add", session, text("end"))

    await inside.hear_until(last["id"])
    await outside.hear_until(last["id"])
    assert within.id in {each["id"] for each in inside.heard}
    assert within.id not in {each["id"] for each in outside.heard}
    with pytest.raises(Refusal):
        await outside.note("aside too", fork=fork)
    server.restart()
    await outside.resume()
    again = await alice.send("context.add", session, text("again"))
    await outside.hear_until(again["id"])
    assert within.id not in {each["id"] for each in outside.heard}


@proves("OPEN-42")
@every
async def test_secret_reaches_its_recipients_only(
    server: ServerProcess, bring: Bring, alice: HttpClient, session: str, transport: str
) -> None:
    bob, carol = await bring(transport, "bob"), await bring(transport, "carol")
    share = {"key": "db", "scope": ["bob"], "value_ref": SECRET, "secret_type": "token"}

    told = await alice.send("secret.share", session, share)
    last = await alice.send("context.add", session, text("end"))

    shared = next(m for m in await bob.hear_until(last["id"]) if m["id"] == told["id"])
    assert shared["payload"]["value_ref"] == (SECRET if bob.whispers else "")
    await carol.hear_until(last["id"])
    assert SECRET not in str(carol.heard)
    assert SECRET not in str(await alice.poll(session))
    assert SECRET.encode() not in server.stored_bytes
    assert SECRET not in server.log


@proves("PVP-19.5-1", "UNI-10")
async def test_all_transports_deliver_the_same_order(
    bring: Bring, alice: HttpClient, session: str
) -> None:
    people = [await bring(name, f"on-{name}") for name in TRANSPORTS]

    for n in range(5):
        for each in people:
            await each.note(f"{each.seat}-{n}")
    last = await alice.send("context.add", session, text("last"))

    for each in people:
        await each.hear_until(last["id"])
    for each in people:
        assert await heard_all(alice, session, each.heard)
        assert len(each.heard) > 5 * len(people)


@every
async def test_sessions_can_be_created_over_every_transport(bring: Bring, transport: str) -> None:
    dora = await bring(transport, "dora", "admin", "driver", join=False)

    made = await dora.send(envelope("session.create", "new", "dora", {"config": SESSION_CONFIG}))

    assert made.seq == 1


def text(key: str, content: str = "something") -> dict[str, Any]:
    """A note."""
    return {"key": key, "content_type": "text", "content": content}
