"""Sixteen agents post to one thread while the server is killed: each message is there exactly once.

The server is killed 15 times, and 100 times with `ACCORD_LONG=1`.
"""

import os
import threading
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.helpers.servers.server_process import ServerProcess, run_server
from tests.helpers.threads.method_client import MethodClient
from tests.spec import proves

LONG = bool(os.environ.get("ACCORD_LONG"))
KILLS = 100 if LONG else 15
WRITERS = 16
# The shortest life of a server, so that it is killed in the middle of posts.
LIFE_S = 0.15
RETRY_S = 0.02
# Longer than all kills together on a slow machine, because a writer may meet each of them.
PATIENCE_S = 3000.0 if LONG else 500.0


class Writer(threading.Thread):
    """Posts one message after another and repeats each until it is acknowledged."""

    def __init__(self, server: ServerProcess, thread_id: str, client: MethodClient) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.thread_id = thread_id
        self.client = client
        self.stopping = threading.Event()
        self.acknowledged: dict[str, tuple[str, int]] = {}
        self.failure = ""

    def run(self) -> None:
        number = 0
        while not self.stopping.is_set() and not self.failure:
            number += 1
            self._post(f"{self.client.id} {number}")

    def _post(self, text: str) -> None:
        arguments = {"thread_id": self.thread_id, "schema_version": 1, "body": text}
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            with suppress(httpx.TransportError):
                answer = self.client.call("post_message", **arguments, idempotency_key=text)
                if answer.status_code == 200:
                    result = answer.json()
                    self.acknowledged[text] = (result["message_id"], result["seq"])
                    return
                if answer.status_code != 503:
                    self.failure = answer.text
                    return
            time.sleep(RETRY_S)
        self.failure = f"{text} was not answered in {PATIENCE_S} s"


@pytest.mark.timeout(3600 if LONG else 600)
@proves("MSG-7-1", "OPEN-132")
def test_every_acknowledged_message_is_there_once_after_every_kill(tmp_path: Path) -> None:
    with run_server(tmp_path / "killed") as server:
        clients = [MethodClient.of(server, f"writer-{number}") for number in range(WRITERS)]
        thread = clients[0].thread(*(client.id for client in clients))
        writers = [Writer(server, thread, client) for client in clients]
        for writer in writers:
            writer.start()
        for _ in range(KILLS):
            time.sleep(LIFE_S)  # the server works meanwhile
            server.kill()
            server.start()
        for writer in writers:
            writer.stopping.set()
        for writer in writers:
            writer.join(PATIENCE_S)
        assert not any(writer.failure for writer in writers), [w.failure for w in writers]
        check(clients[0], thread, writers)
        for client in clients:
            client.http.close()


def check(reader: MethodClient, thread: str, writers: list[Writer]) -> None:
    """The thread has what was acknowledged, at the place that was told, and nothing else."""
    items, since = [], 0
    while page := reader.read(thread, since_seq=since, limit=200):
        items += page
        since = page[-1]["seq"]
    assert [item["seq"] for item in items] == list(range(1, len(items) + 1))
    stored = {item["body"]: (item["message_id"], item["seq"]) for item in items}
    assert len(stored) == len(items)
    acknowledged = {text: at for writer in writers for text, at in writer.acknowledged.items()}
    assert acknowledged == stored
    for writer in writers:
        own = [item["body"] for item in items if item["sender_agent_id"] == writer.client.id]
        assert own == list(writer.acknowledged), "in the order of posting"
