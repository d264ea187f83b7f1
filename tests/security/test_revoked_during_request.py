"""What was allowed when a request began may not be any more when it has come in whole."""

import base64
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.helpers.attacks.raw_socket import plug, rest
from tests.helpers.clients.http_client import envelope
from tests.helpers.clients.websocket_client import SESSION_CONFIG
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.spec import proves

PATIENCE = 60.0
GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


def jti(token: str) -> str:
    """What a token is known by."""
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    known: str = claims["jti"]
    return known


def begin(house: ServerProcess, path: str, token: str, body: bytes) -> socket.socket:
    """A request that was let in, and whose body is still to come."""
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        "Expect: 100-continue",
    ]
    opened = plug(house)
    opened.settimeout(PATIENCE)
    opened.sendall("\r\n".join([*lines, "", ""]).encode())
    assert opened.recv(len(GO_ON), socket.MSG_WAITALL) == GO_ON, "it is waited for by now"
    return opened


def finished(opened: socket.socket, body: bytes) -> tuple[int, dict[str, Any]]:
    """What comes of it."""
    with opened:
        opened.sendall(body)
        head, _, said = rest(opened).partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(said)


def creation(who: str) -> bytes:
    """A session of somebody's."""
    return json.dumps(envelope("session.create", "new", who, {"config": SESSION_CONFIG})).encode()


@proves("UNI-26")
def test_a_message_under_a_token_that_is_revoked_meanwhile_is_refused(house: ServerProcess) -> None:
    token, body = house.issue_token("bob"), creation("bob")

    opened = begin(house, "/sessions/new/messages", token, body)
    house.admin_request("DELETE", f"/admin/tokens/{jti(token)}")
    status, said = finished(opened, body)

    assert (status, said["payload"]["code"]) == (401, "UNAUTHORIZED")
    assert "revoked" in said["payload"]["message"]


def test_operator_revoked_during_the_request_issues_no_token(house: ServerProcess) -> None:
    token = house.issue_token("olga", roles=["admin"])
    body = b'{"id":"mallory","type":"human","roles":["admin"]}'

    opened = begin(house, "/admin/tokens", token, body)
    house.admin_request("DELETE", f"/admin/tokens/{jti(token)}")
    status, said = finished(opened, body)

    assert (status, said["error"]["code"]) == (401, "UNAUTHORIZED")
    assert "mallory" not in json.dumps(house.admin_request("GET", "/admin/tokens"))


def test_whoever_still_may_is_served_however_long_it_took(house: ServerProcess) -> None:
    body = creation("carol")

    opened = begin(house, "/sessions/new/messages", house.issue_token("carol"), body)
    house.admin_request("GET", "/admin/tokens")
    status, said = finished(opened, body)

    assert status == 200
    assert said["session"]


def test_a_body_in_another_encoding_is_told_so(house: ServerProcess) -> None:
    """Nothing is unpacked here, however small it would come."""
    lines = [
        "POST /sessions/new/messages HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {house.issue_token('dave')}",
        "Content-Type: application/json",
        "Content-Encoding: gzip",
        "Content-Length: 2",
        "Connection: close",
    ]
    with plug(house) as opened:
        status, said = finished(opened, "\r\n".join([*lines, "", "xx"]).encode())

    assert (status, said["payload"]["code"]) == (415, "INVALID_MESSAGE")
    assert "without Content-Encoding" in said["payload"]["message"]


def test_of_many_uses_beside_a_revocation_none_begins_behind_it(house: ServerProcess) -> None:
    token = house.issue_token("erin")
    after, late = threading.Event(), list[int]()

    def use(number: int) -> None:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        with httpx.Client(base_url=house.url, headers=headers, timeout=PATIENCE) as web:
            status = 200
            while status == 200 and not late:
                began_after = after.is_set()
                status = web.post("/sessions/new/messages", content=creation("erin")).status_code
                if status == 200 and began_after:
                    late.append(number)

    users = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for each in users:
        each.start()
    house.admin_request("DELETE", f"/admin/tokens/{jti(token)}")
    after.set()
    for each in users:
        each.join(PATIENCE)

    assert not late
    assert not any(each.is_alive() for each in users)
