"""Reading what is somebody else's: every route, every other way in, and nothing to be had."""

import asyncio
import contextlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import httpx
import pytest

from accord.transports.bridge.actions import ACTIONS
from accord.transports.http.routing_table import ALL_ENDPOINTS
from accord.transports.msg.method_table import METHODS
from tests.helpers.attacks.approval_scene import PROMPT
from tests.helpers.clients import bridge_client
from tests.helpers.clients.http_client import HTTP_TIMEOUT_S, HttpClient, envelope
from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.security.restricted_session import (
    EARLY,
    HIDDEN,
    LAST,
    LATER,
    Told,
    begin,
    finish,
    secret,
    told,
)
from tests.spec import proves

MADE_UP = uuid.uuid4().hex
LENGTH = 26


class Query(NamedTuple):
    """One thing to ask of a route."""

    params: Mapping[str, Any] = MappingProxyType({})
    headers: Mapping[str, str] = MappingProxyType({})
    body: Any = None


# The table: what is asked of each route by somebody who wants to know too much


def nothing_more(_: Told) -> Iterator[Query]:
    yield Query()


def items(here: Told) -> Iterator[Query]:
    for fork in (None, *here.forks, "main"):
        place = {} if fork is None else {"fork": fork}
        for key in ("last", f"{LATER}-key", *map(secret, ("key", "whispered-key", "inner-key"))):
            yield Query({"key": key, **place})


def numbers(_: Told) -> Iterator[Query]:
    yield Query({"limit": 1000})
    for after in range(60):
        yield Query({"after": after, "limit": 3})


def turns(_: Told) -> Iterator[Query]:
    yield Query({"limit": 50})
    for before in range(1, 60, 3):
        yield Query({"before": before, "limit": 5})


def searches(_: Told) -> Iterator[Query]:
    for name in sorted(KEPT):
        yield Query({"at": secret(name)})


def standing_grants(_: Told) -> Iterator[Query]:
    yield Query(body={"agent": "claude", "patterns": [{"run": "ls"}], "count": 1, "seconds": 60})


def policies(_: Told) -> Iterator[Query]:
    yield Query(body={"repository": "repo-1", "text": ""})


def behind(here: Told) -> Iterator[Query]:
    yield Query({"limit": 1000})
    for id in (here.first, *here.hidden.values()):
        yield Query({"after": id, "limit": 1000, "wait": 0})


def resumed(here: Told) -> Iterator[Query]:
    yield Query()
    for id in (here.first, *here.hidden.values()):
        yield Query(headers={"Last-Event-ID": id})
        yield Query({"after": id})


def said(here: Told) -> Iterator[Query]:
    """Into what one may not hear, and about it."""
    for type, payload, more in intrusions(here):
        yield Query(body=(type, payload, more))


def intrusions(here: Told) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    for fork in here.forks:
        yield "prompt.submit", PROMPT, {"fork": fork}
        yield "fork.switch", {"target_fork": fork}, {}
        yield "context.remove", {"key": secret("key"), "reason": "x"}, {"fork": fork}
        merge = {"source_fork": fork, "target_fork": "main", "strategy": "append", "summary": "x"}
        yield "merge.propose", merge, {}
    for key in ("whispered-key", "key", "inner-key"):
        removal = {"key": secret(key), "reason": "x"}
        yield "context.remove", removal, {}
        yield "context.update", {**removal, "new_content": "x"}, {}
    for id in here.hidden.values():
        yield from about(id)


def about(id: str) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """What cites a message."""
    yield "prompt.submit", PROMPT, {"ref": id}
    yield "prompt.amend", {"original_prompt": id, "amendment": "x", "reason": "x"}, {}
    gate = {"action_type": "prompt", "action_ref": id, "timeout_seconds": 9, "message": "x"}
    yield "gate.request", gate | {"quorum": {"type": "any", "count": 1}}, {}
    yield "gate.reject", {"gate": id, "rejector": "carol", "reason": "x"}, {}
    yield "tool.reject", {"tool_proposal": id, "rejector": "carol", "reason": "x"}, {}
    fork = {"name": "x", "from_point": id, "reason": "x", "participants": [], "copy_context": True}
    yield "fork.create", fork, {}


def commit_contexts(here: Told) -> Iterator[Query]:
    for fork in (None, *here.forks):
        yield Query(body={"repo": "repo-1", "session": here.session, "fork": fork})
    yield Query(body={"repo": "repo-1"})


