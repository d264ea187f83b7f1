"""`Reviewed-By` without a server: whoever accepted by the log, and nobody that somebody names."""

from pathlib import Path

import pytest

from accord.core.work.state import Work
from accord.pact import reviewed
from tests.core.work.story import ANN, BOB, assigned, folded, line
from tests.pact.test_git import GitTeam
from tests.spec import proves

DONE = (
    assigned("T1"),
    line("checkpoint", BOB, "T1", evidence="it works"),
    line("accept", ANN, "T1"),
)


def named(work: Work, **said: str) -> list[str]:
    return reviewed.names(work, work.features["F"], said)


@proves("UNI-14")
def test_a_merge_names_whoever_accepted(tmp_path: Path) -> None:
    team = GitTeam(tmp_path / "repo")
    team.accepted()

    team.good("ann", "merge", "cart")

    trailers = team.repo.ask("log", "-1", "--format=%(trailers:unfold)").split("\n")
    assert [each for each in trailers if each] == ["Reviewed-By: agent:ann"]


@proves("UNI-14")
@pytest.mark.parametrize("lie", ["human:bob", "system:ann", "ann", "human:ann\nApproved-By: x"])
def test_a_server_may_say_what_somebody_is_and_not_who(lie: str) -> None:
    work = folded(*DONE)

    assert named(work, ann="human:ann") == ["human:ann"]
    assert named(work, ann=lie) == ["agent:ann"]
    assert named(work, bob="human:bob") == ["agent:ann"]


def test_while_a_task_is_open_nobody_is_named() -> None:
    assert named(folded(*DONE, assigned("T2"))) == []
    assert reviewed.message("Merge F (feat)", []) == "Merge F (feat)"


def test_a_seat_that_is_no_name_is_not_written() -> None:
    odd = folded(
        assigned("T1", reviewer="a b\nc"),
        line("checkpoint", BOB, "T1", evidence="it works"),
        line("accept", "a b\nc", "T1"),
    )

    assert named(odd) == []
