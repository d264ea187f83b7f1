"""The few requests of JetStream's API that the log needs, on one connection."""

import asyncio
import json
import secrets
from contextlib import suppress
from typing import Any

from nats.aio.client import Client
from nats.aio.msg import Msg

from accord.stores.nats import errors
from accord.stores.nats.address import NatsAddress
from accord.stores.nats.entries import MAX_PARTS, parts_of
from accord.stores.nats.errors import CONNECTION_ERRORS, ApiError, store_error

CONNECT_TIMEOUT_S = 10
API_TIMEOUT_S = 5.0
ACK_TIMEOUT_S = 2.0
CLOSE_TIMEOUT_S = 2.0
RETRY_INTERVAL_S = 0.1
RECONNECT_WAIT_S = 0.1
OLDEST_VERSION = (2, 12)
PART_HEADER = "Accord-Part"  # such as 2/3
# JetStream forgets after this time that it has stored a message with this id.
DUPLICATE_WINDOW_NS = 120 * 1_000_000_000
OUR_MARK = {"accord.format": "1"}


class JetStream:
    """A connection to the cluster, and the stream that holds the log."""

    def __init__(self, address: NatsAddress, client: Client) -> None:
        self.address = address
        self.client = client
        self.subject = f"{address.stream}.log"

    @classmethod
    async def connect(cls, address: NatsAddress) -> "JetStream":
        """Connect; StoreError if no server answers."""
        client = Client()
        login: dict[str, Any] = {}
        if address.user:
            login = {"user": address.user, "password": address.password}
        scheme = "tls" if address.tls else "nats"
        problems: list[Exception] = []

        async def remember(error: Exception) -> None:
            problems[:] = [error]

        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await client.connect(
                    [f"{scheme}://{server}" for server in address.servers],
                    name="accord",
                    connect_timeout=CONNECT_TIMEOUT_S,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=RECONNECT_WAIT_S,  # type: ignore[arg-type]  # used as a float
                    error_cb=remember,
                    tls=address.tls,
                    ping_interval=10,
                    **login,
                )
        except CONNECTION_ERRORS as error:
            with suppress(*CONNECTION_ERRORS):
                await client.close()
            # The client tries again until the time is over, and reports why it had to.
            raise store_error(address, problems[-1] if problems else error) from error
        return cls(address, client)

    async def ensure_stream(self) -> str:
        """Create the stream if it is missing; when it was created, which identifies it."""
        version = str(self.client.connected_server_version)
        numbers = version.lstrip("v").split(".")[:2]
        if tuple(int(each) for each in numbers if each.isdigit()) < OLDEST_VERSION:
            raise errors.too_old(self.address, version)
        found = await self.find_stream() or await self._create_stream()
        if found["config"].get("metadata", {}).get("accord.format") != "1":
            raise errors.foreign_error(self.address)
        return str(found["created"])

    async def find_stream(self) -> dict[str, Any] | None:
        """What JetStream says of the stream; None if there is none."""
        try:
            return await self.request(f"STREAM.INFO.{self.address.stream}")
        except ApiError as error:
            if error.code == errors.STREAM_NOT_FOUND:
                return None
            raise store_error(self.address, error) from error

    async def _create_stream(self) -> dict[str, Any]:
        config = {
            "name": self.address.stream,
            "subjects": [self.subject],
            "storage": "file",
            "num_replicas": self.address.replicas,
            "retention": "limits",
            "discard": "new",
            "deny_delete": True,
            "deny_purge": True,
            "allow_atomic": True,
            "duplicate_window": DUPLICATE_WINDOW_NS,
            "metadata": OUR_MARK,
        }
        try:
            return await self.request(f"STREAM.CREATE.{self.address.stream}", config)
        except ApiError as error:
            if error.code == errors.STREAM_NAME_IN_USE and (found := await self.find_stream()):
                return found  # another server created it meanwhile
            raise store_error(self.address, error) from error

    async def last_sequence(self) -> int:
        """The number of the newest message."""
        found = await self.find_stream()
        if found is None:
            raise store_error(self.address, ApiError({"err_code": errors.STREAM_NOT_FOUND}))
        return int(found["state"]["last_seq"])

    async def request(self, what: str, payload: dict[str, Any] | None = None) -> dict[str, Any]:
        """Ask until there is an answer; ApiError for a refusal, StoreError if there is none."""
        deadline = asyncio.get_running_loop().time() + API_TIMEOUT_S
        data = json.dumps(payload).encode() if payload else b""
        while True:
            left = deadline - asyncio.get_running_loop().time()
            try:
                answer = await self.client.request(f"$JS.API.{what}", data, timeout=max(left, 0.01))
                return _parse(answer)
            except ApiError as error:
                if not error.is_temporary or left <= 0:
                    raise
            except CONNECTION_ERRORS as error:
                if left <= 0 or self.client.is_closed:
                    raise store_error(self.address, error) from error
            await asyncio.sleep(RETRY_INTERVAL_S)

    async def publish(self, nonce: str, data: bytes) -> None:
        """Send a message and wait until it is stored.

        A large one is sent in parts that are stored together. Raises ApiError for a refusal and one
        of CONNECTION_ERRORS if there is no answer.
        """
        parts = list(parts_of(data))
        if len(parts) == 1:
            headers = {"Nats-Msg-Id": nonce}
            _parse(await self._send(data, headers))
            return
        if len(parts) > MAX_PARTS:
            raise ApiError({"description": "The records are too large to store together"})
        batch = secrets.token_hex(12)
        for number, part in enumerate(parts, 1):
            headers = {
                "Nats-Batch-Id": batch,
                "Nats-Batch-Sequence": str(number),
                PART_HEADER: f"{number}/{len(parts)}",
            }
            if number < len(parts):
                await self.client.publish(self.subject, part, headers=headers)
            else:
                _parse(await self._send(part, {**headers, "Nats-Batch-Commit": "1"}))

    async def _send(self, data: bytes, headers: dict[str, str]) -> Msg:
        return await self.client.request(self.subject, data, timeout=ACK_TIMEOUT_S, headers=headers)

    async def close(self) -> None:
        """Close the connection."""
        with suppress(*CONNECTION_ERRORS):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self.client.close()


def _parse(answer: Msg) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.data)
    if "error" in found:
        raise ApiError(found["error"])
    return found
