"""The files of hosts that Accord changed: what it added to each, and how to undo it to the byte.

Nothing of a file's own content is kept, because it may hold secrets of the person. What was
inserted where is enough: as long as the file is otherwise unchanged, cutting it out gives back the
file as it was. If it was changed, our entries are found by their content.
"""

import fcntl
import hashlib
import json
import os
import secrets
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

from accord.atomic_files import write_private
from accord.hosts.adapters.host import ConfigFile, FileFormat
from accord.hosts.configuration.entry import (
    Addition,
    ConfigurationError,
    Entry,
    Span,
    without_spans,
)
from accord.hosts.configuration.entry import Path as EntryPath
from accord.hosts.connections import connections_dir

STATE_FILE = "changed-files.json"
LOCK_FILE = "changed-files.lock"
LOCK_TIMEOUT_S = 20.0
LOCK_POLL_S = 0.02
MAX_FILE_BYTES = 32 << 20
NEW_FILE_MODE = 0o600
NEW_DIRECTORY_MODE = 0o700


class FileState(msgspec.Struct, frozen=True, kw_only=True):
    """What Accord added to one file; `entries` are those of each connection, by its id.

    `before` and `after` are hashes of the content without and with them; `before` is empty for a
    file that did not exist.
    """

    before: str
    after: str
    spans: tuple[Span, ...]
    created: tuple[EntryPath, ...]
    entries: dict[str, tuple[Entry, ...]]


class Change(NamedTuple):
    """A file before and after; None where there is no file."""

    path: Path
    target: Path  # the file itself, where `path` is a symbolic link
    old: str | None
    new: str | None
    state: FileState | None
    was_edited: bool  # by another program or person, since Accord wrote it

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to write."""
        return self.old != self.new


def read_states(env: Mapping[str, str]) -> dict[str, FileState]:
    """What was added, by the path of the file; raises ConfigurationError."""
    path = connections_dir(env) / STATE_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, FileState])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read ({error}). It says what Accord wrote into your hosts' "
            "settings; remove these entries by hand, then delete it"
        ) from None


def write_states(env: Mapping[str, str], states: Mapping[str, FileState]) -> None:
    """Record what was added."""
    folder = connections_dir(env)
    folder.mkdir(mode=NEW_DIRECTORY_MODE, parents=True, exist_ok=True)
    content = json.dumps(msgspec.to_builtins(dict(states)), indent=2, ensure_ascii=False) + "\n"
    write_private(folder / STATE_FILE, content.encode(), durable=True)


def plan_change(
    file: ConfigFile,
    states: Mapping[str, FileState],
    connection: str,
    remove: bool = False,  # noqa: FBT001, FBT002 - the one thing that differs
) -> Change:
    """What adding a connection's entries to a file, or removing them, makes of it."""
    target = resolve(file.path)
    old = read_text(file.path, target)
    state = states.get(os.fspath(file.path))
    try:
        original, was_edited = without_ours(file.format, old, state)
        entries = dict(state.entries) if state else {}
        if remove:
            entries.pop(connection, None)
        else:
            entries[connection] = file.entries
        added = file.format.add(start_of(file.format, original), united(entries.values()))
    except ConfigurationError as error:
        raise ConfigurationError(f"{file.path}: {error}") from None
    if not entries:
        return Change(file.path, target, old, original, None, was_edited)
    new_state = state_of(original, added, entries)
    return Change(file.path, target, old, added.text, new_state, was_edited)


def start_of(file_format: FileFormat, original: str | None) -> str:
    """The text to add to; an empty file is as good as none."""
    return original or file_format.new_text


def state_of(
    original: str | None, added: Addition, entries: dict[str, tuple[Entry, ...]]
) -> FileState:
    """What has to be remembered to undo this."""
    return FileState(
        before="" if original is None else digest(original),
        after=digest(added.text),
        spans=added.spans,
        created=added.created,
        entries=entries,
    )


def without_ours(
    file_format: FileFormat, text: str | None, state: FileState | None
) -> tuple[str | None, bool]:
    """The file without anything of ours, and whether it was changed by others since."""
    if text is None or state is None:
        return text, state is not None
    if digest(text) == state.after:
        original = without_spans(text, state.spans)
        if not state.before:
            return None, False
        if digest(original) == state.before:
            return original, False
        if digest("") == state.before:  # it was there and empty
            return "", False
    stripped = file_format.strip(text, united(state.entries.values()), state.created)
    is_empty = not state.before and stripped.strip() == file_format.new_text.strip()
    return (None if is_empty else stripped), True


