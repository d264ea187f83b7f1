"""Keys and tokens, made once for each module."""

from tests.transports.conftest import ring, token

__all__ = ["ring", "token"]
