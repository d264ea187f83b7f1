"""Profiles on disk: written under a lock, and their tokens renewed with the device's key.

A renewal is given the function that sends its request: git hooks need not import the client.
"""

from __future__ import annotations

import base64
import json
import os
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.atomic_files import PRIVATE_FILE_MODE, write_private
from accord.core.people.device_proofs import ProofStatement
from accord.settings.profiles import (
    Profile,
    ProfileError,
    Profiles,
    config_dir,
    may_carry_token,
    plain_http_sentence,
    profiles_path,
    read_profiles,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

LOCK_FILE = "profiles.lock"
PRIVATE_DIR_MODE = 0o700
LOCK_TIMEOUT_S = 10.0
LOCK_POLL_S = 0.02
# A token is renewed when it has less than this left.
RENEW_BEFORE_S = 600
REFRESH_PATH = ("sign-in", "refresh")


class LockTimeoutError(ProfileError):
    """Another process holds the lock for too long."""


def new_device_key() -> tuple[str, str]:
    """The private and the public half of a new Ed25519 key, in base64."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    return _base64(key.private_bytes_raw()), _base64(key.public_key().public_bytes_raw())


def new_proof(profile: Profile, now_ms: int) -> dict[str, Any]:
    """The body of a request for a new token: a proof of the device's key, good once."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        key = Ed25519PrivateKey.from_private_bytes(base64.b64decode(profile.key))
    except ValueError:
        detail = f"The key of the profile {profile.name!r} is damaged; log in again"
        raise ProfileError(detail) from None
    # What `secrets.token_urlsafe` does, but hooks have no time to import what that imports.
    nonce = base64.urlsafe_b64encode(os.urandom(24)).decode()
    statement = ProofStatement(profile.url, profile.device, now_ms, nonce)
    return {**statement._asdict(), "signature": _base64(key.sign(statement.to_bytes()))}


def current_profile(
    profile: Profile,
    env: Mapping[str, str],
    refresh: Callable[[str, bytes], tuple[str, int]],
    lock_timeout_s: float = LOCK_TIMEOUT_S,
) -> Profile:
    """The profile with a token that is valid for a while, renewed if necessary.

    `refresh` sends the proof to the server with this address and returns the token and when it
    expires, in seconds since 1970. Processes that need a new token at the same time wait for the
    first and use what it got; one that cannot wait renews by itself and gets the same token.
    Raises ProfileError, and whatever `refresh` raises once the token has expired.
    """
    if profile.seconds_left(time.time()) > RENEW_BEFORE_S:
        return profile
    try:
        with locked_profiles(env, lock_timeout_s) as stored:
            known = stored.by_name.get(profile.name)
            if known is None or known.device != profile.device:
                raise ProfileError(
                    f"The profile {profile.name!r} was logged out; log in again with a new link"
                )
            if known.seconds_left(time.time()) > RENEW_BEFORE_S:
                return known
            fresh = _renewed(known, refresh)
            stored.by_name[fresh.name] = fresh
            write_profiles(env, stored)
            return fresh
    except LockTimeoutError:
        return _renewed(profile, refresh)


def _renewed(profile: Profile, refresh: Callable[[str, bytes], tuple[str, int]]) -> Profile:
    if not may_carry_token(profile.url):
        raise ProfileError(plain_http_sentence(profile.url))
    body = json.dumps(new_proof(profile, time.time_ns() // 1_000_000)).encode()
    token, expires_at = refresh(profile.url, body)
    return changed(profile, token=token, expires_at=expires_at)


def changed(profile: Profile, **fields: Any) -> Profile:
    """The profile with some fields replaced."""
    known = {name: getattr(profile, name) for name in Profile.__slots__}
    return Profile(**{**known, **fields})


@contextmanager
def locked_profiles(
    env: Mapping[str, str], timeout_s: float = LOCK_TIMEOUT_S
) -> Iterator[Profiles]:
    """The profiles, while no other process changes them; raises LockTimeoutError."""
    folder = Path(config_dir(env))
    folder.mkdir(mode=PRIVATE_DIR_MODE, parents=True, exist_ok=True)
    handle = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE_MODE)
    try:
        _lock(handle, timeout_s)
        yield read_profiles(env)
    finally:
        os.close(handle)  # releases the lock


def _lock(handle: int, timeout_s: float) -> None:
    import fcntl

    deadline = time.monotonic() + timeout_s
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if time.monotonic() >= deadline:
                raise LockTimeoutError("Another process changes the profiles; try again") from None
            time.sleep(LOCK_POLL_S)
        else:
            return


def write_profiles(env: Mapping[str, str], profiles: Profiles) -> None:
    """Replace the file, for its owner alone; the caller holds the lock."""
    write_private(Path(profiles_path(env)), format_profiles(profiles).encode(), durable=True)


def format_profiles(profiles: Profiles) -> str:
    """The profiles as TOML."""
    lines = [f"current = {_toml(profiles.current)}"]
    for name, profile in profiles.by_name.items():
        lines += ["", f"[profiles.{_toml(name)}]"]
        fields = (field for field in ("url", "server", "id", "device", "key", "token"))
        lines += [f"{field} = {_toml(getattr(profile, field))}" for field in fields]
        lines.append(f"expires_at = {profile.expires_at}")
    return "\n".join([*lines, ""])


def _toml(text: str) -> str:
    """A TOML string; JSON's is one, except for the character that only TOML forbids."""
    return json.dumps(text).replace("\x7f", "\\u007f")


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
