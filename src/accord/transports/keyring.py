"""The server's signing keys: one signs, earlier ones still verify, each in two files of its own.

`<kid>.pub` lets a key verify and `<kid>.pem` lets it sign; kids sort by age and the youngest that
may sign does. So there is no list to keep in step, and two processes may rotate at once.
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

from accord.core.kernel.log import Instant
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.ulid import ulid
from accord.files import PRIVATE_FILE, write_private

PRIVATE_DIR = 0o700
OTHERS = 0o077

# A directory that changed less than this ago may change again without its time moving on.
RACY_NS = 2_000_000_000

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_KID = re.compile(rf"[{_CROCKFORD}]{{26}}")


class KeyringError(Refused):
    """The keys cannot be used as they lie there; the sentence says how to mend it."""

    def __init__(self, detail: str) -> None:
        super().__init__(Why.WRONG_STATE, detail)


class PublicKey(msgspec.Struct, frozen=True):
    """A key as anybody may see it; `public` is PEM."""

    kid: str
    public: str
    created_at: Instant
    active: bool


class _View(msgspec.Struct, frozen=True):
    """What the directory held when it was last looked at."""

    stamp: int | None = None
    public: dict[str, Ed25519PublicKey] = {}
    signer: tuple[str, Ed25519PrivateKey] | None = None


def wall() -> Instant:
    """The wall clock in milliseconds."""
    return time.time_ns() // 1_000_000


class Keyring:
    """Ed25519 keys in a directory that this process alone may read, but others may change."""

    def __init__(self, path: Path, clock: Callable[[], Instant] = wall) -> None:
        self._path = path
        self._clock = clock
        self._view = _View()

    @classmethod
    def open(cls, path: Path, clock: Callable[[], Instant] = wall) -> "Keyring":
        """The ring in this directory, with a first key made if none can sign.

        Raises KeyringError when others could read a key or a file is not what it should be.
        """
        path.mkdir(mode=PRIVATE_DIR, parents=True, exist_ok=True)
        ring = cls(path, clock)
        ring.check()
        ring._look()
        if ring._view.signer is None:
            ring.rotate()
        return ring

    @property
    def active(self) -> str:
        """The id of the key that signs."""
        return self.signer()[0]

    def list(self) -> tuple[PublicKey, ...]:
        """Every key that verifies, oldest first."""
        self._refresh()
        view = self._view
        active = view.signer[0] if view.signer else None
        return tuple(
            PublicKey(kid, _pem(key), _born(kid), active=kid == active)
            for kid, key in sorted(view.public.items())
        )

    def rotate(self) -> PublicKey:
        """Make a new key sign. Those before it still verify; their private halves are destroyed."""
        older = self._kids()
        kid = self._next(older)
        key = Ed25519PrivateKey.generate()
        write_private(self._file(kid, "pub"), _pem(key.public_key()).encode(), durable=True)
        write_private(self._file(kid, "pem"), _private_pem(key), durable=True)
        for retired in older:
            self._file(retired, "pem").unlink(missing_ok=True)
        self._look()
        return next(made for made in self.list() if made.kid == kid)

    def forget(self, kid: str) -> None:
        """Remove a retired key: whatever it signed stops counting."""
        self._refresh()
        view = self._view
        if kid not in view.public:
            raise Refused(Why.UNKNOWN, f"There is no key {kid}")
        if view.signer and view.signer[0] == kid:
            raise Refused(Why.WRONG_STATE, f"The key {kid} signs; rotate first")
        self._file(kid, "pub").unlink(missing_ok=True)
        self._look()

    def signer(self) -> tuple[str, Ed25519PrivateKey]:
        """The active key with its id."""
        self._refresh()
        if self._view.signer is None:
            raise KeyringError(f"No key in {self._path} can sign; run: accord keys rotate")
        return self._view.signer

    def sign(self, data: bytes) -> tuple[str, bytes]:
        """The active key's id and its signature of `data`."""
        kid, key = self.signer()
        return kid, key.sign(data)

    def public(self, kid: str) -> Ed25519PublicKey | None:
        """The key of this id, active or retired, also when another process has just made it."""
        self._refresh()
        if kid not in self._view.public:
            self._refresh(anyway=True)
        return self._view.public.get(kid)

    def verify(self, kid: str, data: bytes, signature: bytes) -> bool:
        """Whether the key of this id, known and not forgotten, signed exactly this."""
        if not (key := self.public(kid)):
            return False
        try:
            key.verify(signature, data)
        except InvalidSignature:
            return False
        return True

    def _refresh(self, *, anyway: bool = False) -> None:
        # A directory out of reach changes nothing of what was read from it.
        with suppress(OSError):
            if anyway or self._view.stamp is None or self._view.stamp != self._stamp():
                self._look()

    def _look(self) -> None:
        """Read what is new. A file that cannot be trusted is as good as none."""
        stamp = self._stamp()
        settled = time.time_ns() - stamp > RACY_NS
        before = self._view
        public = {
            kid: key for kid in self._kids() if (key := before.public.get(kid) or self._public(kid))
        }
        signer = self._signer(sorted(public, reverse=True))
        self._view = _View(stamp if settled else None, public, signer)

    def _signer(self, youngest_first: Iterable[str]) -> tuple[str, Ed25519PrivateKey] | None:
        before = self._view.signer
        for kid in youngest_first:
            file = self._file(kid, "pem")
            if before and before[0] == kid and file.exists():
                return before
            try:
                return kid, _read_private(file)
            except (KeyringError, OSError):
                continue
        return None

    def _public(self, kid: str) -> Ed25519PublicKey | None:
        try:
            return _read_public(self._file(kid, "pub"))
        except (KeyringError, OSError):
            return None

    def check(self) -> None:
        """Raise KeyringError where a file is open to others or holds no key."""
        _guard(self._path, PRIVATE_DIR)
        for kid in self._kids():
            # Retired keys have no private half, and another process may be retiring one now.
            with suppress(FileNotFoundError):
                _read_public(self._file(kid, "pub"))
                _read_private(self._file(kid, "pem"))

    def _kids(self) -> tuple[str, ...]:
        found = (file.stem for file in self._path.glob("*.pub"))
        return tuple(kid for kid in found if _KID.fullmatch(kid))

    def _file(self, kid: str, kind: str) -> Path:
        return self._path / f"{kid}.{kind}"

    def _next(self, kids: Iterable[str]) -> str:
        after = max((_born(kid) + 1 for kid in kids), default=0)
        return ulid(max(self._clock(), after), secrets.token_bytes(10))

    def _stamp(self) -> int:
        return self._path.stat().st_mtime_ns


def _born(kid: str) -> Instant:
    born = 0
    for letter in kid[:10]:
        born = born << 5 | _CROCKFORD.index(letter)
    return born


def _guard(path: Path, mode: int) -> None:
    if os.name != "nt" and path.stat().st_mode & OTHERS:
        raise KeyringError(f"Others may reach {path}; run: chmod {mode:o} {path}")


def _read_public(file: Path) -> Ed25519PublicKey:
    _guard(file, PRIVATE_FILE)
    if (key := public_key(file.read_bytes())) is None:
        raise KeyringError(f"{file} holds no Ed25519 key; restore it from a backup or remove it")
    return key


def _read_private(file: Path) -> Ed25519PrivateKey:
    _guard(file, PRIVATE_FILE)
    if (key := private_key(file.read_bytes())) is None:
        raise KeyringError(f"{file} holds no Ed25519 key; restore it from a backup or remove it")
    return key


def public_key(pem: bytes) -> Ed25519PublicKey | None:
    """The key in these bytes, if they hold one of ours."""
    try:
        key = serialization.load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, Ed25519PublicKey) else None


def private_key(pem: bytes) -> Ed25519PrivateKey | None:
    """The same for a key that can sign."""
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
