"""Arguments of thread methods: answered or refused, never with another workspace's words."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from accord.core.dialects.msg import error_envelope
from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.threads import thread_access
from accord.identity.token_signing import Keyring
from accord.transports.http.auth import Caller
from accord.transports.msg import service
from accord.transports.msg.endpoints import decode_arguments
from accord.transports.msg.method_table import METHODS, call_method
from tests.fuzz.support.coverage_labels import mark_reached
from tests.fuzz.targets import FuzzInput
from tests.helpers.threads.local_service import LocalService
from tests.helpers.threads.thread_rules import WORKER, agent

HIDDEN = "plugh-xyzzy"
# Inputs name threads by these words, because their ids differ in every run.
OWN_THREAD, FOREIGN_THREAD = b"th_OWN", b"th_FOREIGN"
REF = "0199a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"
UNEXPECTED = frozenset({Reason.INTERNAL, Reason.UNAVAILABLE, Reason.DAMAGED})


def seeds() -> Iterator[bytes]:
    """Each method with plausible arguments, about an own and a foreign thread."""
    for thread in (OWN_THREAD, FOREIGN_THREAD, b"ses_x"):
        about = {"thread_id": thread.decode()}
        calls = {
            "get_thread": about,
            "read_messages": about | {"since_seq": 0, "limit": 5},
            "ack_read": about | {"last_read_seq": 1},
            "summarize_thread": about | {"max_messages": 3},
            "update_thread_status": about | {"status": "blocked", "reason": "x"},
            "add_participants": about | {"participants": ["new"], "idempotency_key": "k"},
            "post_message": about
            | {"schema_version": 1, "body": "hi", "kind": "event", "idempotency_key": "k"}
            | {"metadata": {"event_type": "fix_pushed", "to": ["worker"]}},
            "trigger_participant": about
            | {"target_agent_id": "worker", "reason": "x", "trigger_prompt": "go", "force": False}
            | {"idempotency_key": "k"},
        }
        for name, arguments in calls.items():
            yield name.encode() + b"\n" + msgspec.json.encode(arguments)
    yield b'create_thread\n{"title":"T","participants":["a","a"],"type":"incident"}'
    place = {"runtime_ref": REF, "machine": "m", "directory": "/w"}
    beat = {"runtime": "codex_cli", "status": "idle", "resumable": True, **place}
    others = {
        "heartbeat_session": beat,
        "take_wakes": beat | {"working": False, "line_empty": True, "wait_seconds": 0},
        "list_agents": {"target_agent_id": "worker"},
        "pause_agent": {"target_agent_id": "worker", "paused": True},
    }
    for name, arguments in others.items():
        yield name.encode() + b"\n" + msgspec.json.encode(arguments)
    yield b'list_threads\n{"unread_only":true,"limit":1,"status":"active"}'


def make_runner(place: Path) -> FuzzInput:
    """A new service for each input."""
    keyring = Keyring.open(place / "keys")

    async def ask(data: bytes) -> None:
        local = LocalService(keyring)
        name, _, body = data.partition(b"\n")
        for actor, word, title in (
            (WORKER, OWN_THREAD, "own"),
            (agent("stranger", workspace="elsewhere"), FOREIGN_THREAD, HIDDEN),
        ):
            thread = await own_thread(local, actor, title)
            body = body.replace(word, thread.encode())
        answer = await answer_to(local, name.decode("latin-1"), body)
        assert HIDDEN.encode() not in answer, answer

    return lambda data: asyncio.run(ask(data))


async def own_thread(local: LocalService, actor: Actor, title: str) -> str:
    """A thread with a message, both of this actor alone."""
    wanted = {"title": title, "participants": [actor.principal]}
    made = await local.call(actor, "create_thread", **wanted)
    await local.post(actor, made.thread_id, title)
    id: str = made.thread_id
    return id


async def answer_to(local: LocalService, name: str, body: bytes) -> bytes:
    """The answer as it would be sent."""
    if name not in METHODS:
        return b""
    try:
        arguments = decode_arguments(name, body)
        result = await call_method(local.service, Caller(WORKER), name, arguments)
    except Refused as refusal:
        if refusal.reason in UNEXPECTED:
            raise
        mark_reached(refusal.reason.encode())
        return msgspec.json.encode(error_envelope(refusal, "req_1"))
    mark_reached(name.encode())
    return msgspec.json.encode(result)


def plant_defect(patch: pytest.MonkeyPatch) -> None:
    """Everybody may read every thread."""
    patch.setattr(thread_access, "ensure_access", lambda *_: None)
    patch.setattr(service, "ensure_access", lambda *_: None)
