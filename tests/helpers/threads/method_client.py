"""Calling the MSG methods of a real server, one client for each agent.

with MethodClient.of(server, "worker", kind="agent") as worker:
    thread = worker.ok("create_thread", title="Review", participants=["worker"])["thread_id"]
    worker.post(thread, "hello")
"""

from types import TracebackType
from typing import Any, Self

import httpx

from tests.helpers.servers.server_process import ServerProcess

HTTP_TIMEOUT_S = 60.0


class MethodClient:
    """An agent or a person who calls `POST /v1/<method>`."""

    def __init__(self, url: str, id: str, token: str, claims: dict[str, Any]) -> None:
        self.id = id
        self.token = token
        self.claims = claims
        headers = {"Authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=url, headers=headers, timeout=HTTP_TIMEOUT_S)

    @classmethod
    def of(
        cls, server: ServerProcess, id: str, *, kind: str = "agent", **more: Any
    ) -> "MethodClient":
        """With a token of its own; `role` is the MSG role, `workspace` another workspace."""
        roles = more.pop("roles", ["driver"])
        wanted = {"id": id, "type": kind, "roles": roles, **more}
        issued = server.admin_request("POST", "/admin/tokens", wanted)
        return cls(server.url, id, issued["token"], issued["claims"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.http.close()

    def call(self, method: str, **arguments: Any) -> httpx.Response:
        """The answer, whatever it is."""
        return self.http.post(f"/v1/{method}", json=arguments)

    def ok(self, method: str, **arguments: Any) -> dict[str, Any]:
        """The result of a call that succeeds."""
        answer = self.call(method, **arguments)
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()
        return result

    def refused(self, method: str, **arguments: Any) -> tuple[int, str]:
        """Status and code of a call that is refused, in the envelope of MSG."""
        answer = self.call(method, **arguments)
        error = answer.json()["error"]
        assert error["request_id"] == answer.headers["x-request-id"]
        assert error["message"]
        return answer.status_code, error["code"]

    def thread(self, *participants: str, **more: Any) -> str:
        """A new thread."""
        wanted = {"title": "Review", "participants": list(participants), **more}
        id: str = self.ok("create_thread", **wanted)["thread_id"]
        return id

    def post(self, thread: str, body: str, **more: Any) -> dict[str, Any]:
        """A posted message."""
        return self.ok("post_message", thread_id=thread, schema_version=1, body=body, **more)

    def event(self, thread: str, event_type: str, **more: Any) -> dict[str, Any]:
        """A posted event; `metadata` adds to its type."""
        metadata = {"event_type": event_type, **more.pop("metadata", {})}
        return self.post(thread, f"about {event_type}", kind="event", metadata=metadata, **more)

    def read(self, thread: str, **more: Any) -> list[dict[str, Any]]:
        """One page of messages."""
        messages: list[dict[str, Any]] = self.ok("read_messages", thread_id=thread, **more)[
            "messages"
        ]
        return messages
