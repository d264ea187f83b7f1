"""Checks that a grant is for exactly the call that the agent proposed."""

from datetime import UTC, datetime

from accord.core.room.approval.grants import ToolExecute, grant_digest
from accord.core.room.approval.tool_proposals import ToolPropose, proposal_of
from accord.core.room.state import Grant


class NotGrantedError(Exception):
    """The message does not grant this proposal; nothing was run."""


def check_grant(
    granted: ToolExecute,
    proposal: str,
    proposed: ToolPropose,
    session: str,
    now: datetime | None = None,
) -> Grant:
    """The grant, if it has not expired and its digest matches this call."""
    grant = granted.grant
    if granted.tool_proposal != proposal or grant is None:
        raise NotGrantedError(f"The server did not grant {proposal}")
    expected = grant_digest(proposal_of(proposal, proposed, None), session, grant.expires_at)
    if grant.digest != expected:
        raise NotGrantedError(f"The grant for {proposal} is for a different call")
    try:
        expires = datetime.fromisoformat(grant.expires_at)
    except ValueError:
        raise NotGrantedError(f"The grant for {proposal} has no valid expiry time") from None
    if expires.tzinfo is None or expires <= (now or datetime.now(UTC)):
        raise NotGrantedError(f"The grant for {proposal} has expired")
    return grant
