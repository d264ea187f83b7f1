"""The security table: every route, every credential, every place; each refused with its code."""

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import pytest
from msgspec.structs import replace
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from accord.core.kernel.role_permissions import Kind, Role
from accord.identity.token_signing import Claims, Keyring, _sign, issue_token
from accord.server.app import Server
from accord.server.options import ServerOptions
from accord.stores.memory import MemoryLog
from accord.transports.msg.method_table import METHODS
from tests.helpers.attacks.approval_scene import PROMPT, PROPOSAL, Scene, error, executes, scene
from tests.helpers.clients.http_client import envelope, join_payload
from tests.helpers.clients.websocket_client import SESSION_CONFIG, WebSocketClient
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.security.test_hostile_clients import encoded
from tests.spec import proves

EVIL = "http://evil.example"
NAME = "plugh-xyzzy"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all."""
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


# Routes


class Row(NamedTuple):
    """What a route answers to nobody, and to a stranger."""

    nobody: int
    stranger: int


OPEN = Row(200, 200)
MEMBERS = Row(401, 404)
OPERATORS = Row(401, 403)
SAY = Row(401, 415)
ROUTES: dict[tuple[str, str], Row] = {
    ("GET", "/"): OPEN,
    ("GET", "/healthz"): OPEN,
    ("GET", "/readyz"): OPEN,
    ("GET", "/metrics"): OPEN,
    ("GET", "/openapi.json"): OPEN,
    ("GET", "/asyncapi.json"): OPEN,
    ("GET", "/schema/v1/pvp.schema.json"): OPEN,
    ("GET", "/home"): Row(401, 200),
    ("GET", "/home/events"): Row(401, 200),
    ("POST", "/git/{action}"): Row(401, 404),
    ("GET", "/decisions"): Row(401, 200),
    ("GET", "/decisions/{decision}"): MEMBERS,
    ("GET", "/pacts"): Row(401, 200),
    ("GET", "/pacts/{repo}"): MEMBERS,
    ("GET", "/sessions"): Row(401, 200),
    ("GET", "/sessions/{id}"): MEMBERS,
    ("GET", "/sessions/{id}/context"): MEMBERS,
    ("GET", "/sessions/{id}/transcript"): MEMBERS,
    ("GET", "/sessions/{id}/turns"): MEMBERS,
    ("GET", "/sessions/{id}/messages"): MEMBERS,
    ("GET", "/sessions/{id}/events"): MEMBERS,
    ("POST", "/sessions/{id}/messages"): SAY,
    ("POST", "/sessions/{id}/standing-grants"): Row(401, 400),
    ("DELETE", "/sessions/{id}/standing-grants/{grant}"): MEMBERS,
    ("GET", "/policies/{repository}"): MEMBERS,
    ("POST", "/admin/policies"): OPERATORS,
    **{("POST", f"/v1/{name}"): SAY for name in METHODS},
    ("POST", "/admin/tokens"): OPERATORS,
    ("GET", "/admin/tokens"): OPERATORS,
    ("DELETE", "/admin/tokens/{jti}"): OPERATORS,
    ("GET", "/admin/keys"): OPERATORS,
    ("GET", "/admin/repos/{repo}/commits/{sha}/statement"): OPERATORS,
    ("POST", "/admin/keys"): OPERATORS,
    ("POST", "/sign-in"): Row(400, 400),
    ("GET", "/sign-in"): Row(401, 200),
    ("DELETE", "/sign-in"): Row(401, 409),
    ("POST", "/sign-in/refresh"): Row(400, 400),
    ("POST", "/sign-in/agents"): Row(401, 400),
    ("GET", "/sign-in/devices"): Row(401, 200),
    ("DELETE", "/sign-in/devices/{device}"): MEMBERS,
    ("POST", "/admin/invitations"): OPERATORS,
    ("GET", "/admin/invitations"): OPERATORS,
    ("DELETE", "/admin/invitations/{invitation}"): OPERATORS,
    ("GET", "/admin/devices"): OPERATORS,
    ("DELETE", "/admin/devices/{device}"): OPERATORS,
    ("GET", "/admin/people"): OPERATORS,
    ("DELETE", "/admin/people/{person}"): OPERATORS,
}
ENDLESS = "/home/events"
PROBES = {"/healthz", "/readyz"}
PATHS = [
    "../people/default",
    "..%2Fpeople%2Fdefault",
    "%2e%2e%2f%2e%2e",
    "room%2Fx",
    "%00",
    "a%0Ab",
]


def served(app: Any) -> set[tuple[str, str]]:
    """Everything that the server answers, but for heads alone."""
    while not hasattr(app, "routes"):
        app = app.app
    rows = {(method, route.path) for route in app.routes for method in route.methods or ()}
    return {row for row in rows if row[0] not in {"HEAD", "OPTIONS"}}


async def test_every_route_has_a_row(tmp_path: Any) -> None:
    assert served(Server(ServerOptions(home=tmp_path), MemoryLog()).asgi_app()) == set(ROUTES)


async def ask(
    house: ServerProcess, route: tuple[str, str], id: str, token: str = "", **headers: str
) -> httpx.Response:
    """One request, as it stands."""
    given = headers | ({"Authorization": f"Bearer {token}"} if token else {})
    path = re.sub(r"{\w+}", lambda _: id, route[1])
    async with httpx.AsyncClient(base_url=house.url, headers=given, trust_env=False) as http:
        if route[1] == ENDLESS:
            return await beginning(http, path)
        return await http.request(route[0], path)


async def beginning(http: httpx.AsyncClient, path: str) -> httpx.Response:
    """The answer with its first events alone, where it is a stream that goes on."""
    async with http.stream("GET", path) as answer:
        if answer.status_code != 200:
            await answer.aread()
            return answer
        first = await anext(answer.aiter_text())
        return httpx.Response(answer.status_code, text=first, headers=answer.headers)


@proves("OPEN-49", "PVP-20.1-1", "PVP-20.2-1")
@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
async def test_a_route_tells_nobody_and_no_stranger_what_is_not_theirs(
    house: ServerProcess, route: tuple[str, str]
) -> None:
    session = await named_session(house)
    strangers = [house.issue_token("mallory"), house.issue_token("alice", workspace="elsewhere")]
    assert (await ask(house, route, session)).status_code == ROUTES[route].nobody
    for token in strangers:
        answer = await ask(house, route, session, token)
        assert answer.status_code == ROUTES[route].stranger
        assert NAME not in answer.text
        nowhere = await ask(house, route, "ses_nowhere", token)
        assert nowhere.status_code == answer.status_code
        if ROUTES[route] is MEMBERS:
            assert nowhere.text.replace("ses_nowhere", session) == answer.text


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
async def test_a_page_of_another_site_gets_nothing(
    house: ServerProcess, route: tuple[str, str]
) -> None:
    session = await named_session(house)
    for headers in ({"Origin": EVIL}, {"Origin": "null"}):
        answer = await ask(house, route, session, house.admin_token, **headers)
        assert answer.status_code == (200 if route[1] in PROBES else 403)
    assert house.admin_request("GET", "/admin/tokens")


@pytest.mark.parametrize("route", [row for row in ROUTES if "{" in row[1]], ids=" ".join)
@pytest.mark.parametrize("path", PATHS)
async def test_an_id_that_is_a_path_leads_nowhere(
    house: ServerProcess, route: tuple[str, str], path: str
) -> None:
    answer = await ask(house, route, path, house.admin_token)
    assert answer.status_code in {400, 404, 405, 415}
    own = answer.text.replace("people/default", "").replace("/admin/people", "")
    assert "people" not in own


async def named_session(house: ServerProcess) -> str:
    """Alice's, of which nobody else knows."""
    alice = await WebSocketClient.open(house.ws_url, "alice", house.issue_token("alice"))
    made = await alice.send("session.create", "new", {"name": NAME, "config": SESSION_CONFIG})
    heard = await alice.receive_until("session.create")
    assert heard["ref"] == made
    session: str = heard["session"]
    return session


