"""Checks of a method's arguments that its type cannot express."""

from functools import cache

import msgspec

from accord.api.threads import MAX_METADATA_BYTES, Metadata, MethodRequest
from accord.core.dialects.nesting import is_too_deep
from accord.core.kernel.actor import Actor
from accord.core.kernel.ids import is_visible
from accord.core.kernel.refusal import Reason, Refused
from accord.core.people.state import is_principal_id
from accord.core.room.threads.state import SCHEMA_VERSION

WORKSPACE_FIELD = "workspace_id"
# Arguments that name the caller, and what of the credential each must equal (MSG 3).
CLAIMS = {
    **dict.fromkeys(("created_by", "sender_agent_id", "agent_id"), "principal"),
    **dict.fromkeys(("sender_session_id", "session_id"), "runtime"),
}


@cache
def claims_of(kind: type[MethodRequest]) -> tuple[tuple[str, str], ...]:
    """Which of these arguments a method has."""
    return tuple(claim for claim in CLAIMS.items() if claim[0] in kind.__struct_fields__)


def check_request(actor: Actor, request: MethodRequest) -> None:
    """Refuse other workspaces, identities that differ from the credential, and later versions."""
    workspace = getattr(request, WORKSPACE_FIELD, None)
    if workspace is not None and workspace != actor.workspace:
        detail = f"Your credential is for the workspace {actor.workspace}, not {workspace}"
        raise Refused(Reason.OUT_OF_SCOPE, detail)
    for name, attribute in claims_of(type(request)):
        claimed = getattr(request, name)
        if claimed is not None and claimed != (verified := getattr(actor, attribute)):
            detail = f"{name} is {claimed}, but your credential says {verified}"
            raise Refused(Reason.CLAIM_MISMATCH, detail)
    if request.schema_version > SCHEMA_VERSION:
        detail = (
            f"schema_version {request.schema_version} is not supported; this server speaks "
            f"version {SCHEMA_VERSION}"
        )
        raise Refused(Reason.UNSUPPORTED_VERSION, detail)


def checked_metadata(metadata: Metadata | None) -> Metadata | None:
    """The metadata, if it is neither too large nor too deep."""
    if not metadata:
        return None
    if is_too_deep(metadata):
        raise Refused(Reason.MALFORMED, "metadata is nested too deep")
    if len(msgspec.json.encode(metadata)) > MAX_METADATA_BYTES:
        detail = f"metadata may have at most {MAX_METADATA_BYTES} bytes"
        raise Refused(Reason.TOO_LARGE, detail)
    return metadata


def checked_title(title: str) -> str:
    """A title of one visible line."""
    if not is_visible(title) or not title.strip():
        raise Refused(Reason.MALFORMED, "title must be one line of visible characters")
    return title


def checked_reason(reason: str) -> str:
    """A reason of at most one line: it becomes part of a message of the kind `system`."""
    if not is_visible(reason):
        raise Refused(Reason.MALFORMED, "reason must be one line of visible characters")
    return reason


def checked_text(text: str) -> str:
    """A body that says something."""
    if not text.strip():
        raise Refused(Reason.MALFORMED, "body is empty")
    return text


def checked_participants(names: list[str]) -> tuple[str, ...]:
    """Each id once, in the order given."""
    invalid = sorted(name for name in names if not is_principal_id(name))
    if invalid:
        raise Refused(Reason.MALFORMED, f"{invalid[0]!r} is not a valid agent id")
    return tuple(dict.fromkeys(names))
