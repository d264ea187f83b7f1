"""Checks of the data directory by `accord doctor`: permissions, keys, log, clock."""

import asyncio
import os
import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import aclosing, suppress
from datetime import UTC, datetime
from pathlib import Path

from accord.cli.doctor.check_result import FAIL, OK, WARN, CheckResult
from accord.cli.errors import classify_os_error
from accord.core.kernel.refusal import Refused
from accord.data_dir import KEYS_DIR_NAME, store_url_of
from accord.engine.ports import (
    DamagedError,
    EventLog,
    ForeignStoreError,
    NewerStoreError,
    StoreError,
)
from accord.show.text import escape_controls, format_duration, plural

GROUP_OTHER_BITS = 0o077
LOW_DISK_BYTES = 256 << 20
# With less, the next checkpoint of the database may fail.
MIN_DISK_BYTES = 16 << 20
EARLIEST_TIME_S = datetime(2025, 1, 1, tzinfo=UTC).timestamp()
CLOCK_SKEW_S = 60
VERIFY_HINT = "(`accord verify` checks the records)"
NONE_YET = "none yet (created when the server starts)"
SET_CLOCK_ADVICE = "Set the clock: tokens and gates expire by it."
OTHER_DIR_ADVICE = "use another directory with --data-dir or ACCORD_HOME"
NEWER_ADVICE = "Use the version of Accord that wrote it, or a newer one."
# Advice for a log that cannot be used, by the kind of store; all other errors carry their own.
ADVICE_BY_ERROR: dict[str, dict[type[Exception], str]] = {
    "sqlite": {
        DamagedError: "accord restore --force FILE   (FILE is a backup; the present log is moved "
        "aside)",
        NewerStoreError: NEWER_ADVICE,
        ForeignStoreError: "Use another --data-dir; if this was your log: accord restore --force "
        "FILE",
    },
    "postgresql": {
        DamagedError: "Restore a backup of the database with pg_restore.",
        NewerStoreError: NEWER_ADVICE,
        ForeignStoreError: "Name another database with ACCORD_STORE.",
    },
    "nats": {
        DamagedError: "Restore a backup of the stream with `nats stream restore`.",
        NewerStoreError: NEWER_ADVICE,
        ForeignStoreError: "Name another stream with ACCORD_STORE.",
    },
}
ADVICE_BY_ERROR["postgres"] = ADVICE_BY_ERROR["postgresql"]


def check_data(home: Path, store: str | None) -> Iterator[CheckResult]:
    """The directory and, if it can be used, its contents."""
    results = list(check_folder(home))
    usable = (FAIL, "data") not in {(result.state, result.about) for result in results}
    if usable:
        results += [*check_keys(home / KEYS_DIR_NAME), *check_log(home, store)]
    yield from results
    if "clock" not in {result.about for result in results}:
        yield check_clock()


def check_folder(home: Path) -> Iterator[CheckResult]:
    """The directory is private, writable, and has free space."""
    if not home.exists():
        yield check_creatable(home)
        return
    if problem := access_problem(home):
        yield problem
        return
    if home.stat().st_mode & GROUP_OTHER_BITS:
        cure = f"chmod 700 {shlex.quote(str(home))}"
        yield CheckResult(WARN, "data", f"other users can read {home}", cure)
    else:
        yield CheckResult(OK, "data", str(home))
    free = shutil.disk_usage(home).free
    if free < LOW_DISK_BYTES:
        state = FAIL if free < MIN_DISK_BYTES else WARN
        yield CheckResult(
            state, "disk", f"{free >> 20} MiB free", f"Free some space on the disk of {home}."
        )


def access_problem(home: Path) -> CheckResult | None:
    """Why the directory cannot be used; None if it can."""
    if not home.is_dir():
        return CheckResult(FAIL, "data", f"{home} is a file", f"Remove it, or {OTHER_DIR_ADVICE}.")
    if os.access(home, os.R_OK | os.W_OK | os.X_OK):
        return None
    if os.statvfs(home).f_flag & os.ST_RDONLY:
        cure = f"Mount it for writing, or {OTHER_DIR_ADVICE}."
        return CheckResult(FAIL, "data", f"{home} is on a read-only disk", cure)
    if home.stat().st_uid == os.geteuid():
        return CheckResult(
            FAIL, "data", f"you have no permission to use {home}", chmod_command([home])
        )
    says = f"{home} belongs to {owner_name(home)}, and you have no permission to use it"
    return CheckResult(
        FAIL, "data", says, f"Run this as {owner_name(home)}, or {OTHER_DIR_ADVICE}."
    )


def owner_name(path: Path) -> str:
    """The owner's name, or the numeric id if the system has no name for it."""
    with suppress(KeyError):
        return path.owner()
    return f"user {path.stat().st_uid}"


def check_creatable(home: Path) -> CheckResult:
    """The directory does not exist yet: check that it can be created."""
    above = next(parent for parent in home.absolute().parents if parent.exists())
    if above.is_dir() and os.access(above, os.W_OK | os.X_OK):
        return CheckResult(OK, "data", f"{home} (created when the server starts)")
    says = f"{home} cannot be created: you may not write to {above}"
    return CheckResult(FAIL, "data", says, f"Create it yourself, or {OTHER_DIR_ADVICE}.")


