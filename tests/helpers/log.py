"""A log on disk with rooms, people and signed heads, to be damaged."""

import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from accord.app import make_engine
from accord.core.kernel.authority import Role
from accord.core.kernel.log import Message
from accord.core.kernel.times import iso
from accord.desk import LocalDesk
from accord.engine.engine import Engine
from accord.engine.heads import HeadSigner
from accord.engine.ports import EventLog
from accord.home import DATABASE, KEYS, place
from accord.stores import open_log
from accord.transports.identity import Keyring
from tests.helpers.desk import wish
from tests.helpers.room import ALICE, CLAUDE, T0, Step, joined, opened, prompts, proposes, step

ROOMS = ("r1", "r2")
# Makes a log in a data directory.
Story = Callable[[Path], Coroutine[Any, Any, None]]


async def a_log(home: Path, *, signed: bool = True, rounds: int = 3) -> None:
    """Rooms in which something was said, and a few tokens; signed to the last record."""
    events = await open_log(place(home))
    engine = make_engine(events)
    keyring = Keyring.open(home / KEYS)
    signer = HeadSigner(events, keyring, engine.clock)
    try:
        desk = LocalDesk(engine, keyring, engine.clock)
        await desk.introduce()
        await desk.office().issue(wish("alice", Role.DRIVER))
        for turn in range(rounds):
            for room in ROOMS:
                await say_in(engine, room, turn)
            if signed:
                await sign_all(events, signer)
        await engine.settle()
    finally:
        engine.scheduler.stop()
        await events.close()


async def say_in(engine: Engine, room: str, turn: int) -> None:
    """The session begins, or something more is said in it."""
    script: tuple[Step, ...] = (
        step(ALICE, prompts(content=f"Number {turn}"), id=f"prompt-{turn}"),
        step(CLAUDE, proposes(arguments={"turn": turn}), id=f"proposal-{turn}"),
    )
    if turn == 0:
        script = (opened(by=ALICE), joined(CLAUDE, Role.DRIVER), *script)
    for nth, (actor, body, id, ref, *_) in enumerate(script):
        name = id or f"begin-{nth}"
        message = Message(f"{room}-{name}", iso(T0), room, actor.seat, body, ref)
        await engine.handle(message, actor)


async def sign_all(events: EventLog, signer: HeadSigner) -> None:
    """A signature for the newest record of every stream."""
    for stream, version in (await events.streams()).items():
        (row,) = await events.read(stream, version - 1)
        await signer.sign(row)


def copied(home: Path, to: Path) -> Path:
    """The same log and keys elsewhere; returns the copy of the database."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(home, to)
    return to / DATABASE
