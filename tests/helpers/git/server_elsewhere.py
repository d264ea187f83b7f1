"""A session on a server elsewhere, and a repository in a home that has no bridge."""

from pathlib import Path
from typing import Any

import httpx

from tests.helpers.attacks.approval_scene import PROPOSAL
from tests.helpers.clients.cli import CommandRun
from tests.helpers.clients.http_client import envelope, join_payload, tls_verification
from tests.helpers.clients.websocket_client import SESSION_CONFIG
from tests.helpers.git.hook_timeout import extend_hook_timeout
from tests.helpers.git.work_tree import WorkTree
from tests.helpers.servers.server_process import ServerProcess

REQUEST_TIMEOUT_S = 60


class ServerElsewhere:
    """Alice's session with an agent; what is said goes to the server directly."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.token = server.issue_token("alice", roles=["admin", "driver"])
        self.session = ""
        created = self.send(
            self.token, "alice", "session.create", {"config": SESSION_CONFIG}, "new"
        )
        self.session = created["session"]
        self.bot = server.issue_token("bot", "agent")
        self.send(self.bot, "bot", "session.join", join_payload("bot", "agent"))

    @property
    def environment(self) -> dict[str, str]:
        """Address and token."""
        return {"ACCORD_URL": self.server.url, "ACCORD_TOKEN": self.token}

    def send(
        self, token: str, who: str, type: str, payload: Any, session: str = ""
    ) -> dict[str, Any]:
        """Send one message, which must be accepted."""
        session = session or self.session
        with httpx.Client(
            base_url=self.server.url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=REQUEST_TIMEOUT_S,
            trust_env=False,
            verify=tls_verification(self.server.url),
        ) as http:
            message = envelope(type, session, who, payload)
            response = http.post(f"/sessions/{session}/messages", json=message)
        assert response.status_code == 200, response.text
        receipt: dict[str, Any] = response.json()
        return receipt

    def prompt(self, text: str) -> None:
        """Alice asks the agent for something."""
        payload = {"content": text, "target_agent": "bot", "contributors": [], "context_keys": []}
        self.send(self.token, "alice", "prompt.submit", payload)

    def edit(self, path: str, old: str, new: str) -> None:
        """The agent edits a file, as Alice approves."""
        arguments = {"path": path, "old_string": old, "new_string": new}
        call = {"tool_name": "edit_file", "arguments": arguments, "category": "file_write"}
        proposal = self.send(self.bot, "bot", "tool.propose", PROPOSAL | call)["id"]
        vote = {"tool_proposal": proposal, "approver": "alice"}
        self.send(self.token, "alice", "tool.approve", vote)
        result = {"tool_proposal": proposal, "success": True, "duration_ms": 5}
        self.send(self.bot, "bot", "tool.result", result)

    def bind(self, work: WorkTree) -> CommandRun:
        """Bind the session to a repository, and let its hooks wait on a busy machine."""
        ran = work.accord("git", "bind", self.session)
        assert ran.code == 0, ran.err
        extend_hook_timeout(work.path / ".git" / "hooks")
        return ran


def sign_in(work: WorkTree, server: ServerProcess, id: str = "alice") -> None:
    """Make a profile with `accord login`."""
    request = {"id": id, "roles": ["admin", "driver"]}
    code = server.admin_request("POST", "/admin/invitations", request)["code"]
    ran = work.accord("login", f"{server.url}#code={code}")
    assert ran.code == 0, ran.err


def profiles_file(work: WorkTree) -> Path:
    """Where the profiles of the person are."""
    return work.home / ".config" / "accord" / "profiles.toml"
