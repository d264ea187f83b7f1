"""The server's signing keys: one signs, retired ones still verify; each has two files.

`<kid>.pub` makes a key verify and `<kid>.pem` makes it sign; key ids sort by age, and the youngest
that can sign does. So there is no index to keep consistent, and two processes may rotate at once.
"""

import os
import re
import secrets
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from accord.api.tokens import PublicKey
from accord.atomic_files import PRIVATE_FILE_MODE, write_private
from accord.core.kernel.messages import Instant
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.ulid import ulid

PRIVATE_DIR = 0o700
GROUP_OTHER_BITS = 0o077

# Within this time a directory may change again without a new mtime.
MTIME_RESOLUTION_NS = 2_000_000_000

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_KID = re.compile(rf"[{_CROCKFORD}]{{26}}")


class KeyringError(Refused):
    """The key files cannot be used; the message says how to fix it."""

    def __init__(self, detail: str) -> None:
        super().__init__(Reason.WRONG_STATE, detail)


class _KeyringView(msgspec.Struct, frozen=True):
    """What the directory held when it was last read."""

    stamp: int | None = None
    public: dict[str, Ed25519PublicKey] = {}
    signer: tuple[str, Ed25519PrivateKey] | None = None


def wall_clock_ms() -> Instant:
    """The wall clock in milliseconds."""
    return time.time_ns() // 1_000_000


class Keyring:
    """Ed25519 keys in a private directory that other processes of this user may change."""

    def __init__(self, path: Path, clock: Callable[[], Instant] = wall_clock_ms) -> None:
        self._path = path
        self._clock = clock
        self._view = _KeyringView()

    @classmethod
    def open(cls, path: Path, clock: Callable[[], Instant] = wall_clock_ms) -> "Keyring":
        """Open the keyring, creating a first key if none can sign.

        Raises KeyringError when other users could read a key or a file is not a key.
        """
        path.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
        keyring = cls(path, clock)
        keyring.check()
        keyring._reload()
        if keyring._view.signer is None:
            keyring.rotate()
        return keyring

    @property
    def active(self) -> str:
        """The id of the signing key."""
        return self.signer()[0]

    def public_keys(self) -> tuple[PublicKey, ...]:
        """All keys that verify, oldest first."""
        self._refresh()
        view = self._view
        active = view.signer[0] if view.signer else None
        return tuple(
            PublicKey(kid, _pem(key), _created_at(kid), active=kid == active)
            for kid, key in sorted(view.public.items())
        )

    def rotate(self) -> PublicKey:
        """Create a new signing key. Earlier ones still verify; their private halves are deleted."""
        older = self._kids_on_disk()
        kid = self._next_kid(older)
        key = Ed25519PrivateKey.generate()
        write_private(self._key_path(kid, "pub"), _pem(key.public_key()).encode(), durable=True)
        write_private(self._key_path(kid, "pem"), _private_pem(key), durable=True)
        for retired in older:
            self._key_path(retired, "pem").unlink(missing_ok=True)
        self._reload()
        return next(key for key in self.public_keys() if key.kid == kid)

    def forget(self, kid: str) -> None:
        """Remove a retired key: tokens it signed become invalid."""
        self._refresh()
        view = self._view
        if kid not in view.public:
            raise Refused(Reason.NOT_FOUND, f"There is no key {kid}")
        if view.signer and view.signer[0] == kid:
            raise Refused(
                Reason.WRONG_STATE,
                f"The key {kid} is the signing key; run `accord keys rotate` first",
            )
        self._key_path(kid, "pub").unlink(missing_ok=True)
        self._reload()

    def signer(self) -> tuple[str, Ed25519PrivateKey]:
        """The id and the key that signs."""
        self._refresh()
        if self._view.signer is None:
            raise KeyringError(f"There is no signing key in {self._path}; run: accord keys rotate")
        return self._view.signer

    def sign(self, data: bytes) -> tuple[str, bytes]:
        """The signing key's id and its signature of `data`."""
        kid, key = self.signer()
        return kid, key.sign(data)

    def public_key(self, kid: str) -> Ed25519PublicKey | None:
        """The key with this id, active or retired, even if another process has just created it."""
        self._refresh()
        if kid not in self._view.public:
            self._refresh(force=True)
        return self._view.public.get(kid)

    def verify(self, kid: str, data: bytes, signature: bytes) -> bool:
        """Whether the key with this id made this signature."""
        if not (key := self.public_key(kid)):
            return False
        try:
            key.verify(signature, data)
        except InvalidSignature:
            return False
        return True

    def _refresh(self, *, force: bool = False) -> None:
        # If the directory cannot be read, keep what was read before.
        with suppress(OSError):
            if force or self._view.stamp is None or self._view.stamp != self._mtime_ns():
                self._reload()

    def _reload(self) -> None:
        """Read new files; a file that cannot be trusted is ignored."""
        stamp = self._mtime_ns()
        settled = time.time_ns() - stamp > MTIME_RESOLUTION_NS
        previous = self._view
        public = {
            kid: key
            for kid in self._kids_on_disk()
            if (key := previous.public.get(kid) or self._load_public(kid))
        }
        signer = self._signer(sorted(public, reverse=True))
        self._view = _KeyringView(stamp if settled else None, public, signer)

    def _signer(self, youngest_first: Iterable[str]) -> tuple[str, Ed25519PrivateKey] | None:
        previous = self._view.signer
        for kid in youngest_first:
            file = self._key_path(kid, "pem")
            if previous and previous[0] == kid and file.exists():
                return previous
            try:
                return kid, _read_private(file)
            except (KeyringError, OSError):
                continue
        return None

    def _load_public(self, kid: str) -> Ed25519PublicKey | None:
        try:
            return _read_public(self._key_path(kid, "pub"))
        except (KeyringError, OSError):
            return None

    def check(self) -> None:
        """Raise KeyringError if other users can access a file or it holds no key."""
        _ensure_private(self._path, PRIVATE_DIR)
        for kid in self._kids_on_disk():
            # Retired keys have no private half, and another process may be retiring one now.
            with suppress(FileNotFoundError):
                _read_public(self._key_path(kid, "pub"))
                _read_private(self._key_path(kid, "pem"))

    def _kids_on_disk(self) -> tuple[str, ...]:
        stems = (file.stem for file in self._path.glob("*.pub"))
        return tuple(kid for kid in stems if _KID.fullmatch(kid))

    def _key_path(self, kid: str, kind: str) -> Path:
        return self._path / f"{kid}.{kind}"

    def _next_kid(self, kids: Iterable[str]) -> str:
        after = max((_created_at(kid) + 1 for kid in kids), default=0)
        return ulid(max(self._clock(), after), secrets.token_bytes(10))

    def _mtime_ns(self) -> int:
        return self._path.stat().st_mtime_ns


