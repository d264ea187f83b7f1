"""`accord mcp`: MCP on standard input and output."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.clients.mcp_requests import modern_meta, rpc
from tests.helpers.servers.server_process import ServerProcess
from tests.helpers.threads.method_client import MethodClient

WORDS = [sys.executable, "-m", "accord", "mcp"]
TIMEOUT_S = 60
INITIALIZE = rpc(
    "initialize",
    {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "gemini-cli-mcp-client", "version": "0.61.0"},
    },
    0,
)
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    """Without anybody's profile."""
    known = {key: value for key, value in os.environ.items() if not key.startswith("ACCORD_")}
    return {**known, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), **more}


def answers(env: dict[str, str], *messages: Any) -> tuple[list[Any], str]:
    """What the bridge answers to these lines, and what it says on standard error."""
    lines = b"".join(
        (each if isinstance(each, bytes) else json.dumps(each).encode()) + b"\n"
        for each in messages
    )
    ran = subprocess.run(
        WORDS, input=lines, env=env, capture_output=True, timeout=TIMEOUT_S, check=True
    )
    return [json.loads(line) for line in ran.stdout.splitlines()], ran.stderr.decode()


class Host:
    """A host that started the bridge and keeps it running."""

    def __init__(self, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            WORDS, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def ask(self, message: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return self.read() if "id" in message else None

    def read(self) -> Any:
        """The next line, whatever it is about."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def close(self) -> int:
        self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode


def listing(id: int = 1) -> dict[str, Any]:
    return rpc("tools/list", {"_meta": modern_meta()}, id)


def call(name: str, arguments: Any, id: int = 1, **params: Any) -> dict[str, Any]:
    return rpc("tools/call", {"name": name, "arguments": arguments, **params}, id)


@pytest.mark.parametrize("older", [False, True])
def test_bridge_survives_a_restart_of_the_server(
    server: ServerProcess, tmp_path: Path, older: bool
) -> None:
    token = server.issue_token("claude", "agent")
    host = Host(environment(tmp_path, ACCORD_URL=server.url, ACCORD_TOKEN=token))
    meta: dict[str, Any] = {} if older else {"_meta": modern_meta()}
    if older:
        assert host.ask(INITIALIZE)["result"]["protocolVersion"] == "2025-06-18"
        host.ask(INITIALIZED)
    made = host.ask(call("create_thread", {"title": "t", "participants": ["claude"]}, **meta))
    thread = made["result"]["structuredContent"]["thread_id"]

    server.restart()

    read = host.ask(call("get_thread", {"thread_id": thread}, **meta))
    assert read["result"]["structuredContent"]["title"] == "t"
    assert host.close() == 0


def subscription(uri: str, *, older: bool) -> dict[str, Any]:
    if older:
        return rpc("resources/subscribe", {"uri": uri}, 8)
    wanted = {"notifications": {"resourceSubscriptions": [uri]}, "_meta": modern_meta()}
    return rpc("subscriptions/listen", wanted, 8)


@pytest.mark.parametrize("gracefully", [False, True])
@pytest.mark.parametrize("older", [False, True])
def test_subscription_survives_a_restart_of_the_server(
    server: ServerProcess, tmp_path: Path, older: bool, gracefully: bool
) -> None:
    token = server.issue_token("claude", "agent")
    host = Host(environment(tmp_path, ACCORD_URL=server.url, ACCORD_TOKEN=token))
    if older:
        host.ask(INITIALIZE)
        host.ask(INITIALIZED)
    with MethodClient.of(server, "codex") as codex:
        thread = codex.thread("claude", "codex")
        uri = f"accord://threads/{thread}"
        accepted = host.ask(subscription(uri, older=older))
        assert "error" not in accepted

        def heard() -> None:
            notice = host.read()
            assert notice["method"] == "notifications/resources/updated", notice
            assert notice["params"]["uri"] == uri

        codex.post(thread, "before")
        heard()
        if gracefully:
            server.stop()
        server.restart()
        heard()  # of what it may have missed, once it is subscribed again
        codex.post(thread, "after")
        heard()
    assert host.close() == 0


def test_bridge_uses_the_profile_of_the_login(server: ServerProcess, tmp_path: Path) -> None:
    wish = {"id": "bob", "roles": ["driver"]}
    code = server.admin_request("POST", "/admin/invitations", wish)["code"]
    env = environment(tmp_path)
    login = [sys.executable, "-m", "accord", "login", f"{server.url}#code={code}"]
    subprocess.run(login, env=env, check=True, capture_output=True, timeout=TIMEOUT_S)

    (answer,), _ = answers(env, call("whats_waiting", {}, _meta=modern_meta()))

    assert answer["result"]["structuredContent"]["counts"]["gates"] == 0


def test_bridge_says_clearly_that_there_is_no_server(tmp_path: Path) -> None:
    (answer,), said = answers(environment(tmp_path), listing())
    assert "accord login" in answer["error"]["message"]
    assert "accord login" in said

    env = environment(tmp_path, ACCORD_URL="http://127.0.0.1:9", ACCORD_TOKEN="x")
    (answer,), said = answers(env, listing())
    assert "no server answers at http://127.0.0.1:9" in answer["error"]["message"]
    assert "accord serve" in said


def test_bridge_sends_no_token_in_the_clear_to_another_machine(tmp_path: Path) -> None:
    env = environment(tmp_path, ACCORD_URL="http://192.0.2.1", ACCORD_TOKEN="x")

    (answer,), _ = answers(env, listing())

    assert "no server to forward to" in answer["error"]["message"]


def test_bridge_answers_what_it_cannot_forward(server: ServerProcess, tmp_path: Path) -> None:
    env = environment(tmp_path, ACCORD_URL=server.url, ACCORD_TOKEN="not a token")

    replies, _ = answers(env, b"not json", b"[]", b"", listing(7))

    assert [each["error"]["code"] for each in replies] == [-32700, -32600, -32000]
    assert replies[2]["id"] == 7
    assert "token" in replies[2]["error"]["message"]


def test_bridge_imports_little(server: ServerProcess, tmp_path: Path) -> None:
    token = server.issue_token("claude", "agent")
    env = environment(tmp_path, ACCORD_URL=server.url, ACCORD_TOKEN=token)
    program = (
        "import sys; from accord.cli.main import main; code = main(['mcp']);"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps(listing()).encode() + b"\n",
        env=env,
        capture_output=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    loaded = set(ran.stderr.decode().split())

    assert "tools" in json.loads(ran.stdout)["result"]
    assert not loaded & {"msgspec", "mcp", "asyncio", "http.client", "argparse", "ssl", "tomllib"}
