"""Rows that differ from what was stored are refused, and nothing else is."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role
from accord.engine.ports import Row
from accord.engine.streams import verified_reads
from tests.engine.conftest import Make
from tests.helpers.engine.harness import FaultyLog
from tests.helpers.room.scenario import ALICE, BOB, CLAUDE, ROOM, prompt_submit, session_join

PARTS = ("engine", "transports")
SOURCE = Path(verified_reads.__file__).parents[2]
ELSEWHERE = "elsewhere"


class Rotten(FaultyLog):
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


async def test_changed_record_makes_only_its_session_unreadable(make: Make) -> None:
    log = Rotten()
    first = make(log)
    await first.open_room(CLAUDE)
    await first.open_room(CLAUDE, room=ELSEWHERE)
    await first.send(ALICE, prompt_submit(content="no"), "p")
    log.rot(b'"no"', b'"ok"')

    stage = make(log, check=False)
    await stage.engine.start()
    with pytest.raises(Refused) as no:
        await stage.send(ALICE, prompt_submit())

    assert no.value.reason is Reason.DAMAGED
    assert f"Record 5 of room/{ROOM} is not what was stored" in no.value.detail
    assert await stage.send(ALICE, session_join(ALICE, Role.ADMIN), room=ELSEWHERE)
    log.rot(b"", b"")
    assert await stage.send(ALICE, prompt_submit())


async def test_damaged_page_refuses_the_join_and_keeps_the_connection(make: Make) -> None:
    log = Rotten()
    stage = make(log, window=5, check=False)
    await stage.open_room(CLAUDE)
    await stage.open_room(CLAUDE, room=ELSEWHERE)
    before = stage.connect(BOB)
    await stage.send(BOB, session_join(BOB, Role.DRIVER), "bob")
    before.disconnect()
    for n in range(20):
        await stage.send(ALICE, prompt_submit(content=f"word {n}"), f"p{n}")
    bob = stage.connect(BOB)
    await stage.send(BOB, session_join(BOB, Role.DRIVER), "here", room=ELSEWHERE)
    heard = len(bob.ids)
    log.rot(b"word 7", b"word 8")

    reply = stage.submit(BOB, session_join(BOB, Role.DRIVER), "back", "bob")
    await stage.wait_until_idle()

    assert reply.refusal
    assert reply.refusal.reason is Reason.DAMAGED
    assert "p7" not in bob.ids[heard:]
    assert bob.close_reason is None
    await stage.send(ALICE, prompt_submit(), "live")
    assert "live" not in bob.ids
    await stage.send(ALICE, session_join(ALICE, Role.ADMIN), room=ELSEWHERE)
    await stage.send(ALICE, prompt_submit(), "there", room=ELSEWHERE)
    assert bob.ids[-1] == "there"


async def test_looked_up_record_is_verified_in_its_place(make: Make) -> None:
    log = Rotten()
    stage = make(log, window=5, check=False)
    await stage.open_room(CLAUDE)
    await stage.send(ALICE, prompt_submit(content="no"), "old")
    for _ in range(8):
        await stage.send(ALICE, prompt_submit())
    log.rot(b'"no"', b'"ok"')

    with pytest.raises(Refused) as no:
        await stage.send(ALICE, prompt_submit(), "new", "old")

    assert no.value.reason is Reason.DAMAGED
    assert await stage.send(ALICE, prompt_submit(), "other")


def test_serving_code_reads_only_through_verified_reads() -> None:
    files = [file for part in PARTS for file in (SOURCE / part).rglob("*.py")]
    reading = [file for file in files if re.search(r"events\.(read|find)\(", file.read_text())]

    assert [file.name for file in reading] == ["verified_reads.py"]
