"""Closing the connections that a test leaves open."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.helpers.clients.websocket_client import WebSocketClient


@pytest.fixture(autouse=True)
async def close_websockets(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Close every `WebSocketClient` that the test opened, also when it fails half-way."""
    opened: list[WebSocketClient] = []
    original_open = WebSocketClient.open

    async def tracked_open(
        url: str, seat: str = "", token: str = "", **options: Any
    ) -> WebSocketClient:
        client = await original_open(url, seat, token, **options)
        opened.append(client)
        return client

    monkeypatch.setattr(WebSocketClient, "open", tracked_open)
    yield
    for client in opened:
        await client.close()
