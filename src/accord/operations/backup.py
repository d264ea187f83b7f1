"""Backup and restore: the log and the signing keys in one file."""

import asyncio
import os
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from glob import escape
from hashlib import sha256
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from accord.atomic_files import create_part_file, sync_directory, write_private
from accord.core.kernel.messages import Instant
from accord.core.kernel.refusal import Reason, Refused
from accord.data_dir import KEYS_DIR_NAME, store_url_of
from accord.engine.ports import DiskFullError, StoreError
from accord.identity.keyring import Keyring, load_private_key
from accord.operations import verify
from accord.operations.local_log import ROOM_PREFIX, ensure_log_exists, open_existing_log
from accord.stores.sqlite import backup
from accord.stores.sqlite.backup import BackupExtras, CopyProgress
from accord.stores.sqlite.file_swap import swap_file

PRIVATE_SUFFIX = ".pem"
PART_SUFFIX = ".part"
SQLITE_SCHEME = "sqlite:"
BACKUP_TOOLS = {
    "postgresql": "a postgresql database use its own tools, such as `pg_dump --schema=accord`",
    "nats": "NATS use its own tools, such as `nats stream backup`",
}
MAX_PROBLEMS = 3
# Only key files are accepted, since names found in a backup become files on disk.
_KEY_FILE = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}\.(pub|pem)")
MAX_KEY_BYTES = 4096


class BackupSummary(msgspec.Struct, frozen=True):
    """Contents of a backup; `head` is one hash over every record in it."""

    sessions: int
    records: int
    unsigned: int
    head: str
    made_at: Instant | None
    keys: tuple[str, ...]
    can_sign: bool


class RestoreResult(msgspec.Struct, frozen=True):
    """What was restored, where the old store is now, and which keys are in use."""

    summary: BackupSummary
    before: Path | None
    keys: str


def make_backup(
    home: Path, store: str | None, file: Path, *, at: Instant, private: bool, progress: CopyProgress
) -> "PartFile":
    """Write a verified copy next to `file`; Refused if verification fails."""
    source = store_path(store_url_of(home, store))
    ensure_log_exists(f"{SQLITE_SCHEME}{source}")
    ensure_outside_store(file, source)
    draft = PartFile(file)
    try:
        backup.copy_live(str(source), str(draft.path), progress)
        files = dict(key_files(home / KEYS_DIR_NAME, private=private))
        backup.add_extras(str(draft.path), BackupExtras(at, files))
        draft.summary = check_copy(draft.path, BackupExtras(at, files))
        backup.finish_copy(str(draft.path))
    except StoreError as error:
        draft.discard()
        known = file if isinstance(error, DiskFullError) else source
        raise error_about(error, draft.path, known) from error
    except BaseException:
        draft.discard()
        raise
    return draft


def error_about(error: StoreError, part: Path, known: Path) -> StoreError:
    """The error with the path that the user knows instead of the temporary file."""
    return type(error)(str(error).replace(str(part), str(known)), str(known))


def restore(
    home: Path, store: str | None, file: Path, *, instant: str, progress: CopyProgress
) -> RestoreResult:
    """Replace the store with a backup. The caller must hold the lock of the data directory."""
    target = store_path(store_url_of(home, store)).resolve()
    ensure_backup_exists(file)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in target.parent.glob(f".{escape(target.name)}.*{PART_SUFFIX}*"):
        left.unlink()  # left by a killed restore; the lock of the directory allows one at a time
    with open_part_file(target) as draft:
        try:
            backup.copy_idle(str(file), str(draft.path), progress)
            packed = backup.take_extras(str(draft.path))
            ensure_only_keys(packed.files)
            holding = check_copy(draft.path, packed)
            backup.finish_copy(str(draft.path))
        except StoreError as error:
            known = target if isinstance(error, DiskFullError) else file
            raise error_about(error, draft.path, known) from error
        sync_file(draft.path)
        keys = restore_keys(home / KEYS_DIR_NAME, packed.files)
        before = swap_file(target, draft.path, instant)
    return RestoreResult(holding, before, keys)


def ensure_backup_exists(file: Path) -> None:
    if not file.is_file():
        raise Refused(Reason.NOT_FOUND, f"There is no backup {file}; check the name")


def store_path(url: str) -> Path:
    if not url.startswith(SQLITE_SCHEME):
        scheme = url.partition(":")[0]
        tool = BACKUP_TOOLS.get(scheme, BACKUP_TOOLS["postgresql"])
        detail = (
            "`accord backup` and `accord restore` copy SQLite files; "
            f"for a log in {tool}, and keep a copy of the keys"
        )
        raise Refused(Reason.MALFORMED, detail)
    return Path(url.removeprefix(SQLITE_SCHEME))


def ensure_outside_store(file: Path, source: Path) -> None:
    """Refuse to write a backup over the log or its companion files."""
    there, own = file.resolve(), source.resolve()
    if there.parent == own.parent and there.name.startswith(own.name):
        raise Refused(Reason.MALFORMED, f"{file} is part of the log itself; name another file")


# Contents of a copy


