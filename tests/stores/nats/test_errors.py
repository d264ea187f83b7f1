"""What can be wrong with a NATS server or stream is said in one sentence."""

from pathlib import Path

import nats
import pytest

from accord.engine.ports import (
    DiskFullError,
    EventLog,
    ForeignStoreError,
    NewerStoreError,
    StoreError,
    UnknownStoreError,
)
from accord.stores import open_log
from accord.stores.nats import jetstream as jetstream_module
from accord.stores.nats.address import NatsAddress
from tests.contract.rows import HERE, row, rows
from tests.helpers.servers.nats_server import SHARED_NATS, NatsServer
from tests.helpers.servers.postgres_server import free_port


@pytest.mark.parametrize(
    ("url", "servers", "stream", "replicas"),
    [
        ("nats://host", ("host:4222",), "accord", 1),
        ("nats://a,b:1,c/team", ("a:4222", "b:1", "c:4222"), "team", 3),
        ("nats://a,b,c?replicas=1", ("a:4222", "b:4222", "c:4222"), "accord", 1),
        ("nats://[::1]:4000/x", ("[::1]:4000",), "x", 1),
    ],
)
def test_url_names_servers_stream_and_replicas(
    url: str, servers: tuple[str, ...], stream: str, replicas: int
) -> None:
    address = NatsAddress.from_url(url)

    assert (address.servers, address.stream, address.replicas) == (servers, stream, replicas)


def test_password_is_read_and_never_shown() -> None:
    address = NatsAddress.from_url("nats://ann:s%40fe@host/team")

    assert (address.user, address.password) == ("ann", "s@fe")
    assert str(address) == "nats://host:4222/team"


@pytest.mark.parametrize(
    "url",
    [
        "nats://",
        "nats://host/a.b",
        "nats://host/a b",
        "nats://host?replicas=9",
        "nats://host?replicas=x",
        "nats://host?color=red",
        "nats://host?ca=missing.pem",
    ],
)
async def test_url_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(UnknownStoreError):
        await open_log(url)


async def test_unreachable_server_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jetstream_module, "CONNECT_TIMEOUT_S", 1)

    with pytest.raises(StoreError, match="cannot be reached; check that NATS runs there"):
        await open_log(f"nats://127.0.0.1:{free_port()}")


async def test_wrong_password_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jetstream_module, "CONNECT_TIMEOUT_S", 2)
    more = "authorization { user: ann, password: right }"
    server = NatsServer(tmp_path, more=more).start()
    try:
        with pytest.raises(StoreError, match="refused this user") as told:
            await open_log(f"nats://ann:wrong@127.0.0.1:{server.port}/team")
        log = await open_log(f"nats://ann:right@127.0.0.1:{server.port}/team")
        await log.close()
    finally:
        server.stop()
    assert "wrong" not in str(told.value)


async def test_too_few_servers_for_the_replicas_are_said() -> None:
    url = SHARED_NATS.server().new_stream("replicas=3")

    with pytest.raises(StoreError, match="replicas"):
        await open_log(url)


async def test_stream_of_another_program_is_not_changed() -> None:
    url = SHARED_NATS.server().new_stream()
    name = url.rpartition("/")[2]
    client = await nats.connect(url.rpartition("/")[0])
    await client.jetstream().add_stream(name=name, subjects=[f"{name}.other"])

    with pytest.raises(ForeignStoreError, match="stream of another program"):
        await open_log(url)

    assert (await client.jetstream().stream_info(name)).config.subjects == [f"{name}.other"]
    await client.close()


@pytest.mark.parametrize("data", [b"\x93\x09\xa1x\x90", b"not ours", b""])
async def test_message_that_this_version_cannot_read_stops_it(data: bytes) -> None:
    url = SHARED_NATS.server().new_stream()
    log = await open_log(url)
    client = await nats.connect(url.rpartition("/")[0])
    await client.jetstream().publish(f"{url.rpartition('/')[2]}.log", data)

    with pytest.raises(NewerStoreError, match="later Accord, or of another program"):
        await log.read(HERE)
    with pytest.raises(NewerStoreError):
        await log.append(HERE, 0, rows(HERE, 1))
    await log.close()
    await client.close()


async def test_full_store_is_an_error_that_loses_nothing(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, jetstream="max_file_store: 2MB").start()
    log = await open_log(server.new_stream())
    large = b"x" * 500_000
    try:
        with pytest.raises(DiskFullError, match="No space left"):
            await append_until_refused(log, large)
        kept = await log.read(HERE)
        assert kept == [row(HERE, each, body=large) for each in range(1, len(kept) + 1)]
        assert kept
    finally:
        await log.close()
        server.stop()


async def append_until_refused(log: EventLog, body: bytes) -> None:
    for version in range(1, 10):
        await log.append(HERE, version - 1, [row(HERE, version, body=body)])


async def test_copy_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    url = SHARED_NATS.server().new_stream(f"copy={tmp_path / 'file'}")
    (tmp_path / "file").write_text("not a directory")

    with pytest.raises(StoreError, match="copy"):
        await open_log(url)
