"""Attacks on signing in: replayed proofs, codes used twice, stolen cookies, guesses, revocation."""

import asyncio
import base64
import json
import secrets
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from accord.core.people.device_proofs import ProofStatement
from tests.helpers.clients.http_client import envelope
from tests.helpers.clients.websocket_client import SESSION_CONFIG, WebSocketClient
from tests.helpers.servers.server_process import ServerProcess, run_server

EVIL = "http://evil.example"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all."""
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


@pytest.fixture
def house(shared: ServerProcess) -> ServerProcess:
    """That server, with nothing left of the tests before."""
    for kind in ("devices", "invitations"):
        for each in shared.admin_request("GET", f"/admin/{kind}")[kind]:
            shared.admin_request("DELETE", f"/admin/{kind}/{each['id']}")
    return shared


@pytest.fixture
def fresh_house(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server of its own: failed attempts count for all that come from one address."""
    with run_server(tmp_path / "house") as server:
        yield server


class SignedInDevice(NamedTuple):
    """A device with its key, as `accord login` makes it."""

    house: ServerProcess
    key: Ed25519PrivateKey
    profile: dict[str, Any]

    def proof(self, **changes: Any) -> dict[str, Any]:
        """A proof of now; changed fields are signed, except `signature`."""
        fields = {
            "device": self.profile["device"],
            "address": self.house.url,
            "time": time.time_ns() // 1_000_000,
            "nonce": secrets.token_hex(16),
        } | {name: value for name, value in changes.items() if name != "signature"}
        statement = ProofStatement(
            fields["address"], fields["device"], fields["time"], fields["nonce"]
        )
        signature = base64.b64encode(self.key.sign(statement.to_bytes())).decode()
        return fields | {"signature": changes.get("signature", signature)}

    def refresh(self, proof: dict[str, Any]) -> httpx.Response:
        return post(self.house, "/sign-in/refresh", proof)


def post(house: ServerProcess, path: str, body: Any, **headers: str) -> httpx.Response:
    return httpx.post(house.url + path, json=body, headers=headers, trust_env=False)


def get(house: ServerProcess, path: str, **headers: str) -> httpx.Response:
    return httpx.get(house.url + path, headers=headers, trust_env=False)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def invite(house: ServerProcess, id: str = "alice", *roles: str) -> str:
    """The code of an invitation."""
    request = {"id": id, "roles": roles or ["driver"]}
    code: str = house.admin_request("POST", "/admin/invitations", request)["code"]
    return code


def new_key() -> tuple[Ed25519PrivateKey, str]:
    key = Ed25519PrivateKey.generate()
    return key, base64.b64encode(key.public_key().public_bytes_raw()).decode()


def sign_in(house: ServerProcess, id: str = "alice", *roles: str) -> SignedInDevice:
    key, public = new_key()
    answer = post(house, "/sign-in", {"code": invite(house, id, *roles), "public_key": public})
    assert answer.status_code == 201
    return SignedInDevice(house, key, answer.json())


def cookie_of(house: ServerProcess, id: str = "alice", *roles: str) -> str:
    """The cookie of a browser that signed in, as `name=value`."""
    answer = post(house, "/sign-in", {"code": invite(house, id, *roles)}, Origin=house.url)
    assert answer.status_code == 201
    assert answer.json()["token"] is None
    header = answer.headers["set-cookie"]
    assert "; HttpOnly; SameSite=Strict" in header
    return header.partition(";")[0]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:7420", "127.0.0.1.evil.example"])
def test_a_name_that_is_pointed_at_the_server_signs_nobody_in(
    house: ServerProcess, host: str
) -> None:
    """DNS rebinding: the page and the request then agree on a foreign name."""
    code = invite(house)
    rebound = {"Host": host, "Origin": f"http://{host}"}

    answer = post(house, "/sign-in", {"code": code}, **rebound)

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (403, "UNAUTHORIZED")
    assert "--public-url" in error["message"]
    assert "set-cookie" not in answer.headers
    assert get(house, "/sign-in", **rebound).status_code == 403
    assert post(house, "/sign-in", {"code": code}, Origin=house.url).status_code == 201


def test_a_code_and_a_key_give_a_profile_that_works(house: ServerProcess) -> None:
    device = sign_in(house, "alice", "driver", "approver")

    me = get(house, "/sign-in", **bearer(device.profile["token"])).json()

    assert (me["id"], me["type"], me["roles"]) == ("alice", "human", ["approver", "driver"])
    assert me["device"] == device.profile["device"]
    assert me["server"] == device.profile["server"] != ""
    assert device.profile["address"] == house.url.removeprefix("http://")


