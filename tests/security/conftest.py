"""Fixtures of the security tests."""

from tests.helpers.attacks.cleanup import close_websockets

__all__ = ["close_websockets"]