def check_copy(path: Path, packed: BackupExtras) -> BackupSummary:
    """Verify every hash chain and signature in the copy; raises Refused."""
    damage, findings = asyncio.run(_check_copy(path, public_keys(packed.files)))
    broken = [
        f"{each.stream} {each.bad_version} {each.problem}" for each in findings if each.problem
    ]
    if problems := damage + broken:
        first = "; ".join(problems[:MAX_PROBLEMS])
        hint = "Nothing was written; run `accord verify` for details"
        detail = f"The log failed verification: {first}. {hint}"
        raise Refused(Reason.WRONG_STATE, detail)
    return BackupSummary(
        sessions=sum(each.stream.startswith(ROOM_PREFIX) for each in findings),
        records=sum(each.version - each.removed for each in findings),
        unsigned=sum(each.unsigned for each in findings),
        head=combined_head(findings),
        made_at=packed.made_at,
        keys=tuple(sorted({Path(name).stem for name in packed.files})),
        can_sign=any(name.endswith(PRIVATE_SUFFIX) for name in packed.files),
    )


async def _check_copy(
    path: Path, keys: Mapping[str, Ed25519PublicKey]
) -> tuple[list[str], list[verify.StreamReport]]:
    async with open_existing_log(f"{SQLITE_SCHEME}{path}") as events:
        damage = await verify.check_store(events)
        known = verify.PublicKeys(keys, await verify.keys_from_log(events))
        signatures = await verify.check_signatures(events, known)
        damage += [signatures.problem] if signatures.problem else []
        return damage, [each async for each in verify.check_all_streams(events, known)]


def combined_head(findings: Iterable[verify.StreamReport]) -> str:
    """One hash over the heads of all streams: equal for copies with equal contents."""
    lines = sorted(f"{each.stream} {each.version}:{each.hash}\n" for each in findings)
    return sha256("".join(lines).encode()).hexdigest()


# Keys


def key_files(folder: Path, *, private: bool) -> Iterator[tuple[str, bytes]]:
    """Key files of the keyring; private keys only if asked for."""
    for file in sorted(folder.glob("*")) if folder.is_dir() else ():
        if _KEY_FILE.fullmatch(file.name) and (private or file.suffix != PRIVATE_SUFFIX):
            yield file.name, file.read_bytes()


def public_keys(files: Mapping[str, bytes]) -> dict[str, Ed25519PublicKey]:
    """The public keys among these files."""
    found = ((Path(name), verify.parse_public_key(content)) for name, content in files.items())
    return {path.stem: key for path, key in found if key and path.suffix != PRIVATE_SUFFIX}


def ensure_only_keys(files: Mapping[str, bytes]) -> None:
    """Refuse a backup with other files than keys."""
    for name, content in files.items():
        if not _KEY_FILE.fullmatch(name) or len(content) > MAX_KEY_BYTES:
            detail = "This file was not made by `accord backup`: it contains other files than keys"
            raise Refused(Reason.WRONG_STATE, detail)


def ensure_matching_keys(files: Mapping[str, bytes]) -> None:
    """Refuse keys that cannot be read and private keys that do not match their public key."""
    public = public_keys(files)
    for name, content in files.items():
        known = public.get(Path(name).stem)
        key = load_private_key(content) if name.endswith(PRIVATE_SUFFIX) else None
        if known is None or (
            name.endswith(PRIVATE_SUFFIX) and (not key or key.public_key() != known)
        ):
            detail = f"{name} in this backup is not a valid key; nothing was restored"
            raise Refused(Reason.WRONG_STATE, detail)


def restore_keys(folder: Path, files: Mapping[str, bytes]) -> str:
    """Keep the keys of this server; if it has no private key, install those of the backup.

    So a key that was rotated or removed since the backup was made does not come back.
    """
    if any(folder.glob(f"*{PRIVATE_SUFFIX}")):
        return "kept"
    if not files:
        return "none"
    ensure_matching_keys(files)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Public keys first: a private key without its public key could not be verified.
    for name in sorted(files, key=lambda name: name.endswith(PRIVATE_SUFFIX)):
        write_private(folder / name, files[name], durable=True)
    Keyring(folder).check()
    return "restored" if any(name.endswith(PRIVATE_SUFFIX) for name in files) else "public"


# Files


class PartFile:
    """A temporary file next to its target, which never shows a partial state."""

    summary: BackupSummary

    def __init__(self, file: Path) -> None:
        self.file = file
        self.path = file.with_name(f".{file.name}.{secrets.token_hex(4)}{PART_SUFFIX}")
        os.close(create_part_file(self.path, file))

    def move_into_place(self, *, force: bool) -> None:
        """Rename to the target, durably; replaces an existing file only with `force`."""
        sync_file(self.path)
        if force:
            self.path.replace(self.file)
        else:
            self._link()
        sync_directory(self.file.absolute().parent)

    def discard(self) -> None:
        for ending in ("", "-wal", "-shm", "-journal"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)

    def _link(self) -> None:
        try:
            os.link(self.path, self.file)
        except FileExistsError:
            raise exists_refusal(self.file) from None
        except OSError:  # the file system has no hard links
            if os.path.lexists(self.file):
                raise exists_refusal(self.file) from None
            self.path.rename(self.file)
        self.path.unlink(missing_ok=True)


@contextmanager
def open_part_file(file: Path) -> Iterator[PartFile]:
    """A temporary file that is deleted at the end, unless it was moved."""
    draft = PartFile(file)
    try:
        yield draft
    finally:
        draft.discard()


def exists_refusal(file: Path) -> Refused:
    return Refused(Reason.WRONG_STATE, f"{file} already exists; name another file, or add --force")


def sync_file(path: Path) -> None:
    """Flush the file to disk."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
