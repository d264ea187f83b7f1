"""Tokens and keys over HTTP, for operators alone."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from accord.core.kernel.role_permissions import Kind, Role
from accord.identity.token_service import TokenService
from accord.identity.token_signing import issue_token
from accord.transports.http.admin import ADMIN_ENDPOINTS, DEFAULT_LIMITS, routes
from tests.helpers.servers.token_service import (
    T0,
    issue_operator_token,
    open_token_service,
    token_request,
)
from tests.spec import proves

WISH = {"id": "alice", "type": "human", "roles": ["driver"]}
EVERYTHING = [
    ("POST", "/admin/tokens"),
    ("GET", "/admin/tokens"),
    ("DELETE", "/admin/tokens/J1"),
    ("GET", "/admin/keys"),
    ("POST", "/admin/keys"),
]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[TokenService]:
    async with open_token_service(tmp_path) as made:
        yield made


@pytest.fixture
async def web(desk: TokenService) -> AsyncIterator[httpx.AsyncClient]:
    """Signed in as an operator."""
    transport = httpx.ASGITransport(Starlette(routes=routes(ADMIN_ENDPOINTS, desk)))
    token = (await issue_operator_token(desk)).token
    headers = {"authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(
        transport=transport, base_url="http://accord", headers=headers
    ) as client:
        yield client


def error(response: httpx.Response) -> tuple[int, str]:
    said: dict[str, Any] = response.json()
    assert set(said) == {"error"}
    assert set(said["error"]) == {"code", "message", "details"}
    return response.status_code, said["error"]["code"]


async def test_an_operator_issues_a_token(web: httpx.AsyncClient, desk: TokenService) -> None:
    response = await web.post("/admin/tokens", json=WISH | {"ttl_s": 60, "labels": ["security"]})

    assert response.status_code == 201
    assert response.headers["cache-control"] == "no-store"
    said = response.json()
    who = await desk.identify(said["token"])
    assert (who.actor.principal, who.expires_at) == ("alice", T0 + 60_000)
    assert said["claims"]["labels"] == ["security"]
    assert said["warnings"] == []


async def test_issue_response_includes_warnings(web: httpx.AsyncClient) -> None:
    response = await web.post("/admin/tokens", json=WISH | {"type": "agent", "roles": ["approver"]})

    (warning,) = response.json()["warnings"]
    assert "never count" in warning


async def test_an_operator_lists_and_revokes(web: httpx.AsyncClient, desk: TokenService) -> None:
    jti = (await web.post("/admin/tokens", json=WISH)).json()["claims"]["jti"]

    for _ in range(2):
        response = await web.delete(f"/admin/tokens/{jti}", params={"reason": "laptop lost"})
        assert (response.status_code, response.content) == (204, b"")

    listed = (await web.get("/admin/tokens")).json()["tokens"]
    assert {token["id"]: token.get("revoked", False) for token in listed} == {
        "olga": False,
        "alice": True,
    }
    assert all("token" not in token for token in listed)


async def test_an_operator_rotates_the_key(web: httpx.AsyncClient, desk: TokenService) -> None:
    response = await web.post("/admin/keys")

    assert response.status_code == 201
    keys = (await web.get("/admin/keys")).json()["keys"]
    assert [key["active"] for key in keys] == [False, True]
    assert keys[-1] == response.json()
    assert "PRIVATE" not in str(keys)
    assert (await desk.people()).active == keys[-1]["kid"]


@proves("UNI-26")
@pytest.mark.parametrize(("method", "path"), EVERYTHING)
async def test_without_a_good_token_nothing_is_told(
    web: httpx.AsyncClient, method: str, path: str
) -> None:
    for token in ("Bearer a.b.c", "Bearer", "Basic YTpi", ""):
        response = await web.request(method, path, headers={"authorization": token})
        assert error(response) == (401, "UNAUTHORIZED")
        assert response.headers["www-authenticate"] == "Bearer"


async def test_no_header_at_all_is_no_token(desk: TokenService) -> None:
    transport = httpx.ASGITransport(Starlette(routes=routes(ADMIN_ENDPOINTS, desk)))
    async with httpx.AsyncClient(transport=transport, base_url="http://accord") as nobody:
        assert error(await nobody.get("/admin/tokens")) == (401, "UNAUTHORIZED")


@proves("UNI-26")
@pytest.mark.parametrize(("method", "path"), EVERYTHING)
@pytest.mark.parametrize(("kind", "role"), [(Kind.HUMAN, Role.APPROVER), (Kind.AGENT, Role.ADMIN)])
async def test_who_is_no_operator_is_turned_away(
    web: httpx.AsyncClient, desk: TokenService, method: str, path: str, kind: Kind, role: Role
) -> None:
    token = issue_token(desk.keyring, id="bob", kind=kind, roles={role}, now=T0).token

    response = await web.request(method, path, headers={"authorization": f"Bearer {token}"})

    assert error(response) == (403, "FORBIDDEN")


async def test_an_operator_whose_token_is_revoked_is_nobody(
    web: httpx.AsyncClient, desk: TokenService
) -> None:
    (mine,) = await desk.admin_for().tokens()
    assert (await web.delete(f"/admin/tokens/{mine.jti}")).status_code == 204

    assert error(await web.get("/admin/tokens")) == (401, "UNAUTHORIZED")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"[" * 10_000,
        b'{"id":"alice"}',
        b'{"id":"alice","type":"god","roles":[]}',
        b'{"id":"alice","type":"human","roles":["emperor"]}',
        b'{"id":"alice","type":"human","roles":[],"surprise":1}',
        b'{"id":"system","type":"human","roles":[]}',
        b'{"id":"alice","type":"human","roles":[],"ttl_s":1}',
        b'{"id":"alice","type":"agent","roles":[],"role":"operator"}',
    ],
)
async def test_a_wish_that_makes_no_sense_is_refused(web: httpx.AsyncClient, body: bytes) -> None:
    assert error(await web.post("/admin/tokens", content=body)) == (400, "VALIDATION_ERROR")


async def test_more_than_a_wish_needs_is_not_read(web: httpx.AsyncClient) -> None:
    response = await web.post("/admin/tokens", content=b" " * (DEFAULT_LIMITS.body + 1))

    assert error(response) == (413, "VALIDATION_ERROR")


async def test_anothers_workspace_is_out_of_reach(
    web: httpx.AsyncClient, desk: TokenService
) -> None:
    theirs = (await issue_operator_token(desk, "otto", "elsewhere")).token
    headers = {"authorization": f"Bearer {theirs}"}
    ours = await desk.admin_for().issue(token_request())

    issued = await web.post("/admin/tokens", json=WISH, headers=headers)
    revoked = await web.delete(f"/admin/tokens/{ours.claims.jti}", headers=headers)
    rotated = await web.post("/admin/keys", headers=headers)

    assert error(issued) == (403, "FORBIDDEN")
    assert error(revoked) == (404, "NOT_FOUND")
    assert error(rotated) == (403, "FORBIDDEN")
