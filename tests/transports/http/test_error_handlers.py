"""Whatever is wrong with a request, the answer has a code and a sentence that helps."""

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from accord.core.kernel.limits import Limits
from accord.transports.http import admin
from accord.transports.http.error_handlers import EXCEPTION_HANDLERS
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.spec import proves

JSON = "application/json"
PATIENCE = 60.0


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


def problem(answer: httpx.Response) -> dict[str, Any]:
    """The error, in the one shape that there is."""
    said: dict[str, Any] = answer.json()
    assert answer.headers["content-type"] == JSON
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert set(said) == {"error"}
    assert {"code", "message"} <= set(said["error"])
    found: dict[str, Any] = said["error"]
    return found


@proves("UNI-26")
@pytest.mark.parametrize(
    ("path", "code"),
    [("/sesions", "INVALID_MESSAGE"), ("/admin", "NOT_FOUND"), ("/admin/toklens", "NOT_FOUND")],
)
def test_what_is_not_there_is_named_and_where_to_look(
    house: ServerProcess, path: str, code: str
) -> None:
    answer = httpx.get(house.url + path)

    assert answer.status_code == 404
    assert problem(answer)["code"] == code
    said = problem(answer)["message"]
    assert said == f"There is no endpoint {path}; /openapi.json lists all endpoints"


def test_of_an_endless_path_the_beginning_is_told(house: ServerProcess) -> None:
    said = problem(httpx.get(f"{house.url}/{'a' * 5000}"))["message"]

    assert len(said) < 200


def test_who_asks_the_socket_for_a_page_is_told_to_upgrade(house: ServerProcess) -> None:
    answer = httpx.get(f"{house.url}/ws")

    assert answer.status_code == 404
    assert "send an upgrade request" in problem(answer)["message"]


@pytest.mark.parametrize(
    ("path", "code", "allowed"),
    [
        ("/sessions", "INVALID_MESSAGE", {"GET", "HEAD"}),
        ("/admin/tokens", "VALIDATION_ERROR", {"GET", "HEAD", "POST"}),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(
    house: ServerProcess, path: str, code: str, allowed: set[str]
) -> None:
    answer = httpx.put(house.url + path)

    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == allowed
    assert problem(answer)["code"] == code
    assert problem(answer)["message"] == (
        f"{path} does not allow PUT; use {', '.join(sorted(allowed))}"
    )


def test_a_body_that_is_too_large_is_told_how_large_it_may_be(house: ServerProcess) -> None:
    most = Limits().body
    headers = {"authorization": f"Bearer {house.admin_token}"}

    answer = httpx.post(f"{house.url}/admin/tokens", content=b"x" * (most + 1), headers=headers)

    assert answer.status_code == 413
    assert str(most) in problem(answer)["message"]


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"nonsense\r\n\r\n", 400, "INVALID_MESSAGE"),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", 431, "CONTEXT_TOO_LARGE"),
    ],
)
def test_what_is_no_request_at_all_is_answered_alike(
    house: ServerProcess, sent: bytes, status: int, code: str
) -> None:
    with socket.create_connection(("127.0.0.1", house.port), PATIENCE) as opened:
        opened.sendall(sent)
        answer = http.client.HTTPResponse(opened)
        answer.begin()
        said = json.loads(answer.read())["error"]

    assert (answer.status, answer.getheader("content-type")) == (status, JSON)
    assert said["code"] == code
    assert said["message"]


async def test_a_mistake_of_ours_is_told_without_its_inside() -> None:
    async def broken(request: Request) -> Response:
        raise ValueError(f"of {request.url.path}")

    app = Starlette(routes=[Route(admin.ADMIN_ROOT, broken)], exception_handlers=EXCEPTION_HANDLERS)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://accord") as client:
        answer = await client.get(admin.ADMIN_ROOT)

    assert answer.status_code == 500
    assert problem(answer)["code"] == "INTERNAL_ERROR"
    assert "ValueError" not in answer.text
