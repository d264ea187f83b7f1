"""The OpenAPI document describes exactly what the server does.

By default every machine sends the same requests; `ACCORD_LONG=1` also hunts by time.
"""

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import pytest

from accord.server.app import Server
from accord.server.options import ServerOptions
from accord.stores.memory import MemoryLog
from accord.transports.http import routing_table
from accord.transports.http.api_docs import openapi
from tests.helpers.clients.http_client import HttpClient
from tests.helpers.seeds import LONG
from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.helpers.threads.method_client import MethodClient

# The coverage phase sends each operation's fields at and beyond their limits: the same each time.
COVERAGE = ("--phases", "coverage", "--generation-deterministic")
# A stream that goes on has no end to check; the others would end this token.
LEFT_OUT = ("events", "home_events", "rotate_key", "revoke_token")
# Three quarters of all cases are invalid messages, which the fuzz targets send too.
MESSAGES = "post"


def options(flag: str, *values: str) -> list[str]:
    return [word for value in values for word in (flag, value)]


EXCLUDED = options("--exclude-operation-id", *LEFT_OUT)
RUNS = {
    "all_but_messages": [*COVERAGE, *EXCLUDED, *options("--exclude-operation-id", MESSAGES)],
    "valid_messages": [*COVERAGE, "--include-operation-id", MESSAGES, "--mode", "positive"],
}
LONG_RUNS = {
    "hunt": [
        *("--phases", "coverage,fuzzing", "--max-examples", "1000", "--max-time", "120"),
        *("--seed", "1", *EXCLUDED),
    ],
}
# A body over its limit is refused before it is decoded.
REFUSING = """
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429, "5xx"]
"""
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
)
WHOLE = json.loads(openapi.document("1"))
NOTE = {"key": "plan", "content_type": "text", "content": "First this", "tags": ["x"]}
PROPOSAL = {
    "tool_name": "bash",
    "arguments": {"argv": ["ls"]},
    "agent": "claude",
    "risk_level": "high",
    "description": "Look",
    "requires_approval": True,
    "category": "shell_execute",
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


@pytest.fixture(scope="module")
def session(house: ServerProcess) -> str:
    """A session with something of everything in it."""
    return asyncio.run(a_busy_session(house))


async def a_busy_session(house: ServerProcess) -> str:
    alice = HttpClient.with_token(house, "alice", roles=["admin", "driver", "approver"])
    claude = HttpClient.with_token(house, "claude", kind="agent", roles=["driver"])
    session = await alice.create(require_approval_for=["shell_execute"], allow_forks=True)
    await claude.join(session, kind="agent")
    told = await alice.send("context.add", session, NOTE)
    await claude.send("tool.propose", session, PROPOSAL)
    fork = {"name": "Try", "from_point": told["id"], "participants": ["alice", "claude"]}
    await alice.send("fork.create", session, fork | {"reason": "To see", "copy_context": True})
    await alice.close()
    await claude.close()
    return session


def schema_of(method: str, path: str, status: str = "200") -> jsonschema_rs.Draft202012Validator:
    """What an answer must look like."""
    content = WHOLE["paths"][path][method]["responses"][status]["content"]
    return jsonschema_rs.Draft202012Validator(
        {**content["application/json"]["schema"], "components": WHOLE["components"]}
    )


def test_every_route_is_described_and_every_description_has_a_route(tmp_path: Path) -> None:
    app: Any = Server(ServerOptions(home=tmp_path), MemoryLog()).asgi_app()
    while not hasattr(app, "routes"):
        app = app.app  # behind what guards and counts
    served = {(route.path, method) for route in app.routes for method in route.methods}
    told = {
        (path, method.upper()) for path, methods in WHOLE["paths"].items() for method in methods
    }
    assert {each for each in served if each[1] != "HEAD"} == told


def test_every_json_answer_has_a_shape_and_every_shape_an_answer() -> None:
    rows = [row for row in routing_table.ALL_ENDPOINTS if "json" in row.responses.values()]
    assert {(row.method, row.path) for row in rows} == set(openapi.RESPONSE_TYPES)


@pytest.mark.parametrize(
    "path",
    [
        "/home",
        "/sessions",
        "/sessions/{id}",
        "/sessions/{id}/context",
        "/sessions/{id}/transcript",
        "/sessions/{id}/messages",
    ],
)
def test_answers_have_exactly_the_shape_they_are_said_to_have(
    house: ServerProcess, session: str, path: str
) -> None:
    headers = {"authorization": f"Bearer {house.issue_token('alice', roles=['admin'])}"}
    query = {"key": "plan"} if path.endswith("/context") else {}
    url = house.url + path.replace("{id}", session)
    answer = httpx.get(url, headers=headers, params=query).json()
    validator = schema_of("get", path)
    validator.validate(answer)
    for name in answer:
        assert not validator.is_valid({key: answer[key] for key in answer if key != name}), name
    assert not validator.is_valid({**answer, "more": 1})


def test_answers_of_thread_methods_have_exactly_the_shape_they_are_said_to_have(
    house: ServerProcess,
) -> None:
    with MethodClient.of(house, "threader") as agent:
        thread = agent.thread("threader", "other")
        agent.event(thread, "finding_reported", metadata={"severity": "high", "task_id": "T"})
        calls: dict[str, dict[str, Any]] = {
            "create_thread": {"title": "T", "participants": ["a"]},
            "get_thread": {},
            "post_message": {"schema_version": 1, "body": "x", "idempotency_key": "k"},
            "read_messages": {},
            "ack_read": {"last_read_seq": 1},
            "update_thread_status": {"status": "blocked"},
            "summarize_thread": {},
            "list_threads": {},
            "add_participants": {"participants": ["more"]},
        }
        for name, arguments in calls.items():
            answer = agent.ok(name, **{"thread_id": thread, **arguments})
            validator = schema_of("post", f"/v1/{name}")
            validator.validate(answer)
            for field in answer:
                less = {key: answer[key] for key in answer if key != field}
                assert not validator.is_valid(less), (name, field)
            assert not validator.is_valid({**answer, "more": 1})
        refused = agent.call("get_thread", thread_id="th_no").json()
        errors = schema_of("post", "/v1/get_thread", "default")
        errors.validate(refused)
        assert not errors.is_valid({"error": {"code": "X", "message": "x"}})


def test_a_busy_session_has_something_of_everything(house: ServerProcess, session: str) -> None:
    headers = {"authorization": f"Bearer {house.issue_token('alice', roles=['admin'])}"}
    detail = httpx.get(f"{house.url}/sessions/{session}", headers=headers).json()
    assert all(detail[name] for name in ("members", "gates", "tools", "forks", "context", "config"))


def test_a_role_named_twice_is_accepted_as_described(house: ServerProcess) -> None:
    headers = {"authorization": f"Bearer {house.issue_token('alice', roles=['admin'])}"}
    invitation = {"roles": ["driver", "driver"], "workspace": "default"}

    shape = {"$ref": "#/components/schemas/InvitationRequest", "components": WHOLE["components"]}
    jsonschema_rs.Draft202012Validator(shape).validate(invitation)
    answer = httpx.post(f"{house.url}/admin/invitations", headers=headers, json=invitation)

    assert answer.status_code == 201
    assert answer.json()["roles"] == ["driver"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("run", LONG_RUNS if LONG else RUNS)
def test_random_requests_get_only_what_is_described(tmp_path: Path, run: str) -> None:
    """On a server of its own: what is sent may remove people and their tokens."""
    with run_server(tmp_path / "server") as house:
        asyncio.run(a_busy_session(house))
        send_requests(house, tmp_path, (RUNS | LONG_RUNS)[run])


def send_requests(house: ServerProcess, directory: Path, chosen: list[str]) -> None:
    token = house.issue_token("alice", roles=["admin", "driver", "approver"])
    words = [
        *(sys.executable, "-m", "schemathesis.cli", "run"),
        *(f"{house.url}/openapi.json", "--header", f"Authorization: Bearer {token}"),
        *("--checks", ",".join(CHECKS), *chosen),
        *("--request-timeout", "70", "--no-color", "--suppress-health-check", "all"),
    ]
    (directory / "schemathesis.toml").write_text(REFUSING)
    ran = subprocess.run(words, cwd=directory, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Test cases:" in ran.stdout


def test_default_requests_are_bounded_by_number_not_by_time() -> None:
    for words in RUNS.values():
        assert "--max-time" not in words
        assert "--generation-deterministic" in words
