"""A pact with one task."""

from pathlib import Path

import pytest

from accord.pact.mirror import replication, service
from tests.pact.mirror.scene import ASSIGN, INIT, Ledger

LONG_S = 60.0


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever looks waits for the disk, however slow this machine is now."""
    monkeypatch.setattr(replication, "DISK_TIMEOUT_S", LONG_S)
    monkeypatch.setattr(service, "SYNC_WAIT_S", LONG_S)
    monkeypatch.setattr(service, "REQUEST_WAIT_S", LONG_S)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Somebody has it, and has shown nothing yet."""
    return Ledger(tmp_path / ".pact").add(INIT, ASSIGN)
