"""What the decision behind a commit tells of a merge."""

from accord.core.room.conflicts import Resolution
from accord.core.room.merges import MergeExecute
from accord.core.views.chain import drafted
from accord.core.views.stretch import Stretch, heard
from tests.helpers.chain import a_talk, decision, numbered
from tests.helpers.forks import adds, forks, merges, updates
from tests.helpers.room import BOB, CAROL, CLAUDE, rejects_tool
from tests.spec import proves


@proves("GIT-MAP-2", "PVP-18.5-1")
def test_a_merge_tells_which_fork_came_back_and_how_conflicts_were_settled() -> None:
    talk = a_talk()
    talk.says(CAROL, adds("plan", "one"), id="c")
    talk.says(CAROL, forks("Try it", BOB, CLAUDE, copy=True), id="f")
    first = decision(talk)
    talk.says(CAROL, updates("plan", "two"), fork="try-it")
    talk.says(CAROL, updates("plan", "three"))
    talk.says(CAROL, merges("try-it"), id="m")
    waiting = decision(talk, first.until)
    settled = (Resolution("plan", "use_source"),)
    talk.says(CAROL, MergeExecute("m", settled), id="x")
    made = decision(talk, first.until)
    alone = decision(talk, waiting.until)

    (asked,), (back,) = waiting.merges, made.merges
    assert (asked.fork, asked.branch, asked.done) == ("try-it", "pvp/try-it", False)
    assert (back.id, back.strategy, back.summary, back.done) == ("m", "append", "It works", True)
    assert back.by == ("human:carol",)
    assert [(each.key, each.resolution) for each in back.settled] == [("plan", "use_source")]
    assert alone.merges == made.merges
    assert "human:carol" in alone.decided_by
    assert made.alternatives_considered == waiting.alternatives_considered == ()
    assert "m" in made.pvp_messages
    assert "x" in made.pvp_messages


def test_a_merge_that_was_refused_is_no_merge() -> None:
    talk = a_talk()
    talk.says(CAROL, forks("Try", BOB, CLAUDE), id="f")
    talk.says(CLAUDE, merges("try"), id="m")
    talk.says(BOB, rejects_tool(BOB, "m", "Not yet"), id="no")

    assert decision(talk).merges == ()


def test_a_merge_whose_proposal_is_not_for_all_is_not_told() -> None:
    talk = a_talk()
    talk.says(CAROL, forks("Try", BOB, CLAUDE), id="f")
    talk.says(CAROL, merges("try"), id="m")
    talk.says(CAROL, MergeExecute("m"), id="x")
    records = [each for each in numbered(talk) if each.id != "m"]
    stretch = Stretch(talk.room, "repo")

    found = drafted(stretch, heard(stretch, records), {})

    assert found is not None
    assert found.decision.merges == ()
    assert "x" not in found.decision.pvp_messages
