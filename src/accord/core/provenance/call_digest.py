"""The digest of a call whose long texts are cut in the record: the log has all of it."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import rfc8785


def call_digest(tool_name: str, arguments: Mapping[str, Any]) -> str:
    """SHA-256 over the RFC 8785 form of the whole call, which its grant requires it to have.

    `arguments` must be redacted: else a digest would let anybody try out short secrets.
    """
    call: Any = {"tool_name": tool_name, "arguments": arguments}
    return f"sha256:{sha256(rfc8785.dumps(call)).hexdigest()}"
