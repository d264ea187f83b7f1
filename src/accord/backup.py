"""Copies of everything a server needs to come back: the log, and the keys in the same file."""

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

from accord import verify
from accord.core.kernel.log import Instant
from accord.core.kernel.refusal import Refused, Why
from accord.engine.ports import NoRoomError, StoreError
from accord.files import begin, sync, write_private
from accord.home import KEYS, place
from accord.reading import PREFIX, ensure_there, opened
from accord.stores.sqlite import copying
from accord.stores.sqlite.copying import Packed, Progress
from accord.stores.sqlite.swap import swap
from accord.transports.keyring import Keyring, private_key

PRIVATE = ".pem"
PART = ".part"
SCHEME = "sqlite:"
MOST_PROBLEMS = 3
# The files of a keyring and nothing else: what a backup names is written to disk.
_KEY_FILE = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}\.(pub|pem)")
LARGEST_KEY = 4096


class Holding(msgspec.Struct, frozen=True):
    """What a copy holds; `head` stands for every record in it."""

    sessions: int
    records: int
    unsigned: int
    head: str
    made_at: Instant | None
    keys: tuple[str, ...]
    can_sign: bool


class Restored(msgspec.Struct, frozen=True):
    """What was brought back, where the old store lies now, and which keys are in use."""

    holding: Holding
    before: Path | None
    keys: str


def make(
    home: Path, store: str | None, file: Path, *, at: Instant, private: bool, progress: Progress
) -> "Draft":
    """A checked copy of the log that waits beside `file`; raises Refused where it does not hold."""
    source = path_of(place(home, store))
    ensure_there(f"{SCHEME}{source}")
    ensure_elsewhere(file, source)
    draft = Draft(file)
    try:
        copying.copy_live(str(source), str(draft.path), progress)
        files = dict(key_files(home / KEYS, private=private))
        copying.pack(str(draft.path), Packed(at, files))
        draft.holding = examined(draft.path, Packed(at, files))
        copying.close_up(str(draft.path))
    except StoreError as no:
        draft.drop()
        raise renamed(no, draft.path, file if isinstance(no, NoRoomError) else source) from no
    except BaseException:
        draft.drop()
        raise
    return draft


def renamed(error: StoreError, part: Path, known: Path) -> StoreError:
    """The same, of the file that people know."""
    return type(error)(str(error).replace(str(part), str(known)), str(known))


def restore(
    home: Path, store: str | None, file: Path, *, instant: str, progress: Progress
) -> Restored:
    """Put the copy in the place of the store. Whoever calls holds the data directory."""
    target = path_of(place(home, store)).resolve()
    ensure_backup(file)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for left in target.parent.glob(f".{escape(target.name)}.*{PART}*"):
        left.unlink()  # by a restore that was killed; only one at a time holds the directory
    with drafted(target) as draft:
        try:
            copying.copy_still(str(file), str(draft.path), progress)
            packed = copying.unpack(str(draft.path))
            ensure_keys(packed.files)
            holding = examined(draft.path, packed)
            copying.close_up(str(draft.path))
        except StoreError as no:
            known = target if isinstance(no, NoRoomError) else file
            raise renamed(no, draft.path, known) from no
        durable(draft.path)
        keys = take_keys(home / KEYS, packed.files)
        before = swap(target, draft.path, instant)
    return Restored(holding, before, keys)


def ensure_backup(file: Path) -> None:
    """A file is there, whatever may be in it."""
    if not file.is_file():
        raise Refused(Why.UNKNOWN, f"There is no backup {file}; check the name")


def path_of(url: str) -> Path:
    """The file of the store."""
    if not url.startswith(SCHEME):
        raise Refused(Why.MALFORMED, f"Only a store of SQLite can be copied so, not {url}")
    return Path(url.removeprefix(SCHEME))


def ensure_elsewhere(file: Path, source: Path) -> None:
    """A copy never takes the place of what it is a copy of."""
    there, own = file.resolve(), source.resolve()
    if there.parent == own.parent and there.name.startswith(own.name):
        raise Refused(Why.MALFORMED, f"{file} is part of the log itself; name another file")


# What is in a copy


def examined(path: Path, packed: Packed) -> Holding:
    """Walk every chain in the copy and check every signature; raises Refused."""
    damage, findings = asyncio.run(_examined(path, filed(packed.files)))
    broken = [
        f"{each.stream} {each.bad_version} {each.problem}" for each in findings if each.problem
    ]
    if problems := damage + broken:
        told = "; ".join(problems[:MOST_PROBLEMS])
        detail = f"The log does not hold: {told}. Nothing was written; `accord verify` tells more"
        raise Refused(Why.WRONG_STATE, detail)
    return Holding(
        sessions=sum(each.stream.startswith(PREFIX) for each in findings),
        records=sum(each.version - each.removed for each in findings),
        unsigned=sum(each.unsigned for each in findings),
        head=head_of(findings),
        made_at=packed.made_at,
        keys=tuple(sorted({Path(name).stem for name in packed.files})),
        can_sign=any(name.endswith(PRIVATE) for name in packed.files),
    )