def test_neither_code_nor_key_nor_token_is_stored_or_logged(fresh_house: ServerProcess) -> None:
    code = invite(fresh_house)
    key, public = new_key()
    profile = post(fresh_house, "/sign-in", {"code": code, "public_key": public}).json()
    device = SignedInDevice(fresh_house, key, profile)
    token = device.refresh(device.proof()).json()["token"]
    post(fresh_house, "/sign-in", {"code": code, "public_key": public})
    metrics = get(fresh_house, "/metrics").text
    fresh_house.stop()

    for secret in (code, token.rpartition(".")[2], profile["token"].rpartition(".")[2]):
        assert secret.encode() not in fresh_house.stored_bytes
        assert secret not in fresh_house.log
        assert secret not in metrics
    assert profile["device"].encode() in fresh_house.stored_bytes


def test_of_many_who_use_one_code_at_once_exactly_one_gets_in(fresh_house: ServerProcess) -> None:
    code, (_, public) = invite(fresh_house), new_key()

    async def race() -> list[int]:
        async with httpx.AsyncClient(base_url=fresh_house.url, trust_env=False) as http:
            body = {"code": code, "public_key": public}
            answers = await asyncio.gather(*(http.post("/sign-in", json=body) for _ in range(8)))
        return sorted(answer.status_code for answer in answers)

    assert asyncio.run(race()) == [201] + [401] * 7
    devices = fresh_house.admin_request("GET", "/admin/devices")["devices"]
    assert [device["principal"] for device in devices] == ["alice"]


def test_a_replayed_proof_gets_nothing_and_a_fresh_one_the_same_token(
    house: ServerProcess,
) -> None:
    device = sign_in(house)
    proof = device.proof()

    first, again, fresh = (
        device.refresh(proof),
        device.refresh(proof),
        device.refresh(device.proof()),
    )

    assert (first.status_code, again.status_code) == (200, 401)
    assert "used before" in again.json()["error"]["message"]
    assert fresh.json() == first.json()
    assert get(house, "/sessions", **bearer(first.json()["token"])).status_code == 200


def test_a_proof_survives_neither_a_restart_nor_a_changed_field(fresh_house: ServerProcess) -> None:
    device = sign_in(fresh_house)
    proof = device.proof()
    assert device.refresh(proof).status_code == 200

    fresh_house.restart()

    assert device.refresh(proof).status_code == 401
    changed = [
        proof | {"nonce": secrets.token_hex(16)},
        proof | {"time": proof["time"] + 1},
        proof | {"address": fresh_house.url + "/"},
        proof | {"device": "01K9ZV7Q3S5V7X9Z1B3D5F7H9K"},
        device.proof(signature=base64.b64encode(bytes(64)).decode()),
    ]
    assert {device.refresh(each).status_code for each in changed} == {401}
    assert device.refresh(device.proof()).status_code == 200


def test_a_proof_for_another_server_or_of_another_time_gets_nothing(house: ServerProcess) -> None:
    device = sign_in(house)
    now = time.time_ns() // 1_000_000

    for other in (EVIL, "https://evil.example", "http://127.0.0.1:1", "127.0.0.1"):
        refused = device.refresh(device.proof(address=other))
        assert (refused.status_code, refused.json()["error"]["code"]) == (401, "UNAUTHORIZED")
    for off in (-120_000, 120_000):
        refused = device.refresh(device.proof(time=now + off))
        assert "clock" in refused.json()["error"]["message"]


def test_guessing_codes_is_slowed_down_even_in_parallel(fresh_house: ServerProcess) -> None:
    good, (_, public) = invite(fresh_house), new_key()

    async def guess() -> list[int]:
        async with httpx.AsyncClient(base_url=fresh_house.url, trust_env=False) as http:
            bodies = ({"code": secrets.token_hex(13), "public_key": public} for _ in range(40))
            tries = [http.post("/sign-in", json=body) for body in bodies]
            return [answer.status_code for answer in await asyncio.gather(*tries)]

    statuses = asyncio.run(guess())

    assert statuses.count(401) <= 12
    assert set(statuses) == {401, 429}
    late = post(fresh_house, "/sign-in", {"code": good, "public_key": public})
    assert late.status_code == 429, "what is right is not told apart from a guess"
    assert int(late.headers["retry-after"]) >= 1


