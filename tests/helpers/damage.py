"""Doing to the file of a log what no program of ours does, and what is found of it."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from accord import verify
from accord.core.kernel.chain import genesis, link
from accord.home import KEYS, place
from accord.reading import opened
from accord.verify import Finding


class Report(NamedTuple):
    """Everything that `accord verify` would say."""

    damage: list[str]
    findings: dict[str, Finding]

    @property
    def holds(self) -> bool:
        return not self.damage and all(each.holds for each in self.findings.values())


async def examined(home: Path) -> Report:
    """What `accord verify` finds."""
    async with opened(place(home)) as events:
        keys = await verify.gather(events, home / KEYS)
        signatures = await verify.check_signatures(events, keys)
        damage = await verify.check_store(events)
        damage += [signatures.problem] if signatures.problem else []
        findings = [each async for each in verify.check_each(events, keys)]
    return Report(damage, {each.stream: each for each in findings})


def examine(home: Path) -> Report:
    """The same, where no loop runs."""
    return asyncio.run(examined(home))


def change(database: Path, sql: str, *values: Any) -> int:
    """Do something to the file that no program of ours does; how many rows it touched."""
    with closing(sqlite3.connect(database)) as db, db:
        return db.execute(sql, values).rowcount


def ask(database: Path, sql: str, *values: Any) -> list[Any]:
    """What stands in the file."""
    with closing(sqlite3.connect(database)) as db:
        return db.execute(sql, values).fetchall()


def flipped(value: Any, at: int, mask: int) -> Any:
    """The value with one byte changed, or the number moved."""
    match value:
        case bytes():
            place_ = at % len(value)
            return value[:place_] + bytes([value[place_] ^ mask]) + value[place_ + 1 :]
        case str():
            place_ = at % len(value)
            other = chr(33 + (ord(value[place_]) - 33 + mask) % 90)
            return value[:place_] + other + value[place_ + 1 :]
        case int():
            return value + mask if at % 2 else value - mask
        case _:
            raise TypeError(value)


def key_of(database: Path, stream: str) -> int:
    """The number that rows have in place of the name of their stream."""
    ((key,),) = ask(database, "SELECT key FROM streams WHERE name = ?", stream)
    assert isinstance(key, int)
    return key


def rewritten(database: Path, stream: str) -> None:
    """Another history of a stream, with all its hashes mended."""
    key, before = key_of(database, stream), genesis(stream)
    sql = "SELECT pos, body FROM records WHERE stream = ? ORDER BY version"
    for pos, body in ask(database, sql, key):
        forged = body.replace(b"Number", b"Member")
        before = link(before, forged)
        change(database, "UPDATE records SET body = ?, hash = ? WHERE pos = ?", forged, before, pos)
