"""An agent accepts a grant only for exactly the call that it proposed."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from accord.agents.grant_check import NotGrantedError, check_grant
from accord.core.kernel.timestamps import to_iso
from accord.core.room.approval.grants import ToolExecute, grant_digest
from accord.core.room.approval.tool_proposals import proposal_of
from accord.core.room.state import Grant
from tests.helpers.room.scenario import tool_propose

PROPOSED = tool_propose(tool_name="shell", arguments={"argv": ["git", "status"]})
NOW = datetime(2026, 1, 30, 20, 0, tzinfo=UTC)
UNTIL = to_iso(int((NOW + timedelta(hours=1)).timestamp() * 1000))


def granted(until: str = UNTIL, session: str = "s", proposal: str = "p") -> ToolExecute:
    seal = grant_digest(proposal_of(proposal, PROPOSED, None), session, until)
    grant = Grant(id="g", digest=seal, expires_at=until)
    return ToolExecute(tool_proposal=proposal, approved_by=("alice",), grant=grant)


def refuses(message: ToolExecute, session: str = "s", now: datetime = NOW) -> str:
    with pytest.raises(NotGrantedError) as refusal:
        check_grant(message, "p", PROPOSED, session, now)
    return str(refusal.value)


def test_check_grant_accepts_the_matching_grant() -> None:
    assert check_grant(granted(), "p", PROPOSED, "s", NOW).id == "g"


def test_check_grant_refuses_a_message_without_grant() -> None:
    assert "did not grant" in refuses(replace(granted(), grant=None))


def test_check_grant_refuses_another_proposal() -> None:
    assert "did not grant" in refuses(granted(proposal="q"))


def test_check_grant_refuses_other_arguments() -> None:
    other = replace(PROPOSED, arguments={"argv": ["git", "push"]})
    with pytest.raises(NotGrantedError, match="for a different call"):
        check_grant(granted(), "p", other, "s", NOW)


def test_check_grant_refuses_another_session() -> None:
    assert "for a different call" in refuses(granted(session="t"))


def test_check_grant_refuses_an_extended_expiry() -> None:
    message = granted()
    assert message.grant is not None
    later = to_iso(int((NOW + timedelta(days=9)).timestamp() * 1000))
    longer = replace(message, grant=replace(message.grant, expires_at=later))

    assert "for a different call" in refuses(longer)


def test_check_grant_refuses_an_expired_grant() -> None:
    assert "has expired" in refuses(granted(), now=NOW + timedelta(hours=1))


@pytest.mark.parametrize("until", ["soon", "2099-01-01T00:00:00"])
def test_check_grant_refuses_an_invalid_expiry(until: str) -> None:
    refuses(granted(until=until))