async def _examined(
    path: Path, keys: Mapping[str, Ed25519PublicKey]
) -> tuple[list[str], list[verify.Finding]]:
    async with opened(f"{SCHEME}{path}") as events:
        damage = await verify.check_store(events)
        known = verify.Keys(keys, await verify.recorded(events))
        signatures = await verify.check_signatures(events, known)
        damage += [signatures.problem] if signatures.problem else []
        return damage, [each async for each in verify.check_each(events, known)]


def head_of(findings: Iterable[verify.Finding]) -> str:
    """One hash over the heads of all streams: two copies with the same one hold the same."""
    lines = sorted(f"{each.stream} {each.version}:{each.hash}\n" for each in findings)
    return sha256("".join(lines).encode()).hexdigest()


# Keys


def key_files(folder: Path, *, private: bool) -> Iterator[tuple[str, bytes]]:
    """The files of the keyring; those that can sign only on request."""
    for file in sorted(folder.glob("*")) if folder.is_dir() else ():
        if _KEY_FILE.fullmatch(file.name) and (private or file.suffix != PRIVATE):
            yield file.name, file.read_bytes()


def filed(files: Mapping[str, bytes]) -> dict[str, Ed25519PublicKey]:
    """The public keys among these files."""
    found = ((Path(name), verify.load(content)) for name, content in files.items())
    return {path.stem: key for path, key in found if key and path.suffix != PRIVATE}


def ensure_keys(files: Mapping[str, bytes]) -> None:
    """Nothing but keys, under names of keys."""
    for name, content in files.items():
        if not _KEY_FILE.fullmatch(name) or len(content) > LARGEST_KEY:
            detail = "This backup holds files that are no keys of Accord; it was not made by us"
            raise Refused(Why.WRONG_STATE, detail)


def ensure_sound(files: Mapping[str, bytes]) -> None:
    """Each of them holds a key, and what signs is what its public half checks."""
    public = filed(files)
    for name, content in files.items():
        known = public.get(Path(name).stem)
        key = private_key(content) if name.endswith(PRIVATE) else None
        if known is None or (name.endswith(PRIVATE) and (not key or key.public_key() != known)):
            detail = f"{name} in this backup is no key of Accord; nothing was restored"
            raise Refused(Why.WRONG_STATE, detail)


def take_keys(folder: Path, files: Mapping[str, bytes]) -> str:
    """Keys that are in use here stay as they are; where none can sign, those of the copy come in.

    So a key that was rotated away or forgotten since the copy was made does not come back.
    """
    if any(folder.glob(f"*{PRIVATE}")):
        return "kept"
    if not files:
        return "none"
    ensure_sound(files)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A public half first: a key that signs what nobody can check would be no key.
    for name in sorted(files, key=lambda name: name.endswith(PRIVATE)):
        write_private(folder / name, files[name], durable=True)
    Keyring(folder).check()
    return "restored" if any(name.endswith(PRIVATE) for name in files) else "public"


# Files


class Draft:
    """A file beside the one that it is to become; nobody sees it half done."""

    holding: Holding

    def __init__(self, file: Path) -> None:
        self.file = file
        self.path = file.with_name(f".{file.name}.{secrets.token_hex(4)}{PART}")
        os.close(begin(self.path, file))

    def become(self, *, force: bool) -> None:
        """Take the name, durably; an existing file gives way only to force, a link never counts."""
        durable(self.path)
        if force:
            self.path.replace(self.file)
        else:
            self._link()
        sync(self.file.absolute().parent)

    def drop(self) -> None:
        """Leave nothing behind."""
        for ending in ("", "-wal", "-shm", "-journal"):
            self.path.with_name(self.path.name + ending).unlink(missing_ok=True)

    def _link(self) -> None:
        try:
            os.link(self.path, self.file)
        except FileExistsError:
            raise there_already(self.file) from None
        except OSError:  # a disk without links
            if os.path.lexists(self.file):
                raise there_already(self.file) from None
            self.path.rename(self.file)
        self.path.unlink(missing_ok=True)


@contextmanager
def drafted(file: Path) -> Iterator[Draft]:
    """A draft that is gone at the end, unless it was moved away."""
    draft = Draft(file)
    try:
        yield draft
    finally:
        draft.drop()


def there_already(file: Path) -> Refused:
    """A backup is not to cost another."""
    return Refused(Why.WRONG_STATE, f"There is a {file} already; name another file, or add --force")


def durable(path: Path) -> None:
    """On disk, whatever the machine does next."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