# Credentials


def claims(ring: Keyring, **changes: Any) -> Claims:
    """Good ones, but for the changes."""
    now = int(time.time() * 1000)
    made = issue_token(ring, id="alice", kind=Kind.HUMAN, roles=[Role.ADMIN], now=now).claims
    return replace(made, **changes)


def spoilt(ring: Keyring, stranger: Keyring) -> Iterator[tuple[str, str]]:
    """Every way in which a token may be wrong."""
    now = int(time.time())
    good = _sign(ring, claims(ring)).token
    head, body, signature = good.split(".")
    kid = ring.signer()[0]
    yield "expired", _sign(ring, claims(ring, iat=now - 7200, exp=now - 3600)).token
    yield "not yet valid", _sign(ring, claims(ring, iat=now + 3600, exp=now + 7200)).token
    yield "another issuer", _sign(ring, claims(ring, iss="elsewhere")).token
    yield "another key", _sign(stranger, claims(ring)).token
    yield (
        "tampered",
        f"{head}.{encoded(json.loads(decoded(body)) | {'agent_id': 'root'})}.{signature}",
    )
    yield "unsigned", f"{encoded({'alg': 'none', 'kid': kid})}.{body}."
    text = f"{encoded({'alg': 'HS256', 'kid': kid})}.{body}"
    public = next(key.public for key in ring.public_keys() if key.kid == kid)
    mac = hmac.digest(public.encode(), text.encode(), hashlib.sha256)
    yield "the public key as a password", f"{text}.{based(mac)}"
    yield "the server itself", _sign(ring, claims(ring, agent_id="system")).token
    yield (
        "an agent as operator",
        _sign(ring, claims(ring, kind=Kind.AGENT, role="operator")).token,
    )