def _created_at(kid: str) -> Instant:
    created = 0
    for letter in kid[:10]:
        created = created << 5 | _CROCKFORD.index(letter)
    return created


def _ensure_private(path: Path, mode: int) -> None:
    if os.name != "nt" and path.stat().st_mode & GROUP_OTHER_BITS:
        raise KeyringError(f"Other users can access {path}; run: chmod {mode:o} {path}")


def _read_public(file: Path) -> Ed25519PublicKey:
    _ensure_private(file, PRIVATE_FILE_MODE)
    if (key := load_public_key(file.read_bytes())) is None:
        raise KeyringError(f"{file} is not an Ed25519 key; restore it from a backup or remove it")
    return key


def _read_private(file: Path) -> Ed25519PrivateKey:
    _ensure_private(file, PRIVATE_FILE_MODE)
    if (key := load_private_key(file.read_bytes())) is None:
        raise KeyringError(f"{file} is not an Ed25519 key; restore it from a backup or remove it")
    return key


def load_public_key(pem: bytes) -> Ed25519PublicKey | None:
    """The Ed25519 key in these bytes, if there is one."""
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, Ed25519PublicKey) else None


def load_private_key(pem: bytes) -> Ed25519PrivateKey | None:
    """The Ed25519 private key in these bytes, if there is one."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, Ed25519PrivateKey) else None


def _pem(key: Ed25519PublicKey) -> str:
    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    ).decode()


def _private_pem(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