MALFORMED = [
    b"",
    b"{}",
    b"[]",
    b'{"code": ""}',
    b'{"code": 1}',
    b'{"code": "x", "more": 1}',
    b'{"code": "x", "public_key": "AAAA"}',
    b'{"code": "x", "public_key": "not base64"}',
    b"[" * 5000,
    b'{"code": "' + b"x" * 9000 + b'"}',
]


def test_malformed_requests_are_refused_and_do_not_count_as_guesses(house: ServerProcess) -> None:
    for path in ("/sign-in", "/sign-in/refresh"):
        for body in (*MALFORMED, *MALFORMED):
            answer = httpx.post(house.url + path, content=body, trust_env=False)
            assert answer.status_code in {400, 413}
    assert sign_in(house)


def test_an_invitation_grants_its_roles_once_and_can_be_revoked(house: ServerProcess) -> None:
    made = house.admin_request("POST", "/admin/invitations", {"roles": ["observer"]})
    (listed,) = house.admin_request("GET", "/admin/invitations")["invitations"]
    assert made == listed | {"code": made["code"]}
    assert made["principal"].startswith("guest-")

    house.admin_request("DELETE", f"/admin/invitations/{made['id']}?reason=typo")

    _, public = new_key()
    refused = post(house, "/sign-in", {"code": made["code"], "public_key": public})
    assert refused.status_code == 401
    assert house.admin_request("GET", "/admin/invitations")["invitations"] == []


@pytest.mark.parametrize("roles", [["admin"], ["driver"]])
def test_who_is_not_an_operator_invites_nobody(house: ServerProcess, roles: list[str]) -> None:
    driver = house.issue_token("bob", roles=["driver", "approver"])
    robot = house.issue_token("robot", kind="agent", roles=["admin"])

    for token in (driver, robot):
        refused = post(house, "/admin/invitations", {"roles": roles}, **bearer(token))
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "FORBIDDEN")


async def test_revoking_a_device_ends_its_connections_within_a_second(
    house: ServerProcess,
) -> None:
    device = sign_in(house)
    socket = await WebSocketClient.open(house.ws_url, "alice", device.profile["token"])

    house.admin_request("DELETE", f"/admin/devices/{device.profile['device']}")

    with pytest.raises(ConnectionClosed, match="revoked"):
        await asyncio.wait_for(socket.socket.recv(), 1.0)
    assert get(house, "/sessions", **bearer(device.profile["token"])).status_code == 401
    assert device.refresh(device.proof()).status_code == 401


def test_one_revokes_ones_own_devices_and_nobody_elses(house: ServerProcess) -> None:
    first, second, bob = sign_in(house), sign_in(house), sign_in(house, "bob")
    mine = bearer(first.profile["token"])
    listed = get(house, "/sign-in/devices", **mine).json()["devices"]
    assert [each["id"] for each in listed] == [first.profile["device"], second.profile["device"]]

    def revoke(device: SignedInDevice) -> int:
        path = f"{house.url}/sign-in/devices/{device.profile['device']}"
        return httpx.delete(path, headers=mine, trust_env=False).status_code

    assert (revoke(second), revoke(bob)) == (204, 404)
    assert get(house, "/sessions", **bearer(second.profile["token"])).status_code == 401
    assert get(house, "/sessions", **bearer(bob.profile["token"])).status_code == 200


def test_revoking_the_token_of_a_device_leaves_it_no_way_to_get_another(
    house: ServerProcess,
) -> None:
    device = sign_in(house)
    (token,) = [
        each
        for each in house.admin_request("GET", "/admin/tokens")["tokens"]
        if each.get("device") == device.profile["device"]
    ]

    house.admin_request("DELETE", f"/admin/tokens/{token['jti']}")

    assert device.refresh(device.proof()).status_code == 401


# The cookie


def test_a_cookie_reads_and_writes_from_our_own_page(house: ServerProcess) -> None:
    cookie = cookie_of(house, "alice", "driver")
    creation = envelope("session.create", "new", "alice", {"config": SESSION_CONFIG})

    assert get(house, "/sessions", Cookie=cookie).status_code == 200
    own = {"Cookie": cookie, "Origin": house.url}
    assert post(house, "/sessions/new/messages", creation, **own).status_code == 200
    assert len(get(house, "/sessions", Cookie=cookie).json()["sessions"]) >= 1


