"""From a conversation to the decision behind a commit, as the bridge goes."""

import json

from msgspec.structs import replace

from accord.core.kernel.authority import Role
from accord.core.kernel.log import Record
from accord.core.provenance import decision as decisions
from accord.core.provenance import thread as threads
from accord.core.provenance.decision import DecisionCommit
from accord.core.views.chain import Drafted, drafted
from accord.core.views.stretch import Stretch, cited, heard
from tests.helpers.forks import START, Talk
from tests.helpers.room import BOB, CAROL, CLAUDE, approves_tool, finishes, prints, proposes


def a_talk() -> Talk:
    """Alice is admin and has asked Claude; Bob approves, Carol drives."""
    return Talk.of((BOB, Role.APPROVER), (CAROL, Role.DRIVER), (CLAUDE, Role.DRIVER))


def a_tool(talk: Talk, name: str, ref: str | None = START) -> None:
    """Claude wants to write a file, Bob says yes, Claude does."""
    talk.says(
        CLAUDE, proposes(tool_name="write_file", arguments={"path": "a.py"}), id=name, ref=ref
    )
    talk.says(BOB, approves_tool(BOB, name), id=f"{name}.yes")
    talk.says(CLAUDE, prints(name, "wrote 3 lines"))
    talk.says(CLAUDE, finishes(name), id=f"{name}.done")


def numbered(talk: Talk) -> list[Record]:
    """With `seq` as the engine counts: only what has a form on the wire."""
    numbers = iter(range(1, 10_000))
    return [replace(each, seq=next(numbers) if each.said else 0) for each in talk.log]


def decided(talk: Talk, since: int = 0, fork: str | None = None) -> Drafted | None:
    """As the bridge does it: what was heard since, and what that cites."""
    records = numbered(talk)
    stretch = Stretch(talk.room, "repo", fork, since)
    told = heard(stretch, records)
    known: dict[str, Record] = {}
    names = cited(told)
    for _ in range(3):
        more = {each.id: each for each in records if each.id in names}
        known, names = {**known, **more}, cited(more.values())
    return drafted(stretch, told, known) if told else None


def decision(talk: Talk, since: int = 0, fork: str | None = None) -> DecisionCommit:
    found = decided(talk, since, fork)
    assert found is not None
    return found.decision


def words(talk: Talk, since: int = 0, fork: str | None = None) -> str:
    """Everything that would be written anywhere."""
    found = decided(talk, since, fork)
    assert found is not None
    return json.dumps([decisions.to_json(found.decision), threads.to_json(found.thread)])