def wishes(_: Told) -> Iterator[Query]:
    yield Query(body={"id": "mallory", "type": "human", "roles": ["admin"]})


def codes(_: Told) -> Iterator[Query]:
    yield Query(body={"code": MADE_UP})


def invitations(_: Told) -> Iterator[Query]:
    yield Query(body={"roles": ["observer"], "id": "mallory"})


def agents(_: Told) -> Iterator[Query]:
    yield Query(body={"id": "mallory-bot", "roles": ["driver"], "public_key": "A" * 43 + "="})


def thread_calls(here: Told) -> Iterator[Query]:
    """Arguments that suit every method, about the session and its forks as threads."""
    for id in (here.session, *here.forks):
        for seq in (0, 1, 20):
            yield Query(body=thread_arguments(id) | {"since_seq": seq, "last_read_seq": seq})
        for hidden in here.hidden.values():
            yield Query(body=thread_arguments(id) | {"in_reply_to": hidden})


def thread_arguments(id: str) -> dict[str, Any]:
    who = {"title": "x", "participants": ["erin"], "status": "blocked", "limit": 200}
    return {"thread_id": id, "schema_version": 1, "body": "x", **who}


ENDLESS = "/home/events"
READS: dict[tuple[str, str], Callable[[Told], Iterator[Query]]] = {
    ("POST", "/sessions/{id}/messages"): said,
    ("GET", "/sessions/{id}/messages"): behind,
    ("GET", "/sessions/{id}/events"): resumed,
    ("POST", "/git/{action}"): commit_contexts,
    ("GET", "/home"): nothing_more,
    ("GET", ENDLESS): nothing_more,
    ("POST", "/sign-in"): codes,
    ("GET", "/sign-in"): nothing_more,
    ("DELETE", "/sign-in"): nothing_more,
    ("POST", "/sign-in/refresh"): codes,
    ("POST", "/sign-in/agents"): agents,
    ("GET", "/sign-in/devices"): nothing_more,
    ("DELETE", "/sign-in/devices/{device}"): nothing_more,
    ("POST", "/admin/invitations"): invitations,
    ("GET", "/admin/invitations"): nothing_more,
    ("DELETE", "/admin/invitations/{invitation}"): nothing_more,
    ("GET", "/admin/devices"): nothing_more,
    ("DELETE", "/admin/devices/{device}"): nothing_more,
    ("GET", "/admin/people"): nothing_more,
    ("DELETE", "/admin/people/{person}"): nothing_more,
    **{("POST", f"/v1/{name}"): thread_calls for name in METHODS},
    ("GET", "/sessions"): nothing_more,
    ("GET", "/sessions/{id}"): nothing_more,
    ("GET", "/sessions/{id}/context"): items,
    ("GET", "/sessions/{id}/transcript"): numbers,
    ("GET", "/sessions/{id}/turns"): turns,
    ("POST", "/sessions/{id}/standing-grants"): standing_grants,
    ("DELETE", "/sessions/{id}/standing-grants/{grant}"): nothing_more,
    ("GET", "/decisions"): searches,
    ("GET", "/decisions/{decision}"): nothing_more,
    ("GET", "/pacts"): nothing_more,
    ("GET", "/pacts/{repo}"): nothing_more,
    ("GET", "/policies/{repository}"): nothing_more,
    ("POST", "/admin/policies"): policies,
    ("POST", "/admin/tokens"): wishes,
    ("GET", "/admin/tokens"): nothing_more,
    ("DELETE", "/admin/tokens/{jti}"): nothing_more,
    ("GET", "/admin/repos/{repo}/commits/{sha}/statement"): nothing_more,
    ("GET", "/admin/keys"): nothing_more,
    ("POST", "/admin/keys"): nothing_more,
}
# What who is meant finds there; what is a signal or a secret's value is heard live and never kept.
UNKEPT = {"draft", "error", "value"}
KEPT = {
    *("prompt", "amendment", "thought", "summary", "answer", "end", "key", "item", "newer"),
    *("removed", "tool", "argv", "comment", "output", "result", "reason", "open", "waits"),
    *("question", "inner-key", "inner", "whispered-key", "whispered", "private", "secret-key"),
    *("why", "why-amend", "gone"),
}
FOUND: dict[tuple[str, str], set[str]] = {
    ("GET", "/sessions/{id}/messages"): KEPT,
    ("GET", "/sessions/{id}/events"): KEPT | {"value"},
    ("GET", "/sessions/{id}"): {
        *("key", "inner-key", "whispered-key", "open", "waits", "question", "secret-key"),
    },
    ("GET", "/sessions/{id}/context"): {
        *("key", "newer", "whispered-key", "whispered", "inner-key", "inner"),
    },
    ("GET", "/sessions/{id}/transcript"): KEPT,
    ("GET", "/sessions/{id}/turns"): KEPT,
}
# Who asks, and which words are not for them.
READERS: dict[str, tuple[str, ...]] = {
    "a member outside": (HIDDEN,),
    "who left before": (HIDDEN, LATER),
    "a member of another session": (HIDDEN, LATER, EARLY),
    "the same name in another workspace": (HIDDEN, LATER, EARLY),
    "an operator": (HIDDEN, LATER, EARLY),
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all."""
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


@pytest.fixture(scope="module")
def here(house: ServerProcess) -> Told:
    """Everything was said, and two who listened heard it."""

    async def tell() -> Told:
        async with await begin(house) as speaker:
            early = PROMPT | {"content": f"{EARLY}-prompt"}
            first = await speaker.say("alice", "prompt.submit", early)
            inner = await finish(speaker, first)
            return told(house, speaker, first, inner)

    return asyncio.run(tell())


@pytest.fixture(scope="module")
def tokens(here: Told) -> dict[str, tuple[str, str]]:
    """Who asks, and with which token."""
    server = here.server
    elsewhere = server.issue_token("bob", roles=["admin", "driver"], workspace="elsewhere")
    return {
        "a member outside": ("carol", here.tokens["carol"]),
        "who left before": ("dave", here.tokens["dave"]),
        "a member of another session": (
            "erin",
            server.issue_token("erin", roles=["admin", "driver"]),
        ),
        "the same name in another workspace": ("bob", elsewhere),
        "an operator": ("root", server.admin_token),
    }


def test_every_route_has_a_row() -> None:
    assert {(row.method, row.path) for row in ALL_ENDPOINTS} == set(READS)


def path(route: tuple[str, str], here: Told) -> str:
    names = {"{id}": here.session, "{jti}": MADE_UP, "{repo}": "repo-1", "{sha}": "a" * 40}
    names |= {
        "{action}": "commit-context",
        "{device}": MADE_UP,
        "{invitation}": MADE_UP,
        "{person}": MADE_UP,
        "{grant}": MADE_UP,
        "{decision}": MADE_UP,
        "{repository}": "repo-1",
    }
    where = route[1]
    for name, value in names.items():
        where = where.replace(name, value)
    return where


async def asked(
    web: HttpClient, route: tuple[str, str], here: Told, query: Query
) -> tuple[int, str]:
    """Status and everything that is answered; of what does not end, up to the last word."""
    body = query.body
    if isinstance(body, tuple):
        type, payload, more = body
        spoken = {
            key: web.seat if key in {"rejector", "approver"} else value
            for key, value in payload.items()
        }
        body = envelope(type, here.session, web.seat, spoken, **more)
    given: dict[str, Any] = {"params": query.params, "headers": query.headers}
    given |= {} if body is None else {"json": body}
    async with web.http.stream(route[0], path(route, here), **given) as answer:
        if route[1] == ENDLESS and answer.status_code == 200:
            return answer.status_code, await anext(answer.aiter_text())
        return answer.status_code, await heard(answer)


async def heard(answer: httpx.Response) -> str:
    """All of it; events up to the last word that everybody hears."""
    if not answer.headers.get("content-type", "").startswith("text/event-stream"):
        return (await answer.aread()).decode()
    whole = ""
    async with asyncio.timeout(HTTP_TIMEOUT_S):
        async for more in answer.aiter_text():
            whole += more
            # A secret's value comes behind everything that was missed.
            if LAST in whole and ": still here" not in more and settled(whole):
                return whole
    return whole


def settled(whole: str) -> bool:
    """Whether what comes last has come: for who holds the secret, its value."""
    return secret("secret-key") not in whole or secret("value") in whole


@proves("PVP-20.2-1", "OPEN-49")
@pytest.mark.parametrize("who", READERS)
@pytest.mark.parametrize("route", READS, ids=" ".join)
async def test_nobody_reads_what_is_not_for_them(
    here: Told, tokens: dict[str, tuple[str, str]], route: tuple[str, str], who: str
) -> None:
    async with here.web(*tokens[who]) as web:
        for query in READS[route](here):
            _, text = await asked(web, route, here, query)
            check(here, without(text, words_of(query)), READERS[who])


def check(here: Told, text: str, words: tuple[str, ...]) -> None:
    """None of the words is in it, and no id of what was not for everybody."""
    for word in (*words, *here.hidden.values()):
        assert word not in text, f"{word}: {text}"


def words_of(query: Query) -> set[str]:
    """Whatever the asker said, which may be said back."""
    sent = [*query.params.values(), *query.headers.values()]
    if isinstance(query.body, tuple):
        _, payload, more = query.body
        sent += [*payload.values(), *more.values()]
    elif isinstance(query.body, dict):
        sent += query.body.values()
    return {value for value in sent if isinstance(value, str)}


def without(text: str, words: set[str]) -> str:
    """The text without what the asker knew."""
    for word in sorted(words, key=len, reverse=True):
        if word.startswith((HIDDEN, LATER)) or len(word) >= LENGTH:
            text = text.replace(word, "")
    return text


@pytest.mark.parametrize("route", FOUND, ids=" ".join)
async def test_those_it_is_for_read_all_of_it(here: Told, route: tuple[str, str]) -> None:
    async with here.web("bob") as web:
        whole = [await asked(web, route, here, query) for query in READS[route](here)]
    assert found_in("".join(text for _, text in whole)) == FOUND[route]


async def test_who_left_is_not_told_what_waits_now(here: Told) -> None:
    counts = []
    for seat in ("bob", "carol", "dave"):
        async with here.web(seat) as web:
            listed = (await web.http.get("/sessions")).json()["sessions"]
        counts += [each["open_gates"] for each in listed if each["id"] == here.session]
    assert counts == [3, 1, 0]


def found_in(text: str) -> set[str]:
    """Which of the hidden words are in it."""
    return {name for name in KEPT | UNKEPT if f'"{secret(name)}"' in text}


def likened(value: Any, id: str, other: str) -> Any:
    """The same about something else."""
    if isinstance(value, Mapping):
        return {key: likened(each, id, other) for key, each in value.items()}
    if isinstance(value, tuple):
        return tuple(likened(each, id, other) for each in value)
    return other if value == id else value


def guesses(here: Told) -> Iterator[tuple[tuple[str, str], str, Query]]:
    """Every way to name what is hidden."""
    room = "/sessions/{id}"
    for id in here.hidden.values():
        yield ("GET", f"{room}/messages"), id, Query({"after": id})
        yield ("GET", f"{room}/events"), id, Query(headers={"Last-Event-ID": id})
        for ask in about(id):
            yield ("POST", f"{room}/messages"), id, Query(body=ask)
    for key in map(secret, ("key", "whispered-key", "inner-key")):
        for place in ({}, *({"fork": fork} for fork in here.forks)):
            yield ("GET", f"{room}/context"), key, Query({"key": key, **place})
            removal = "context.remove", {"key": key, "reason": "x"}, place
            yield ("POST", f"{room}/messages"), key, Query(body=removal)


@proves("PVP-20.2-1")
async def test_what_is_hidden_and_what_is_not_there_are_answered_alike(here: Told) -> None:
    async with here.web("carol") as carol:
        for route, name, query in guesses(here):
            about_it = await asked(carol, route, here, query)
            about_nothing = await asked(carol, route, here, Query(*likened(query, name, MADE_UP)))
            assert about_it[0] >= 400, query
            assert alike(*about_it, name) == alike(*about_nothing, MADE_UP), query


def alike(status: int, text: str, name: str) -> tuple[int, Any]:
    """An answer but for what was named, and for what is every answer's own."""
    said: dict[str, Any] = json.loads(text.replace(name, ""))
    if "payload" in said:
        said["payload"].pop("related_to", None)
        said = said["payload"]
    return status, said


# Over a WebSocket


async def all_heard(wire: WebSocketClient, end: str = LAST) -> str:
    """Everything up to the last word, or what ends it earlier."""
    whole = ""
    async with asyncio.timeout(HTTP_TIMEOUT_S):
        async for frame in wire.socket:
            whole += str(frame)
            if (LAST in whole or end in whole) and settled(whole):
                break
    return whole


async def joined(here: Told, seat: str, token: str, **more: Any) -> str:
    """What somebody is told who comes in."""
    wire = await WebSocketClient.open(here.server.ws_url, seat, token)
    await wire.join(here.session, **more)
    try:
        return await all_heard(wire, '"type":"error"')
    finally:
        await wire.socket.close()


@proves("PVP-20.2-1")
async def test_whoever_joins_is_told_what_is_for_them(here: Told) -> None:
    whole = await joined(here, "bob", here.tokens["bob"], ref=here.first)
    assert found_in(whole) == KEPT | {"value"}
    for more in ({}, {"ref": here.first}):
        told_carol = await joined(here, "carol", here.tokens["carol"], **more)
        assert LAST in told_carol
        check(here, told_carol, (HIDDEN,))


@proves("PVP-20.2-1")
async def test_nobody_goes_on_from_what_they_could_not_hear(here: Told) -> None:
    for ref in (*here.hidden.values(), MADE_UP):
        whole = await joined(here, "carol", here.tokens["carol"], ref=ref)
        said = json.loads(whole)["payload"]
        assert said["details"] == {"unknown": [ref]}
        assert said["message"].replace(ref, "") == "No such message here: "


async def test_another_workspace_is_told_nothing(
    here: Told, tokens: dict[str, tuple[str, str]]
) -> None:
    for ref in (here.first, *here.hidden.values()):
        whole = await joined(here, *tokens["the same name in another workspace"], ref=ref)
        assert "SESSION_NOT_FOUND" in whole
        check(here, without(whole, {ref}), (HIDDEN, LATER, EARLY))


async def test_whoever_listens_hears_what_is_for_them(house: ServerProcess) -> None:
    async with await begin(house) as speaker, contextlib.AsyncExitStack() as stack:
        first = await speaker.say("alice", "prompt.submit", PROMPT)
        made = told(house, speaker, first, "")
        streams, wires = [], []
        for seat in ("bob", "carol"):
            wires.append(await WebSocketClient.open(house.ws_url, seat, made.tokens[seat]))
            await wires[-1].join(speaker.session, ref=first)
            events = speaker.webs[seat].open_events(speaker.session, first)
            streams.append(await stack.enter_async_context(events))
        made = told(house, speaker, first, await finish(speaker, first))
        ways = [
            [await heard(each.response) for each in streams],
            [await all_heard(wire) for wire in wires],
        ]

    for bob, carol in ways:
        assert found_in(bob) == KEPT | UNKEPT
        check(made, carol, (HIDDEN,))


# At the git bridge, which is for whoever owns the files: a commit tells of its own place alone


BRIDGE: dict[str, dict[str, Any]] = {
    "status": {},
    "commit-context": {},
    "commit-coverage": {"changes": [{"path": "login.py", "after": "b" * 40, "mode": "100644"}]},
    "commits": {},
    "commit-created": {"sha": "a" * 40, "parents": []},
    "extended-metadata": {"sha": "a" * 40},
    "session-started": {},
    "session-ended": {},
    "pact-changed": {"directory": "/nowhere/.pact"},
    "places": {},
    "place-removed": {"directory": "/nowhere/.pact"},
    "message": {"id": MADE_UP},
    "reset": {},
}


def test_every_action_of_the_bridge_has_a_row() -> None:
    assert {row.name for row in ACTIONS} == set(BRIDGE)


async def test_a_commit_of_the_room_tells_nothing_of_a_fork(here: Told) -> None:
    whole: dict[str, str] = {}
    for repo, where in (("room", {}), ("fork", {"fork": here.forks[0]})):
        for action, more in BRIDGE.items():
            given = {"repo": f"repo-{repo}", "session": here.session} | more | where
            socket = here.server.home / "bridge.sock"
            said = await asyncio.to_thread(bridge_client.send_action, socket, action, **given)
            whole[repo] = whole.get(repo, "") + json.dumps(said)
    assert f"{LATER}-prompt" in whole["room"]
    check(here, whole["room"], (HIDDEN,))
    assert secret("prompt") in whole["fork"]
    assert secret("inner") not in whole["fork"]
    assert secret("whispered") not in whole["fork"]
    assert LATER not in whole["fork"]
