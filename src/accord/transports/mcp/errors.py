"""Refusals as tool results: the MSG error envelope, which a model can read and act on."""

import msgspec

from accord.core.dialects import msg
from accord.core.kernel.refusal import Reason, Refused
from accord.transports.mcp.tool import ToolAnswer, encode


def error_answer(refusal: Refused, request_id: str) -> ToolAnswer:
    """The envelope, as over HTTP."""
    return ToolAnswer(encode(msg.error_envelope(refusal, request_id)), is_error=True)


def wrong_arguments(tool: str, error: msgspec.ValidationError) -> Refused:
    """For arguments that do not match the tool's schema."""
    return Refused(Reason.MALFORMED, f"Wrong arguments for {tool}: {error}")
