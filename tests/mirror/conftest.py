"""A pact with one task."""

from pathlib import Path

import pytest

from tests.mirror.scene import ASSIGN, INIT, Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    """Somebody has it, and has shown nothing yet."""
    return Ledger(tmp_path / ".pact").add(INIT, ASSIGN)
