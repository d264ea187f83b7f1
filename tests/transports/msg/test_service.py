"""What the thread service keeps over time: keys, quotas, marks and the index of threads."""

from pathlib import Path

import pytest

from accord.api.threads import GetThread
from accord.core.kernel.actor import Actor
from accord.core.kernel.limits import Limits
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.room.threads.state import stream_of
from accord.engine.ports import Snapshot
from accord.engine.streams import stream_cache
from accord.identity.token_signing import Keyring
from accord.transports.http.auth import Caller
from accord.transports.msg import delivery_marks
from accord.transports.msg import post_quota as quotas
from accord.transports.msg import thread_index as indexes
from accord.transports.msg.method_table import call_method
from tests.helpers.engine.harness import RecordingPeer
from tests.helpers.threads.local_service import LocalService
from tests.helpers.threads.thread_rules import ORCHESTRATOR, OTHER, REVIEWER, WORKER, agent
from tests.spec import proves

DAY_MS = 86_400_000


@pytest.fixture
def keyring(tmp_path: Path) -> Keyring:
    return Keyring.open(tmp_path / "keys")


@pytest.fixture
async def local(keyring: Keyring) -> LocalService:
    return LocalService(keyring)


async def new_thread(local: LocalService, *names: str, **more: str) -> str:
    wanted = list(names or ("worker", "other"))
    made = await local.call(WORKER, "create_thread", title="T", participants=wanted, **more)
    id: str = made.thread_id
    return id


@proves("MSG-7-3", "OPEN-117", "UNI-23")
async def test_a_key_is_new_again_after_its_window(local: LocalService) -> None:
    thread = await new_thread(local, idempotency_key="t")
    first = await local.post(WORKER, thread, "x", idempotency_key="k")
    local.clock.at += DAY_MS - 1
    local.start()
    assert await local.post(WORKER, thread, "x", idempotency_key="k") == first
    assert await new_thread(local, idempotency_key="t") == thread
    local.clock.at += 1
    second = await local.post(WORKER, thread, "other text", idempotency_key="k")
    assert (first.seq, second.seq) == (1, 2)
    assert await local.post(WORKER, thread, "other text", idempotency_key="k") == second
    with pytest.raises(Refused) as refused:
        await local.post(WORKER, thread, "x", idempotency_key="k")
    assert refused.value.reason is Reason.KEY_REUSED
    assert await new_thread(local, idempotency_key="t") != thread


@proves("MSG-6-7", "OPEN-132")
async def test_the_quota_refills_and_is_not_used_by_retries(keyring: Keyring) -> None:
    local = LocalService(keyring, rate=1000.0, limits=Limits(thread_posts=2))
    thread = await new_thread(local)
    first = await local.post(WORKER, thread, "x", idempotency_key="k")
    for _ in range(3):
        assert await local.post(WORKER, thread, "x", idempotency_key="k") == first
    with pytest.raises(Refused) as refused:
        await local.post(WORKER, thread, "y", idempotency_key="other")
    assert refused.value.reason is Reason.TOO_MANY
    assert refused.value.details is not None
    assert refused.value.details["retry_after_ms"] == 30_000
    local.clock.at += 30_000
    await local.post(WORKER, thread, "y", idempotency_key="other")
    await local.post(OTHER, thread, "another agent has a quota of its own")


async def test_the_quota_of_an_agent_that_was_forgotten_is_full(
    keyring: Keyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotas, "MAX_AGENTS", 1)
    quota = quotas.PostQuota(1, lambda: 0, is_limited=True)
    assert quota.take(WORKER)
    assert not quota.take(WORKER)
    assert quota.take(OTHER)
    assert quota.take(WORKER)
    quota.give_back(WORKER)
    assert quota.take(WORKER)


async def test_messages_outside_the_window_in_memory_are_read_from_the_store(
    local: LocalService,
) -> None:
    thread = await new_thread(local)
    for number in range(30):
        await local.post(WORKER if number % 3 else OTHER, thread, f"{number}")
    for since in (0, 5, 21, 29, 30):
        page = await local.call(OTHER, "read_messages", thread_id=thread, since_seq=since, limit=7)
        expected = [str(number) for number in range(since, min(since + 7, 30))]
        assert [item.body for item in page.messages] == expected
    for seq in (3, 4, 16, 25, 29, 30):
        await local.call(OTHER, "ack_read", thread_id=thread, last_read_seq=seq)
        detail = await local.call(OTHER, "get_thread", thread_id=thread)
        assert detail.unread == sum(1 for number in range(seq, 30) if number % 3)


async def test_a_page_of_long_messages_is_shorter(local: LocalService) -> None:
    thread = await new_thread(local)
    for _ in range(6):
        await local.post(WORKER, thread, "x" * 250_000)
    page = await local.call(OTHER, "read_messages", thread_id=thread)
    assert (len(page.messages), page.has_more, page.next_seq) == (4, True, 4)


