"""Whatever an attack opens is closed behind it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.helpers.wire import Wire


@pytest.fixture(autouse=True)
async def _hang_up(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    opened: list[Wire] = []
    usual = Wire.open

    async def noted(url: str, seat: str = "", token: str = "", **more: Any) -> Wire:
        wire = await usual(url, seat, token, **more)
        opened.append(wire)
        return wire

    monkeypatch.setattr(Wire, "open", noted)
    yield
    for wire in opened:
        await wire.socket.close()
