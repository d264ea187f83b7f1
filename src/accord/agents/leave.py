"""Leave to run: an agent believes a grant only if it is for exactly what it proposed."""

from datetime import UTC, datetime

from accord.core.room.grants import ToolExecute, digest
from accord.core.room.state import Grant
from accord.core.room.tools import ToolPropose, tool_of


class NotGrantedError(Exception):
    """What was said is no leave to run this; nothing was run."""


def check(
    said: ToolExecute,
    proposal: str,
    proposed: ToolPropose,
    session: str,
    now: datetime | None = None,
) -> Grant:
    """The grant, if it is live and for this very call."""
    grant = said.grant
    if said.tool_proposal != proposal or grant is None:
        raise NotGrantedError(f"Nobody granted {proposal}")
    own = digest(tool_of(proposal, proposed, None), session, grant.expires_at)
    if grant.digest != own:
        raise NotGrantedError(f"The grant for {proposal} is for something else")
    try:
        until = datetime.fromisoformat(grant.expires_at)
    except ValueError:
        raise NotGrantedError(f"The grant for {proposal} says not until when") from None
    if until.tzinfo is None or until <= (now or datetime.now(UTC)):
        raise NotGrantedError(f"The grant for {proposal} has expired")
    return grant
