"""Rows that are not what was stored: whoever would hear them is refused, and nobody else."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from accord.core.kernel.authority import Role
from accord.core.kernel.refusal import Refused, Why
from accord.engine import proven
from accord.engine.ports import Row
from tests.engine.conftest import Make
from tests.helpers.engine import Tricky
from tests.helpers.room import ALICE, BOB, CLAUDE, ROOM, joins, prompts

PARTS = ("engine", "transports")
SOURCE = Path(proven.__file__).parents[1]
ELSEWHERE = "elsewhere"


class Rotten(Tricky):
    """A log in which one word of one room is another word."""

    def __init__(self) -> None:
        super().__init__()
        self.was, self.now = b"", b""

    async def read(self, stream: str, after: int = 0, limit: int | None = None) -> list[Row]:
        rows = await super().read(stream, after, limit)
        if stream != f"room/{ROOM}" or not self.was:
            return rows
        return [replace(row, body=row.body.replace(self.was, self.now)) for row in rows]

    def rot(self, was: bytes, now: bytes) -> None:
        """From now on."""
        self.was, self.now = was, now


async def test_a_changed_word_makes_a_room_unreadable_and_no_other(make: Make) -> None:
    log = Rotten()
    first = make(log)
    await first.open(CLAUDE)
    await first.open(CLAUDE, room=ELSEWHERE)
    await first.say(ALICE, prompts(content="no"), "p")
    log.rot(b'"no"', b'"ok"')

    stage = make(log, check=False)
    await stage.engine.start()
    with pytest.raises(Refused) as no:
        await stage.say(ALICE, prompts())

    assert no.value.why is Why.DAMAGED
    assert f"Record 5 of room/{ROOM} is not what was stored" in no.value.detail
    assert await stage.say(ALICE, joins(ALICE, Role.ADMIN), room=ELSEWHERE)
    log.rot(b"", b"")
    assert await stage.say(ALICE, prompts())


async def test_a_damaged_page_ends_that_way_in_but_not_the_connection(make: Make) -> None:
    log = Rotten()
    stage = make(log, window=5, check=False)
    await stage.open(CLAUDE)
    await stage.open(CLAUDE, room=ELSEWHERE)
    before = stage.connect(BOB)
    await stage.say(BOB, joins(BOB, Role.DRIVER), "bob")
    before.hang_up()
    for n in range(20):
        await stage.say(ALICE, prompts(content=f"word {n}"), f"p{n}")
    bob = stage.connect(BOB)
    await stage.say(BOB, joins(BOB, Role.DRIVER), "here", room=ELSEWHERE)
    heard = len(bob.ids)
    log.rot(b"word 7", b"word 8")

    reply = stage.ask(BOB, joins(BOB, Role.DRIVER), "back", "bob")
    await stage.settle()

    assert reply.refused
    assert reply.refused.why is Why.DAMAGED
    assert "p7" not in bob.ids[heard:]
    assert bob.closed is None
    await stage.say(ALICE, prompts(), "live")
    assert "live" not in bob.ids
    await stage.say(ALICE, joins(ALICE, Role.ADMIN), room=ELSEWHERE)
    await stage.say(ALICE, prompts(), "there", room=ELSEWHERE)
    assert bob.ids[-1] == "there"


async def test_what_is_looked_up_must_be_in_its_place(make: Make) -> None:
    log = Rotten()
    stage = make(log, window=5, check=False)
    await stage.open(CLAUDE)
    await stage.say(ALICE, prompts(content="no"), "old")
    for _ in range(8):
        await stage.say(ALICE, prompts())
    log.rot(b'"no"', b'"ok"')

    with pytest.raises(Refused) as no:
        await stage.say(ALICE, prompts(), "new", "old")

    assert no.value.why is Why.DAMAGED
    assert await stage.say(ALICE, prompts(), "other")


def test_nobody_who_serves_reads_rows_unchecked() -> None:
    files = [file for part in PARTS for file in (SOURCE / part).rglob("*.py")]
    reading = [file for file in files if re.search(r"events\.(read|find)\(", file.read_text())]

    assert [file.name for file in reading] == ["proven.py"]