async def test_the_index_is_stored_and_only_changed_threads_are_read_again(
    local: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = [await new_thread(local) for _ in range(3)]
    local.clock.at += 1
    await local.post(WORKER, threads[1], "x")
    listed = await local.call(OTHER, "list_threads")
    assert listed.threads[0].thread_id == threads[1]
    await local.stop()
    local.start()
    local.clock.at += 1
    await local.post(WORKER, threads[2], "y")
    opened: list[str] = []
    real = indexes.ThreadIndex._index_thread

    async def counted(index: indexes.ThreadIndex, stream: str) -> None:
        opened.append(stream)
        await real(index, stream)

    monkeypatch.setattr(indexes.ThreadIndex, "_index_thread", counted)
    again = await local.call(OTHER, "list_threads")
    assert [each.thread_id for each in again.threads[:2]] == [threads[2], threads[1]]
    assert {each.thread_id for each in again.threads} == set(threads)
    assert len(opened) <= 1
    assert (await local.call(REVIEWER, "list_threads")).threads == ()
    assert len((await local.call(ORCHESTRATOR, "list_threads")).threads) == 3
    elsewhere = agent("other", workspace="elsewhere")
    assert (await local.call(elsewhere, "list_threads")).threads == ()


@pytest.mark.parametrize("blob", [b"", b"x" * 40, b"damaged"], ids=["empty", "long", "short"])
async def test_a_stored_index_that_is_damaged_is_ignored(local: LocalService, blob: bytes) -> None:
    thread = await new_thread(local)
    shape = local.engine.snapshots.shape(local.engine.contexts["thread"])
    local.start()
    await local.log.save_snapshot(indexes.SNAPSHOT_NAME, Snapshot(99, shape, blob))
    [listed] = (await local.call(OTHER, "list_threads")).threads
    assert listed.thread_id == thread


async def test_threads_of_another_process_are_listed(local: LocalService) -> None:
    assert (await local.call(OTHER, "list_threads")).threads == ()
    first = local.service
    local.start()
    thread = await new_thread(local)
    await local.call(OTHER, "ack_read", thread_id=thread, last_read_seq=0)
    assert await first.index.threads_of(OTHER) == []
    first.engine.listeners.report_version(stream_of(thread), 1)
    [found] = await first.index.threads_of(OTHER)
    assert found.id == thread


async def test_marks_are_bounded(local: LocalService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_marks, "MAX_MARKS", 1)
    thread = await new_thread(local, "worker", "other", "reviewer")
    await local.post(WORKER, thread, "x")
    for reader in (OTHER, REVIEWER):
        await local.call(reader, "read_messages", thread_id=thread)
    [item] = (await local.call(WORKER, "read_messages", thread_id=thread)).messages
    assert item.delivery == {"other": "queued", "reviewer": "queued"}


async def test_a_notice_of_the_server_is_a_system_message(local: LocalService) -> None:
    thread = await new_thread(local)
    await local.service.post_notice(thread, "No answer for 15 minutes", {"to": ["other"]})
    [item] = (await local.call(OTHER, "read_messages", thread_id=thread)).messages
    assert (item.kind, item.sender_agent_id, item.sender_kind) == ("system", "system", Kind.SYSTEM)
    with pytest.raises(Refused):
        await local.service.post_notice("th_no", "x", {})


async def test_while_the_server_stops_methods_are_refused(local: LocalService) -> None:
    thread = await new_thread(local)
    local.service.intake.closed = True
    for method, more in (("get_thread", {"thread_id": thread}), ("list_threads", {})):
        with pytest.raises(Refused) as refused:
            await local.call(WORKER, method, **more)
        assert refused.value.reason is Reason.UNAVAILABLE


async def test_a_method_needs_arguments_of_its_own_type(local: LocalService) -> None:
    with pytest.raises(Refused) as refused:
        await call_method(local.service, Caller(WORKER), "list_threads", GetThread(thread_id="x"))
    assert refused.value.reason is Reason.NO_ROUTE


async def test_a_name_that_is_not_checked_is_not_verified(local: LocalService) -> None:
    thread = await new_thread(local)
    await local.post(Actor("other", Kind.HUMAN, "http"), thread, "x")
    [item] = (await local.call(WORKER, "read_messages", thread_id=thread)).messages
    assert item.sender_verified is False


async def test_threads_not_used_lately_keep_their_state_and_are_read_from_the_log(
    local: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_cache, "MAX_KEPT_WINDOW_BYTES", 4096)
    threads = [await new_thread(local) for _ in range(12)]
    for thread in threads:
        for number in range(4):
            await local.post(WORKER, thread, f"{number}")
    first = local.engine.streams[stream_of(threads[0])]
    assert len(first.window) == 0
    assert sum(len(local.engine.streams[stream_of(each)].window) for each in threads) < 12

    page = await local.call(OTHER, "read_messages", thread_id=threads[0], since_seq=1)
    assert [message.body for message in page.messages] == ["1", "2", "3"]
    assert len(first.window) == 3
    again = await local.call(OTHER, "read_messages", thread_id=threads[0], since_seq=1)
    assert again == page
    posted = await local.post(WORKER, threads[0], "4", idempotency_key="k")
    assert await local.post(WORKER, threads[0], "4", idempotency_key="k") == posted
    assert posted.seq == 5


async def test_thread_is_watched_however_many_others_are_used(
    local: LocalService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_cache, "MAX_KEPT_WINDOW_BYTES", 1024)
    monkeypatch.setattr(stream_cache, "MAX_ENDED_STREAMS", 1)
    thread = await new_thread(local)
    watcher = RecordingPeer(local.engine, OTHER, "r")
    local.engine.delivery.subscribe(stream_of(thread), watcher)
    for _ in range(4):
        await local.post(WORKER, await new_thread(local), "elsewhere")

    await local.post(WORKER, thread, "still heard")

    assert watcher.received[-1]["payload"]["content"] == "still heard"
