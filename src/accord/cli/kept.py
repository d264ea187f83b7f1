"""What `accord doctor` says of what is kept here: the folder, the keys in it, the log."""

import asyncio
import os
import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from pathlib import Path

from accord.cli.findings import FAIL, OK, WARN, Check
from accord.cli.outcome import of_system
from accord.core.kernel.refusal import Refused
from accord.engine.ports import (
    DamagedError,
    EventLog,
    ForeignStoreError,
    LaterStoreError,
    StoreError,
)
from accord.home import KEYS, place
from accord.show.text import count, safe, span

OTHERS = 0o077
LITTLE_SPACE = 256 << 20
# With less, the next checkpoint may find no room.
NO_SPACE = 16 << 20
OLDEST_NOW = datetime(2025, 1, 1, tzinfo=UTC).timestamp()
SKEW_S = 60
RECORDS = "(`accord verify` checks the records)"
NOT_YET = "none yet (made when the server starts)"
SET_IT = "Set the clock: tokens and gates end by it."
ANOTHER = "name another with --data-dir or ACCORD_HOME"
RESTORE = "accord restore --force FILE   (a backup; what is there now is kept aside)"
# What to do about a log that cannot be used; any other sentence says it itself.
CURES: tuple[tuple[type[Exception], str], ...] = (
    (DamagedError, RESTORE),
    (LaterStoreError, "Run the Accord that wrote it, or a newer one."),
    (ForeignStoreError, "Name another --data-dir; if it was your log: accord restore --force FILE"),
)


def examine(home: Path, store: str | None) -> Iterator[Check]:
    """The folder, and what is in it as far as it can be reached."""
    found = list(folder(home))
    usable = (FAIL, "data") not in {(each.state, each.about) for each in found}
    if usable:
        found += [*keys(home / KEYS), *log(home, store)]
    yield from found
    if "clock" not in {each.about for each in found}:
        yield clock()


def folder(home: Path) -> Iterator[Check]:
    """Ours alone, writable, and not full."""
    if not home.exists():
        yield unmade(home)
        return
    if closed := barred(home):
        yield closed
        return
    if home.stat().st_mode & OTHERS:
        cure = f"chmod 700 {shlex.quote(str(home))}"
        yield Check(WARN, "data", f"{home} is open to others", cure)
    else:
        yield Check(OK, "data", str(home))
    free = shutil.disk_usage(home).free
    if free < LITTLE_SPACE:
        state = FAIL if free < NO_SPACE else WARN
        yield Check(state, "disk", f"{free >> 20} MiB free", f"Make room where {home} lies.")


def barred(home: Path) -> Check | None:
    """Why nothing can be kept in it, where that is so."""
    if not home.is_dir():
        return Check(FAIL, "data", f"{home} is a file", f"Remove it, or {ANOTHER}.")
    if os.access(home, os.R_OK | os.W_OK | os.X_OK):
        return None
    if os.statvfs(home).f_flag & os.ST_RDONLY:
        cure = f"Mount it for writing, or {ANOTHER}."
        return Check(FAIL, "data", f"{home} lies on a disk that may only be read", cure)
    if home.stat().st_uid == os.geteuid():
        return Check(FAIL, "data", f"{home} is closed to you", closing([home]))
    said = f"{home} belongs to {owner(home)}, and you may not use it"
    return Check(FAIL, "data", said, f"Run this as {owner(home)}, or {ANOTHER}.")


def owner(path: Path) -> str:
    """By name, where the system knows one."""
    with suppress(KeyError):
        return path.owner()
    return f"user {path.stat().st_uid}"


def unmade(home: Path) -> Check:
    """Not there yet: what counts is whether it can be made."""
    above = next(each for each in home.absolute().parents if each.exists())
    if above.is_dir() and os.access(above, os.W_OK | os.X_OK):
        return Check(OK, "data", f"{home} (made when the server starts)")
    said = f"{home} cannot be made: {above} cannot be written"
    return Check(FAIL, "data", said, f"Make it yourself, or {ANOTHER}.")


