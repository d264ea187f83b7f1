"""A retry with the same key gets the first answer as it was, whatever has happened since."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from tests.helpers.clients.http_client import HttpClient
from tests.helpers.servers.server_process import ServerProcess
from tests.helpers.threads.method_client import MethodClient
from tests.spec import proves


class Cast(NamedTuple):
    """Who takes part."""

    lead: MethodClient
    worker: MethodClient
    other: MethodClient


@pytest.fixture
def cast(signed: ServerProcess) -> Iterator[Cast]:
    with ExitStack() as clients:
        lead = MethodClient.of(signed, "lead", role="orchestrator")
        others = [MethodClient.of(signed, id) for id in ("worker", "other")]
        yield Cast(*map(clients.enter_context, (lead, *others)))


@proves("MSG-7-1", "OPEN-117")
def test_retry_of_a_post_is_told_the_status_of_its_time(cast: Cast) -> None:
    lead, thread = cast.lead, cast.lead.thread("worker")
    active = lead.post(thread, "x", idempotency_key="k1")
    lead.ok("update_thread_status", thread_id=thread, status="blocked")
    blocked = lead.post(thread, "y", idempotency_key="k2")
    assert (active["thread_status"], blocked["thread_status"]) == ("active", "blocked")

    lead.ok("update_thread_status", thread_id=thread, status="resolved")

    assert lead.post(thread, "x", idempotency_key="k1") == active
    assert lead.post(thread, "y", idempotency_key="k2") == blocked


@proves("MSG-7-1", "OPEN-117", "UNI-6")
async def test_retry_of_a_post_in_a_session_is_told_the_status_of_its_time(
    signed: ServerProcess,
) -> None:
    roles = ["admin", "driver"]
    token = signed.issue_token("alice", roles=roles)
    alice, posts = HttpClient(signed.url, "alice", token), MethodClient(signed.url, "", token, {})
    session = await alice.create()
    await alice.join(session, roles=roles)
    active = posts.post(session, "x", idempotency_key="k1")
    gate = {
        "action_type": "prompt",
        "action_ref": active["message_id"],
        "message": "ok?",
        "timeout_seconds": 60,
        "quorum": {"type": "any", "count": 1},
    }
    asked = await alice.send("gate.request", session, gate)
    blocked = posts.post(session, "y", idempotency_key="k2")
    assert (active["thread_status"], blocked["thread_status"]) == ("active", "blocked")
    assert posts.post(session, "x", idempotency_key="k1") == active

    rejected = {"gate": asked["id"], "rejector": "alice", "reason": "no"}
    await alice.send("gate.reject", session, rejected)

    assert posts.post(session, "y", idempotency_key="k2") == blocked
    await alice.close()
    posts.http.close()


@proves("OPEN-117")
def test_retry_of_a_trigger_gets_the_first_answer_after_a_restart_too(
    cast: Cast, signed: ServerProcess
) -> None:
    lead, thread = cast.lead, cast.lead.thread("worker", "other")
    call = {"thread_id": thread, "target_agent_id": "worker", "idempotency_key": "k"}
    first = lead.ok("trigger_participant", **call)
    assert (first["result"], first["why"]) == ("skipped", "nothing_unread")

    lead.post(thread, "now there is something to read")

    assert lead.ok("trigger_participant", **call) == first
    # Without the key it is another request: nothing can wake this agent.
    plain = {"thread_id": thread, "target_agent_id": "worker"}
    assert lead.refused("trigger_participant", **plain) == (409, "UNMANAGED_RUNTIME")
    conflict = (409, "IDEMPOTENCY_CONFLICT")
    for other in ({"reason": "urgent"}, {"trigger_prompt": "go"}, {"target_agent_id": "other"}):
        assert lead.refused("trigger_participant", **{**call, **other}) == conflict, other
    signed.restart()
    assert lead.ok("trigger_participant", **call) == first