@pytest.mark.parametrize("headers", [{}, {"Origin": EVIL}, {"Origin": "null"}])
def test_a_cookie_from_another_origin_changes_nothing(
    house: ServerProcess, headers: dict[str, str]
) -> None:
    cookie = cookie_of(house, "root", "admin")
    creation = envelope("session.create", "new", "root", {"config": SESSION_CONFIG})
    forged = {"Cookie": cookie, **headers}

    assert post(house, "/sessions/new/messages", creation, **forged).status_code == 403
    assert post(house, "/admin/keys", None, **forged).status_code == 403
    assert post(house, "/admin/invitations", {"roles": ["admin"]}, **forged).status_code == 403
    signed_out = httpx.delete(house.url + "/sign-in", headers=forged, trust_env=False)
    assert signed_out.status_code == 403
    assert get(house, "/sessions", Cookie=cookie).json()["sessions"] == []


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_on_another_port_of_this_machine_does_not_read_with_the_cookie(
    house: ServerProcess, site: str
) -> None:
    cookie = cookie_of(house)

    refused = get(house, "/sessions", **{"Cookie": cookie, "Sec-Fetch-Site": site})

    assert refused.status_code == 403


@pytest.mark.parametrize("headers", [{}, {"Origin": EVIL}, {"Origin": "null"}])
def test_no_cookie_is_set_for_another_origin_and_the_code_stays_good(
    house: ServerProcess, headers: dict[str, str]
) -> None:
    code = invite(house)

    refused = post(house, "/sign-in", {"code": code}, **headers)

    assert refused.status_code == 403
    assert "set-cookie" not in refused.headers
    assert post(house, "/sign-in", {"code": code}, Origin=house.url).status_code == 201


async def test_the_upgrade_takes_the_cookie_from_our_own_page_alone(house: ServerProcess) -> None:
    cookie = cookie_of(house)
    own = {"Cookie": cookie, "Origin": house.url}
    async with connect(house.ws_url, additional_headers=own) as socket:
        creation = envelope("session.create", "new", "alice", {"config": SESSION_CONFIG})
        await socket.send(json.dumps(creation))
        assert json.loads(await asyncio.wait_for(socket.recv(), 10))["type"] == "session.create"
    for headers in ({}, {"Origin": EVIL}):
        with pytest.raises(InvalidStatus) as refused:
            async with connect(house.ws_url, additional_headers={"Cookie": cookie, **headers}):
                pass
        assert refused.value.response.status_code == 403


async def test_signing_out_revokes_the_browser_and_ends_its_connections(
    house: ServerProcess,
) -> None:
    cookie = cookie_of(house)
    own = {"Cookie": cookie, "Origin": house.url}
    async with connect(house.ws_url, additional_headers=own) as socket:
        async with httpx.AsyncClient(base_url=house.url, trust_env=False) as http:
            done = await http.delete("/sign-in", headers=own)
        assert done.status_code == 204
        assert "Max-Age=0" in done.headers["set-cookie"]
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(socket.recv(), 1.0)
    assert get(house, "/sessions", Cookie=cookie).status_code == 401


def test_two_cookies_of_one_server_are_refused_and_those_of_others_ignored(
    house: ServerProcess,
) -> None:
    cookie, other = cookie_of(house), cookie_of(house, "bob")

    assert get(house, "/sessions", Cookie=f"{cookie}; {other}").status_code == 401
    strange = f"accord-other=x; theme=dark; {cookie}"
    assert get(house, "/sessions", Cookie=strange).status_code == 200
    assert get(house, "/sessions", Cookie="accord-other=x").status_code == 401


def test_a_browser_has_no_key_and_renews_nothing(house: ServerProcess) -> None:
    cookie = cookie_of(house)
    account = get(house, "/sign-in", Cookie=cookie).json()
    device = SignedInDevice(house, new_key()[0], account)

    assert device.refresh(device.proof()).status_code == 401
    (listed,) = house.admin_request("GET", "/admin/devices")["devices"]
    assert listed["browser"]


def test_operators_see_who_can_get_in(house: ServerProcess) -> None:
    sign_in(house, "alice", "driver")
    invite(house, "carol", "approver")
    house.issue_token("robot", kind="agent")

    people = {each["id"]: each for each in house.admin_request("GET", "/admin/people")["people"]}

    counts = ("tokens", "devices", "invitations")
    assert [people["alice"][each] for each in counts] == [1, 1, 0]
    assert [people["carol"][each] for each in counts] == [0, 0, 1]
    assert (people["robot"]["type"], people["carol"]["roles"]) == ("agent", ["approver"])