def keys(path: Path) -> Iterator[Check]:
    """Readable by you, and by nobody else."""
    if not path.is_dir():
        yield Check(OK, "keys", NOT_YET)
        return
    files = sorted([*path.glob("*.pem"), *path.glob("*.pub")]) if searched(path) else []
    shut = [each for each in (path, *files) if not readable(each)]
    if exposed := [each for each in (path, *files) if each.stat().st_mode & OTHERS]:
        yield Check(FAIL, "keys", "others may reach the signing keys", closing(exposed))
    elif shut:
        said = f"{shut[0]} cannot be read; it belongs to {owner(shut[0])}"
        yield Check(FAIL, "keys", said, closing(shut))
    elif not any(each.suffix == ".pem" for each in files):
        yield Check(WARN, "keys", "none that can sign", "accord keys rotate")
    else:
        yield Check(OK, "keys", f"{count(len(list(path.glob('*.pub'))), 'key')}, for you alone")


def searched(path: Path) -> bool:
    """Whether what lies in the folder can be seen."""
    return os.access(path, os.R_OK | os.X_OK)


def readable(path: Path) -> bool:
    """Whether it can be read as what it is."""
    return searched(path) if path.is_dir() else os.access(path, os.R_OK)


def closing(paths: list[Path]) -> str:
    """Give them back to their owner alone."""
    return " && ".join(
        f"chmod {700 if each.is_dir() else 600} {shlex.quote(str(each))}" for each in paths
    )


def log(home: Path, named: str | None = None) -> Iterator[Check]:
    """Opens, is ours, is whole, and does not come from the future."""
    try:
        is_blank = blank(home, named)
    except OSError as no:
        yield unusable(no)
        return
    if is_blank:
        yield lost(home) or Check(OK, "store", NOT_YET)
    else:
        yield from asyncio.run(wholeness(place(home, named)))


def blank(home: Path, named: str | None) -> bool:
    """Whether there is no log yet: no file, or nothing in it."""
    scheme, _, path = place(home, named).partition(":")
    file = Path(path)
    return scheme == "sqlite" and not (file.exists() and file.stat().st_size)


def gone(home: Path, named: str | None) -> Check | None:
    """A log that should be there and is not."""
    return lost(home) if blank(home, named) else None


def lost(home: Path) -> Check | None:
    """Keys are made together with a log; where there is none, it may have gone."""
    if not searched(home / KEYS) or not (held := list((home / KEYS).glob("*.pub"))):
        return None
    since = datetime.fromtimestamp(min(each.stat().st_mtime for each in held), UTC)
    said = f"nothing on the log, but keys since {since:%Y-%m-%d}"
    cure = "If there was a log: accord restore FILE, before a server makes a new one."
    return Check(WARN, "store", said, cure)


async def wholeness(url: str) -> list[Check]:
    """What the store says of itself."""
    from accord.reading import opened
    from accord.verify import check_store

    try:
        async with opened(url) as events:
            streams = len(await events.streams())
            if damage := await check_store(events):
                return [Check(FAIL, "store", safe("; ".join(damage[:3])), RESTORE)]
            whole = Check(OK, "store", f"file whole, {count(streams, 'stream')} {RECORDS}")
            return [whole, *await dated(events)]
    except (StoreError, Refused, OSError) as no:
        return [unusable(no)]


def unusable(error: Exception) -> Check:
    """Why it cannot be used, and what to do: what helps one of them would harm another."""
    for kind, cure in CURES:
        if isinstance(error, kind):
            return Check(FAIL, "store", safe(str(error).partition("; ")[0]), cure)
    words = of_system(error)[1] if isinstance(error, OSError) else str(error)
    said, _, cure = words.partition("; ")
    return Check(FAIL, "store", safe(said), safe(cure[:1].upper() + cure[1:]))


async def dated(events: EventLog) -> list[Check]:
    """Whether the clock was set back behind what is on the log."""
    from accord.verify import UNREADABLE

    if newest := await events.position():
        async with aclosing(events.tail(newest - 1)) as batches:
            (_, row), *_ = await anext(batches)
        with suppress(*UNREADABLE):
            return behind(moment_of(row.body), time.time())
    return []


def moment_of(body: bytes) -> float:
    """When a stored record was accepted, in seconds since 1970."""
    from accord.core.dialects import canonical

    return canonical.unseal("", 0, body).record.at / 1000


def behind(newest: float, now: float) -> list[Check]:
    """By how much the clock is, if by more than clocks may differ."""
    if newest - now <= SKEW_S:
        return []
    said = f"{span(newest - now)} behind the newest record of the log"
    return [Check(WARN, "clock", said, SET_IT)]


def clock() -> Check:
    """Not before this program was written."""
    now = time.time()
    if now < OLDEST_NOW:
        said = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d}, which cannot be"
        return Check(FAIL, "clock", said, SET_IT)
    return Check(OK, "clock", f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M} UTC")