def decoded(part: str) -> bytes:
    """What a part of a token says."""
    return base64.urlsafe_b64decode(part + "==")


def based(data: bytes) -> str:
    """Bytes as a part of a token."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


async def refused_everywhere(house: ServerProcess, token: str) -> None:
    """In a header, as a subprotocol, in a join and with a message: nobody."""
    for route in (("GET", "/sessions"), ("POST", "/sessions/x/messages"), ("GET", "/admin/keys")):
        nobody = await ask(house, route, "x", token)
        assert (nobody.status_code, nobody.headers["www-authenticate"]) == (401, "Bearer")
    ways: list[dict[str, Any]] = [
        {"additional_headers": {"Authorization": f"Bearer {token}"}},
        {"subprotocols": ["pvp.v1", f"bearer.{token}"]},
    ]
    for way in ways:
        with pytest.raises(InvalidStatus) as no:
            await connect(house.ws_url, **way)
        assert no.value.response.status_code == 401
        assert no.value.response.headers["www-authenticate"] == "Bearer"
    wire = await WebSocketClient.open(house.ws_url, "alice")
    await wire.join("ses_x", token=token)
    assert (await error(wire))["code"] == "UNAUTHORIZED"


@proves("PVP-20.1-1")
async def test_a_token_that_is_not_in_order_opens_nothing_anywhere(
    house: ServerProcess, tmp_path: Any
) -> None:
    ring, stranger = Keyring.open(house.home / "keys"), Keyring.open(tmp_path / "keys")
    for what, token in spoilt(ring, stranger):
        try:
            await refused_everywhere(house, token)
        except BaseException as failed:
            failed.add_note(what)
            raise


@proves("PVP-20.1-1")
async def test_a_revoked_token_and_one_of_a_forgotten_key_open_nothing(tmp_path: Any) -> None:
    with run_server(tmp_path) as server:
        revoked, forgotten = server.issue_token("alice"), server.issue_token("bob")
        jti = json.loads(decoded(revoked.split(".")[1]))["jti"]
        server.admin_request("DELETE", f"/admin/tokens/{jti}")
        await refused_everywhere(server, revoked)
        assert (await ask(server, ("GET", "/sessions"), "", forgotten)).status_code == 200
        kid = json.loads(decoded(forgotten.split(".")[0]))["kid"]
        server.admin_request("POST", "/admin/keys")
        Keyring.open(server.home / "keys").forget(kid)
        await refused_everywhere(server, forgotten)


@pytest.mark.parametrize("name", ["token", "access_token", "authorization", "as", "bearer"])
async def test_no_address_carries_a_token(house: ServerProcess, name: str) -> None:
    token = house.issue_token("alice")
    route = ("GET", f"/sessions?{name}={token}")
    assert (await ask(house, route, "")).status_code == 401
    async with connect(f"{house.ws_url}?{name}={token}") as socket:
        wire = WebSocketClient(socket, "alice")
        await wire.send("prompt.submit", "x", PROMPT)
        assert (await error(wire))["code"] == "UNAUTHORIZED"


async def test_nobody_is_somebody_else_by_post(house: ServerProcess) -> None:
    here = await scene(house)
    token = house.issue_token("mallory")
    headers = {"Authorization": f"Bearer {token}"}
    spoofs = [
        envelope("prompt.submit", here.session, "alice", PROMPT),
        envelope("session.join", here.session, "alice", join_payload("alice")),
        envelope("session.join", here.session, "mallory", join_payload("alice")),
        envelope("prompt.submit", here.session, "system", PROMPT),
    ]
    async with httpx.AsyncClient(base_url=house.url, headers=headers, trust_env=False) as http:
        for spoof in spoofs:
            answer = await http.post(f"/sessions/{here.session}/messages", json=spoof)
            assert answer.status_code == 403, answer.text
            assert answer.json()["payload"]["code"] == "UNAUTHORIZED"
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            sent: Any = {"content": json.dumps(spoofs[0]), "headers": {"Content-Type": kind}}
            answer = await http.post(f"/sessions/{here.session}/messages", **sent)
            assert answer.status_code == 415


async def test_on_trust_no_name_of_another_machine_leads_here(tmp_path: Any) -> None:
    with run_server(tmp_path, "open") as server:
        for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1.evil.example"):
            for route in ROUTES:
                assert (await ask(server, route, "x", Host=host)).status_code == 403
            with pytest.raises(InvalidStatus) as no:
                await connect(server.ws_url, additional_headers={"Host": host})
            assert no.value.response.status_code in {400, 403}


# A lying agent


async def granted(here: Scene) -> dict[str, Any]:
    """A proposal that alice agreed to, and its grant."""
    _, gate = await here.gate()
    await here.alice.send("gate.approve", here.session, {"gate": gate, "approver": "alice"})
    told: dict[str, Any] = (await here.bot.receive_until("tool.execute"))["payload"]
    return told


def result(proposal: str, **more: Any) -> dict[str, Any]:
    """How it ended, says the agent."""
    return {"tool_proposal": proposal, "success": True, "duration_ms": 1, **more}


def output(proposal: str, **more: Any) -> dict[str, Any]:
    """What it printed, says the agent."""
    return {"tool_proposal": proposal, "stream": "stdout", "text": "x", "complete": False, **more}


Lie = Callable[[dict[str, Any]], tuple[str, dict[str, Any]]]
LIES: dict[str, tuple[Lie, str]] = {
    "another digest": (
        lambda run: ("tool.execute", run | {"grant": run["grant"] | {"digest": "0" * 64}}),
        "GATE_FAILED",
    ),
    "another end": (
        lambda run: (
            "tool.execute",
            run | {"grant": run["grant"] | {"expires_at": "2099-01-01T00:00:00.000Z"}},
        ),
        "GATE_FAILED",
    ),
    "another grant": (
        lambda run: ("tool.output", output(run["tool_proposal"], grant="other")),
        "GATE_FAILED",
    ),
    "a result for another grant": (
        lambda run: ("tool.result", result(run["tool_proposal"], grant="other")),
        "GATE_FAILED",
    ),
    "a proposal that is not there": (lambda run: ("tool.result", result("x")), "INVALID_STATE"),
    "a grant as proposal": (
        lambda run: ("tool.output", output(run["grant"]["id"])),
        "INVALID_STATE",
    ),
}


@proves("OPEN-22")
@pytest.mark.parametrize("name", LIES)
async def test_a_lie_about_a_grant_is_refused_and_changes_nothing(
    house: ServerProcess, name: str
) -> None:
    here = await scene(house)
    run = await granted(here)
    lie, code = LIES[name]
    before = await transcript(here)
    await here.bot.send(lie(run)[0], here.session, lie(run)[1])
    assert (await error(here.bot))["code"] == code
    assert await transcript(here) == before


@proves("OPEN-22")
async def test_a_tool_ends_once_and_only_for_who_proposed_it(house: ServerProcess) -> None:
    here = await scene(house)
    run = await granted(here)
    thief = await here.come(
        "thief", house.issue_token("thief", "agent"), kind="agent", roles=["driver"]
    )
    for kind, said in (("tool.output", output), ("tool.result", result)):
        await thief.send(kind, here.session, said(run["tool_proposal"]))
        assert (await error(thief))["code"] == "UNAUTHORIZED"
    await here.bot.send("tool.result", here.session, result(run["tool_proposal"]))
    await here.bot.receive_until("tool.result")
    for kind, said in (("tool.output", output), ("tool.result", result)):
        await here.bot.send(kind, here.session, said(run["tool_proposal"], text="late"))
        assert (await error(here.bot))["code"] == "INVALID_STATE"


async def test_after_a_stop_nothing_begins_and_what_ran_is_still_told(
    house: ServerProcess,
) -> None:
    here = await scene(house)
    run = await granted(here)
    stop = {"urgency": "stop", "message": "Wait", "target": "bot"}
    await here.alice.send("interrupt.raise", here.session, stop)
    await here.bot.receive_until("interrupt.raise")
    await here.bot.send("tool.output", here.session, output(run["tool_proposal"]))
    await here.alice.receive_until("tool.output", tool_proposal=run["tool_proposal"])
    await here.bot.send("tool.execute", here.session, run)
    assert (await error(here.bot))["code"] == "INVALID_STATE"
    look = PROPOSAL | {"tool_name": "look", "category": "file_read"}
    await here.bot.send("tool.propose", here.session, look, id="late")
    assert (await error(here.bot))["code"] == "INVALID_STATE"
    assert not await executes(here.alice, "late")


async def transcript(here: Scene) -> Any:
    """Everything that is on record."""
    token = here.server.issue_token("alice", roles=["admin"])
    answer = await ask(here.server, ("GET", "/sessions/{id}/transcript"), here.session, token)
    return answer.json()["messages"]


# What is written down


async def test_no_word_from_outside_makes_a_line_of_the_log(house: ServerProcess) -> None:
    forged = "x\r\n2026-01-01 00:00:00,000 ERROR accord: forged\x1b[2J"
    here = await scene(house)
    wire = await WebSocketClient.open(house.ws_url, "mallory", house.issue_token("mallory"))
    for fields in ({"id": forged}, {"session": forged}, {"type": forged}, {"ref": forged}):
        said = envelope("prompt.submit", here.session, "mallory", PROMPT) | fields
        await wire.socket.send(json.dumps(said))
        await error(wire)
    async with connect(f"{house.ws_url}?runtime={quote(forged, safe='')}"):
        pass
    for route in ROUTES:
        await ask(house, route, quote(forged, safe=""))
    assert "forged" not in "".join(line for line in house.log.splitlines() if "ERROR" in line)
    assert "\x1b" not in house.log
