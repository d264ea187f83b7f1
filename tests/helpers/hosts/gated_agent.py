"""An agent whose calls are gated: a record, real hook processes, and people who decide."""

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from accord.api.people import AgentEnrolment, SignedIn
from accord.api.responses import SessionDetail
from accord.client import Client, default_config
from accord.client.envelope import Envelope
from accord.client.http_client import HttpClient
from accord.client.identity import parse_address
from accord.core.kernel.messages import Body
from accord.core.kernel.role_permissions import Role
from accord.core.room.approval.votes import GateApprove, GateReject
from accord.core.room.forking.fork_state import MergeStrategy
from accord.core.room.forking.merges import MergeExecute, MergePropose
from accord.daemon.takeover import LOCK_FILE
from accord.hosts.connections import (
    Connection,
    connections_dir,
    hook_command,
    new_connection_id,
    save_connection,
)
from accord.hosts.gate_hook import SOCKET_FILE
from accord.hosts.hook_events import HOOK_EVENTS, HookEvent
from accord.settings.profile_store import new_device_key
from tests.helpers.servers.server_process import ServerProcess

ACCORD = (sys.executable, "-m", "accord")
WAIT_S = 30.0
PERSON, OTHER_PERSON = "ann", "bob"
PERSON_ROLES = ("admin", "driver", "approver")


class HookAnswer(NamedTuple):
    """What a hook process left behind."""

    code: int
    output: str
    errors: str

    @property
    def json(self) -> dict[str, Any]:
        """The answer, empty if the hook said nothing."""
        content: dict[str, Any] = json.loads(self.output) if self.output else {}
        return content

    @property
    def decision(self) -> str:
        """`allow`, `deny`, or empty."""
        inner = self.json.get("hookSpecificOutput", self.json)
        found: str = (
            inner.get("permissionDecision") or inner.get("decision") or inner.get("permission", "")
        )
        return found

    @property
    def reason(self) -> str:
        """What the model is told."""
        inner = self.json.get("hookSpecificOutput", self.json)
        found: str = (
            inner.get("permissionDecisionReason")
            or inner.get("reason")
            or inner.get("agent_message", "")
        )
        return found


class People:
    """Ann and Bob, who decide in a session; each call is a request of its own."""

    def __init__(self, server: ServerProcess, **config: Any) -> None:
        self.server = server
        self.tokens = {
            id: server.issue_token(id, "human", PERSON_ROLES) for id in (PERSON, OTHER_PERSON)
        }
        self.session = asyncio.run(self._open(config))

    async def _open(self, config: dict[str, Any]) -> str:
        async with self.client(PERSON) as ann, self.client(OTHER_PERSON) as bob:
            session = await ann.create(default_config(**config), listen=False)
            await bob.join(session.id, listen=False)
            return session.id

    def client(self, id: str = PERSON) -> Client:
        """A client of one of them."""
        return Client(self.server.url, token=self.tokens[id])

    def send(self, body: Body, ref: str | None = None, id: str = PERSON) -> str:
        """Send a message to the session."""
        return asyncio.run(self.client(id).post(self.session, body, ref)).id

    @property
    def state(self) -> SessionDetail:
        """The session as it is now."""
        return asyncio.run(self.client().session(self.session))

    def history(self, kind: str = "") -> list[Envelope]:
        """The messages of a type, oldest first."""

        async def read() -> list[Envelope]:
            return [each async for each in self.client().history(self.session)]

        return [each for each in asyncio.run(read()) if kind in ("", each.type)]

    def approve(self, gate: str = "", id: str = PERSON) -> None:
        """Approve a gate, or the only open one."""
        gate = gate or self.only_gate
        self.send(GateApprove(gate=gate, approver=id), gate, id)

    def reject(self, reason: str, gate: str = "", id: str = PERSON) -> None:
        """Reject a gate, or the only open one."""
        gate = gate or self.only_gate
        self.send(GateReject(gate=gate, rejector=id, reason=reason), gate, id)

    def fork(self, name: str, *members: str) -> str:
        """Ann forks with these members; returns the fork's id."""

        async def create() -> str:
            async with self.client() as ann:
                session = await ann.join(self.session, listen=False)
                return await session.fork(name, members)

        return asyncio.run(create())

    def merge(self, fork: str) -> None:
        """Ann merges a fork."""
        proposal = self.send(MergePropose(fork, "main", MergeStrategy.APPEND, "It works"))
        self.send(MergeExecute(proposal), proposal)

    @property
    def only_gate(self) -> str:
        """The id of the one open gate."""
        (gate,) = self.state.gates
        return gate.id

    def enrol(self, agent: str) -> tuple[SignedIn, str]:
        """Give an agent a device of its own; returns its identity and the private key."""
        private, public = new_device_key()
        request = AgentEnrolment(id=agent, roles=frozenset({Role.DRIVER}), public_key=public)
        http = HttpClient(parse_address(self.server.url), self.tokens[PERSON])
        body = msgspec.json.encode(request)
        signed_in = asyncio.run(
            http.read(SignedIn, ("sign-in", "agents"), method="POST", body=body)
        )
        return signed_in, private


