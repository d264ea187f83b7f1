"""A pact with one task."""

from pathlib import Path

import pytest

from accord.mirror import copy, service
from tests.mirror.scene import ASSIGN, INIT, Ledger

LONG_S = 60.0


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks waits for the disk, however slow this machine is now."""
    monkeypatch.setattr(copy, "PATIENCE_S", LONG_S)
    monkeypatch.setattr(service, "LONG_S", LONG_S)
    monkeypatch.setattr(service, "SOON_S", LONG_S)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Somebody has it, and has shown nothing yet."""
    return Ledger(tmp_path / ".pact").add(INIT, ASSIGN)
