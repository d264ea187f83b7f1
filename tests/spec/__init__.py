"""The manifest of what the specifications ask, and the mark by which a test answers."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def proves(*ids: str) -> "pytest.MarkDecorator":
    """Mark a test, a class or a module as the proof of these clauses."""
    # Here, so that the conformance page can be made without pytest.
    import pytest

    return pytest.mark.proves(*ids)