class GatedAgent:
    """One agent of one host in a repository, with a configuration directory below `home`."""

    def __init__(
        self, people: People, home: Path, host: str, root: Path, agent: str = "", **fields: Any
    ) -> None:
        self.people, self.home, self.host, self.root = people, home, host, root
        self.env = {"HOME": str(home), "PATH": os.environ["PATH"]}
        agent = agent or f"{PERSON}-{host}-{secrets.token_hex(3)}"
        signed_in, key = people.enrol(agent)
        self.connection = Connection(
            **{
                "id": new_connection_id(host),
                "host": host,
                "root": str(root),
                "url": people.server.url,
                "server": signed_in.server,
                "session": people.session,
                "agent": agent,
                "device": signed_in.device,
                "key": key,
                "created_at": int(time.time()),
                "person": PERSON,
                **fields,
            }
        )
        self.record = save_connection(self.env, self.connection)

    def connect_again(self, **fields: Any) -> None:
        """Change the record, as `accord connect` does."""
        self.connection = replace(self.connection, **fields)
        save_connection(self.env, self.connection)

    @property
    def config(self) -> Path:
        """The configuration directory."""
        return connections_dir(self.env).parent

    def event(self, name: str) -> HookEvent:
        """The host's event of ours with this name."""
        return next(each for each in HOOK_EVENTS[self.host] if each.event == name)

    def command(self, event: str) -> str:
        """The command line that the host is configured with."""
        return hook_command(self.record, self.host, self.event(event))

    def start_hook(
        self, event: str, payload: dict[str, Any], **env: str
    ) -> "subprocess.Popen[str]":
        """Start a hook as the host does: in a shell, with the payload as its input."""
        process = subprocess.Popen(
            ["/bin/sh", "-c", self.command(event)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**self.env, **env},
            cwd=self.root,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(payload))
        process.stdin.close()
        process.stdin = None
        return process

    def hook(self, event: str, payload: dict[str, Any], **env: str) -> HookAnswer:
        """Run a hook to its end."""
        process = self.start_hook(event, payload, **env)
        output, errors = process.communicate(timeout=WAIT_S * 2)
        return HookAnswer(process.returncode, output, errors)

    def shell_payload(self, command: str, **more: Any) -> dict[str, Any]:
        """A shell call of the host."""
        tool = {"gemini": "run_shell_command", "cursor": "Shell"}.get(self.host, "Bash")
        return {
            "session_id": "11111111-0000-4000-8000-000000000001",
            "cwd": str(self.root),
            "tool_name": tool,
            "tool_input": {"command": command},
            "tool_use_id": f"use-{secrets.token_hex(4)}",
            **more,
        }

    def ask(self, command: str, **more: Any) -> HookAnswer:
        """The answer before a shell command."""
        return self.hook("pre-tool", self.shell_payload(command, **more))

    # The daemon

    @property
    def daemon_pid(self) -> int | None:
        """The process that holds the daemon's lock."""
        status = subprocess.run(
            [*ACCORD, "daemon", "status", "--json"],
            env=self.env,
            capture_output=True,
            text=True,
            check=True,
        )
        found: int | None = json.loads(status.stdout).get("pid")
        return found

    @property
    def daemon_log(self) -> str:
        """What daemons of this user wrote."""
        file = self.config / "daemon.log"
        return file.read_text("utf-8") if file.exists() else ""

    def kill_daemon(self) -> None:
        """Kill it, as a crash would; its socket and lock file stay."""
        pid = self.daemon_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not Path(f"/proc/{pid}").exists() or is_zombie(pid))
        assert (self.config / SOCKET_FILE).exists()
        assert (self.config / LOCK_FILE).exists()

    @staticmethod
    def stop_daemon_of(home: Path) -> None:
        """Stop the daemon of this home with the command."""
        env = {"HOME": str(home), "PATH": os.environ["PATH"]}
        subprocess.run([*ACCORD, "daemon", "stop"], env=env, check=True, capture_output=True)


def is_zombie(pid: int) -> bool:
    """Whether the process has ended and is only listed."""
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text("utf-8")
    except OSError:
        return True


def wait_until(is_done: Callable[[], object], timeout_s: float = WAIT_S) -> None:
    """Wait for a condition of another process."""
    deadline = time.monotonic() + timeout_s
    while not is_done():
        assert time.monotonic() < deadline, "the condition was not met in time"
        time.sleep(0.02)
