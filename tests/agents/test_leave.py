"""An agent believes a grant only if it is for exactly what it proposed."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from accord.agents.leave import NotGrantedError, check
from accord.core.kernel.times import iso
from accord.core.room.grants import ToolExecute, digest
from accord.core.room.state import Grant
from accord.core.room.tools import tool_of
from tests.helpers.room import proposes

PROPOSED = proposes(tool_name="shell", arguments={"argv": ["git", "status"]})
NOW = datetime(2026, 1, 30, 20, 0, tzinfo=UTC)
UNTIL = iso(int((NOW + timedelta(hours=1)).timestamp() * 1000))


def granted(until: str = UNTIL, session: str = "s", proposal: str = "p") -> ToolExecute:
    seal = digest(tool_of(proposal, PROPOSED, None), session, until)
    grant = Grant(id="g", digest=seal, expires_at=until)
    return ToolExecute(tool_proposal=proposal, approved_by=("alice",), grant=grant)


def refuses(said: ToolExecute, session: str = "s", now: datetime = NOW) -> str:
    with pytest.raises(NotGrantedError) as no:
        check(said, "p", PROPOSED, session, now)
    return str(no.value)


def test_the_grant_that_was_meant_counts() -> None:
    assert check(granted(), "p", PROPOSED, "s", NOW).id == "g"


def test_a_word_without_a_grant_is_none() -> None:
    assert "Nobody granted" in refuses(replace(granted(), grant=None))


def test_a_grant_for_another_proposal_is_none() -> None:
    assert "Nobody granted" in refuses(granted(proposal="q"))


def test_a_grant_for_other_arguments_is_none() -> None:
    other = replace(PROPOSED, arguments={"argv": ["git", "push"]})
    with pytest.raises(NotGrantedError, match="for something else"):
        check(granted(), "p", other, "s", NOW)


def test_a_grant_from_another_session_is_none() -> None:
    assert "for something else" in refuses(granted(session="t"))


def test_a_grant_made_to_last_longer_is_none() -> None:
    said = granted()
    assert said.grant is not None
    later = iso(int((NOW + timedelta(days=9)).timestamp() * 1000))
    longer = replace(said, grant=replace(said.grant, expires_at=later))

    assert "for something else" in refuses(longer)


def test_a_grant_that_ran_out_is_none() -> None:
    assert "has expired" in refuses(granted(), now=NOW + timedelta(hours=1))


@pytest.mark.parametrize("until", ["soon", "2099-01-01T00:00:00"])
def test_a_grant_without_a_proper_end_is_none(until: str) -> None:
    refuses(granted(until=until))
