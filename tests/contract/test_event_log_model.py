"""Contract of every store: any sequence of calls gives the results of a simple model."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.engine.ports import Conflict, Duplicate, EventLog, Row
from accord.stores import open_log
from tests.contract.conftest import STORES, place
from tests.contract.rows import first

Outcome = type[Exception] | None
# A stream, how far the writer is off the end of it, and the ids of its rows.
Ask = tuple[str, int, list[str]]

ids = st.lists(st.sampled_from("abcdefghij"), max_size=3)
asks = st.tuples(st.sampled_from(["room/a", "room/b", "c"]), st.sampled_from([0, 0, 0, -1, 1]), ids)
bodies = st.binary(max_size=40)


class Model:
    """What a log means."""

    def __init__(self) -> None:
        self.streams: dict[str, list[Row]] = {}
        self.log: list[Row] = []

    def append(self, stream: str, expected: int, rows: Sequence[Row]) -> Outcome:
        held = self.streams.get(stream, [])
        names = [row.id for row in (*held, *rows)]
        if expected != len(held):
            return Conflict
        if len(set(names)) < len(names):
            return Duplicate
        if rows:
            self.streams[stream] = [*held, *rows]
            self.log += rows
        return None

    def rows(self, ask: Ask, body: bytes) -> tuple[str, int, list[Row]]:
        stream, off, names = ask
        at = max(len(self.streams.get(stream, [])) + off, 0)
        rows = [Row(stream, at + 1 + n, name, body, b"#") for n, name in enumerate(names)]
        return stream, at, rows


@pytest.mark.parametrize("scheme", STORES)
@given(rounds=st.lists(st.lists(asks, max_size=6), max_size=8), body=bodies)
@settings(max_examples=40, deadline=None)
async def test_store_behaves_like_its_model(
    scheme: str, rounds: list[list[Ask]], body: bytes
) -> None:
    with TemporaryDirectory() as folder:
        log = await open_log(place(scheme, Path(folder)))
        model = Model()

        for together in rounds:
            wanted = [model.rows(ask, body) for ask in together]
            answers = [model.append(*each) for each in wanted]
            assert answers == await outcomes(log, wanted)

        await same(log, model)
        await log.close()


async def outcomes(log: EventLog, wanted: list[tuple[str, int, list[Row]]]) -> list[Outcome]:
    asked = (log.append(*each) for each in wanted)
    told = await asyncio.gather(*asked, return_exceptions=True)
    return [type(each) if isinstance(each, Exception) else None for each in told]


async def same(log: EventLog, model: Model) -> None:
    assert {name: len(rows) for name, rows in model.streams.items()} == await log.streams()
    assert len(model.log) == await log.position()
    for name, rows in model.streams.items():
        assert rows == await log.read(name)
        assert rows[1:] == await log.find(name, [row.id for row in rows[1:]])
    if model.log:
        assert list(enumerate(model.log, 1)) == await first(log, len(model.log))
