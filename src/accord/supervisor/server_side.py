"""What a link needs of the server: a token that renews itself, and one request."""

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from accord.api.threads import MAX_WAKE_WAIT_S, HandedWake, TakenWakes, TakeWakes
from accord.client.errors import ClientError
from accord.client.http_client import HttpClient
from accord.client.identity import Token, parse_address
from accord.core.attention.runtimes import RuntimeOrigin
from accord.hosts.connection_token import ConnectionToken
from accord.hosts.connections import Connection
from accord.hosts.enrolment import revoke
from accord.waking.claude_sessions import claude_session
from accord.waking.machine import machine_name

PATH = ("v1", "take_wakes")
# Beyond the time that the server waits.
ANSWER_S = 10.0
CLAUDE = "claude_code"


class ServerSide:
    """Asks one server for the wakes of one runtime."""

    def __init__(self, url: str, token: Token, device: Connection | None = None) -> None:
        self._http = HttpClient(parse_address(url), token, MAX_WAKE_WAIT_S + ANSWER_S)
        self._device = device

    async def take(self, request: TakeWakes) -> tuple[HandedWake, ...]:
        """Report, and get what there is to type; raises ClientError."""
        body = msgspec.json.encode(request)
        return (await self._http.read(TakenWakes, PATH, method="POST", body=body)).wakes

    async def close(self) -> None:
        """Sign a device out that was made for this run."""
        if self._device is not None:
            try:
                await revoke(self._device)
            except ClientError:
                return


def origin_of(facts: Mapping[str, Any]) -> RuntimeOrigin | None:
    """The vendor's id of the conversation and where it runs, as far as the host reveals it."""
    if facts["runtime"] != CLAUDE or not facts.get("host"):
        return None
    ref = claude_session(facts["environment"], facts["host"])
    directory = os.path.realpath(facts["directory"])
    return RuntimeOrigin(ref, machine_name(), directory) if ref else None


def open_server_side(facts: Mapping[str, Any]) -> ServerSide:
    """By a token that was given, or by the key of a device of this run."""
    if token := facts.get("token"):
        return ServerSide(facts["url"], token)
    device = msgspec.convert(facts["device"], Connection)
    return ServerSide(device.url, ConnectionToken(device), device)