def united(groups: Iterable[Sequence[Entry]]) -> tuple[Entry, ...]:
    """The entries of all connections; what they have in common, such as the MCP server, once."""
    found: list[Entry] = []
    for entry in (entry for group in groups for entry in group):
        taken = any((each.path, each.key) == (entry.path, entry.key) for each in found if entry.key)
        if not taken and entry not in found:
            found.append(entry)
    return tuple(found)


def digest(text: str) -> str:
    """The content's SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# Files


def resolve(path: Path) -> Path:
    """The file itself, where the path is a symbolic link; raises ConfigurationError."""
    try:
        target = path.resolve()
    except (OSError, RuntimeError):
        raise ConfigurationError(
            f"{path} is a symbolic link that leads nowhere; remove or repair it"
        ) from None
    if path.is_symlink() and not target.exists():
        raise ConfigurationError(
            f"{path} is a symbolic link to {target}, which does not exist; remove or repair it"
        )
    return target


def read_text(path: Path, target: Path) -> str | None:
    """The content, None if there is no file; raises ConfigurationError."""
    try:
        status = target.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ConfigurationError(f"{path} is not a file; move it away")
        if status.st_uid != os.geteuid():
            raise ConfigurationError(
                f"{path} belongs to another user, so Accord does not change it"
            )
        if status.st_size > MAX_FILE_BYTES:
            raise ConfigurationError(f"{path} is larger than {MAX_FILE_BYTES >> 20} MiB")
        return target.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise ConfigurationError(f"{path.parent} is not a directory; move it away") from None
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8 text; correct it") from None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from None


def ensure_writable(change: Change) -> None:
    """Refuse before anything is written; raises ConfigurationError."""
    folder = change.target.parent
    while not folder.exists():
        folder = folder.parent
    # Root may write everything, but a file that its owner protected stays as it is.
    exists = change.target.exists()
    is_protected = exists and not change.target.stat().st_mode & stat.S_IWUSR
    if is_protected or not os.access(folder, os.W_OK):
        blocked = change.path if is_protected else folder
        raise ConfigurationError(
            f"{blocked} is read-only, so {change.path} cannot be changed; make it writable first"
        )


def write_change(change: Change) -> None:
    """Write the file, or delete it; a reader sees the old content or the new.

    Raises ConfigurationError if it changed since it was read.
    """
    if read_text(change.path, change.target) != change.old:
        raise ConfigurationError(f"{change.path} was changed just now; run the command again")
    if change.new is None:
        change.target.unlink(missing_ok=True)
        return
    folder = change.target.parent
    folder.mkdir(mode=NEW_DIRECTORY_MODE, parents=True, exist_ok=True)
    mode = NEW_FILE_MODE
    if change.old is not None:
        mode = stat.S_IMODE(change.target.stat().st_mode)
    part = folder / f".{change.target.name}.{secrets.token_hex(8)}"
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, NEW_FILE_MODE)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(change.new.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        part.replace(change.target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def connections_lock(env: Mapping[str, str], timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
    """Held from looking for a connection to writing it; raises ConfigurationError."""
    folder = connections_dir(env)
    folder.mkdir(mode=NEW_DIRECTORY_MODE, parents=True, exist_ok=True)
    handle = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, NEW_FILE_MODE)
    deadline = time.monotonic() + timeout_s
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if time.monotonic() >= deadline:
                    raise ConfigurationError(
                        "Another `accord connect` or `accord disconnect` is running, perhaps with "
                        "a question in another terminal; finish it, then run the command again"
                    ) from None
                time.sleep(LOCK_POLL_S)
        yield
    finally:
        os.close(handle)  # releases the lock


def apply_changes(env: Mapping[str, str], changes: Sequence[Change]) -> None:
    """Write all files, and what is needed to undo it; on an error, files written before go back.

    The caller holds `connections_lock`. A file that another program wrote since it was read is not
    written.
    """
    for change in changes:
        if change.is_needed:
            ensure_writable(change)
    states = read_states(env)
    wanted = dict(states)
    for change in changes:
        if change.state is None:
            wanted.pop(os.fspath(change.path), None)
        else:
            wanted[os.fspath(change.path)] = change.state
    done: list[Change] = []
    try:
        for change in changes:
            if change.is_needed:
                write_change(change)
                done.append(change)
        write_states(env, wanted)
    except BaseException:
        for change in reversed(done):
            write_change(change._replace(old=change.new, new=change.old))
        raise


def unified_diff(change: Change) -> list[str]:
    """The change as a unified diff, line by line."""
    import difflib

    old, new = ((text or "").splitlines() for text in (change.old, change.new))
    before, after = (
        "/dev/null" if text is None else os.fspath(change.path) for text in (change.old, change.new)
    )
    return list(difflib.unified_diff(old, new, before, after, lineterm=""))