def check_keys(path: Path) -> Iterator[CheckResult]:
    """The keys are readable by this user and no other."""
    if not path.is_dir():
        yield CheckResult(OK, "keys", NONE_YET)
        return
    files = sorted([*path.glob("*.pem"), *path.glob("*.pub")]) if is_searchable(path) else []
    unreadable = [file for file in (path, *files) if not is_readable(file)]
    if exposed := [file for file in (path, *files) if file.stat().st_mode & GROUP_OTHER_BITS]:
        yield CheckResult(
            FAIL, "keys", "other users can access the signing keys", chmod_command(exposed)
        )
    elif unreadable:
        first = unreadable[0]
        says = f"{first} cannot be read; it belongs to {owner_name(first)}"
        yield CheckResult(FAIL, "keys", says, chmod_command(unreadable))
    elif not any(file.suffix == ".pem" for file in files):
        yield CheckResult(
            WARN, "keys", "no private key, so nothing can be signed", "accord keys rotate"
        )
    else:
        yield CheckResult(
            OK, "keys", f"{plural(len(list(path.glob('*.pub'))), 'key')}, readable only by you"
        )


def is_searchable(path: Path) -> bool:
    """Whether the contents of a directory can be listed."""
    return os.access(path, os.R_OK | os.X_OK)


def is_readable(path: Path) -> bool:
    return is_searchable(path) if path.is_dir() else os.access(path, os.R_OK)


def chmod_command(paths: list[Path]) -> str:
    """The command that makes the files private to their owner."""
    return " && ".join(
        f"chmod {700 if path.is_dir() else 600} {shlex.quote(str(path))}" for path in paths
    )


def check_log(home: Path, named: str | None = None) -> Iterator[CheckResult]:
    """The log opens, belongs to Accord, is undamaged, and has no records from the future."""
    try:
        is_blank = has_no_log(home, named)
    except OSError as error:
        yield store_problem(error)
        return
    if is_blank:
        yield lost_log(home) or CheckResult(OK, "store", NONE_YET)
    else:
        yield from asyncio.run(check_integrity(store_url_of(home, named)))


def has_no_log(home: Path, named: str | None) -> bool:
    """Whether the log file is missing or empty."""
    scheme, _, path = store_url_of(home, named).partition(":")
    file = Path(path)
    return scheme == "sqlite" and not (file.exists() and file.stat().st_size)


def missing_log(home: Path, named: str | None) -> CheckResult | None:
    """A warning if a log is missing that should exist."""
    return lost_log(home) if has_no_log(home, named) else None


def lost_log(home: Path) -> CheckResult | None:
    """A warning if there are keys but no log: both are created together, so it may be lost."""
    if not is_searchable(home / KEYS_DIR_NAME) or not (
        key_files := list((home / KEYS_DIR_NAME).glob("*.pub"))
    ):
        return None
    since = datetime.fromtimestamp(min(file.stat().st_mtime for file in key_files), UTC)
    says = f"the log is empty, but there are keys from {since:%Y-%m-%d}"
    cure = "If a log was lost: accord restore FILE, before a server creates a new one."
    return CheckResult(WARN, "store", says, cure)


async def check_integrity(url: str) -> list[CheckResult]:
    """The store's own integrity check."""
    from accord.operations.local_log import open_existing_log
    from accord.operations.verify import check_store

    try:
        async with open_existing_log(url) as events:
            streams = len(await events.streams())
            if damage := await check_store(events):
                said = escape_controls("; ".join(damage[:3]))
                return [CheckResult(FAIL, "store", said, advice_by_error(url)[DamagedError])]
            intact = CheckResult(
                OK, "store", f"undamaged, {plural(streams, 'stream')} {VERIFY_HINT}"
            )
            return [intact, *await check_newest_record(events)]
    except (StoreError, Refused, OSError) as error:
        return [store_problem(error, url)]


def advice_by_error(url: str) -> dict[type[Exception], str]:
    """The advice for the kind of store that a URL names."""
    scheme = url.partition(":")[0]
    return ADVICE_BY_ERROR.get(scheme, ADVICE_BY_ERROR["sqlite"])


def store_problem(error: Exception, url: str = "sqlite:") -> CheckResult:
    """Why the log cannot be used, with the advice for this kind of error and no other."""
    for kind, cure in advice_by_error(url).items():
        if isinstance(error, kind):
            return CheckResult(FAIL, "store", escape_controls(str(error).partition("; ")[0]), cure)
    sentence = classify_os_error(error)[1] if isinstance(error, OSError) else str(error)
    says, _, cure = sentence.partition("; ")
    return CheckResult(
        FAIL, "store", escape_controls(says), escape_controls(cure[:1].upper() + cure[1:])
    )


async def check_newest_record(events: EventLog) -> list[CheckResult]:
    """Whether the clock is behind the newest record of the log."""
    from accord.operations.verify import DECODE_ERRORS

    if newest := await events.position():
        async with aclosing(events.tail(newest - 1)) as batches:
            (_, row), *_ = await anext(batches)
        with suppress(*DECODE_ERRORS):
            return check_clock_behind(record_time_s(row.body), time.time())
    return []


def record_time_s(body: bytes) -> float:
    """When a stored record was accepted, in seconds since 1970."""
    from accord.core.dialects import stored_records

    return stored_records.decode_record("", 0, body).record.at / 1000


def check_clock_behind(newest: float, now: float) -> list[CheckResult]:
    """A warning if the clock is behind by more than the tolerated skew."""
    if newest - now <= CLOCK_SKEW_S:
        return []
    says = f"{format_duration(newest - now)} behind the newest record of the log"
    return [CheckResult(WARN, "clock", says, SET_CLOCK_ADVICE)]


def check_clock() -> CheckResult:
    """The clock is not set to a time before this program was written."""
    now = time.time()
    if now < EARLIEST_TIME_S:
        says = f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d}, which is in the past"
        return CheckResult(FAIL, "clock", says, SET_CLOCK_ADVICE)
    return CheckResult(OK, "clock", f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M} UTC")
