"""Profiles that `accord login` made: which server, as whom, with which token. Reading only.

Git hooks read profiles too, so this needs the standard library alone and imports what is slow only
when there is a file to read.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # type checkers treat this name as true; importing `typing` is slow
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PROFILES_FILE = "profiles.toml"
PROFILE_VARIABLE = "ACCORD_PROFILE"
LOOSE_BITS = 0o077
OTHERS_WRITE_BITS = 0o022
MAX_FILE_BYTES = 1 << 20
DEFAULT_PORTS = {"http": 80, "https": 443}
HTTP_SCHEMES = {"http": "http", "ws": "http", "https": "https", "wss": "https"}
STRING_FIELDS = ("url", "server", "id", "device", "key", "token")


class ProfileError(ValueError):
    """The profiles cannot be used; the message says how to fix it."""


class Profile:
    """One person on one server; `key` is the private half of the device's key, in base64."""

    __slots__ = ("device", "expires_at", "id", "key", "name", "server", "token", "url")

    def __init__(  # noqa: PLR0913 - the fields of the file
        self,
        name: str,
        *,
        url: str,
        server: str,
        id: str,
        device: str,
        key: str,
        token: str,
        expires_at: int,
    ) -> None:
        self.name = name
        self.url = url
        self.server = server
        self.id = id
        self.device = device
        self.key = key
        self.token = token
        self.expires_at = expires_at  # of the token, in seconds since 1970

    def __repr__(self) -> str:
        """Without the secrets."""
        return f"Profile({self.name!r}, {self.id!r} at {self.url!r})"

    def seconds_left(self, now: float) -> float:
        """How long the token is still valid; negative once it has expired."""
        return self.expires_at - now


class Profiles:
    """The content of the file: all profiles by name, and which of them is in use."""

    __slots__ = ("by_name", "current")

    def __init__(self, by_name: dict[str, Profile], current: str = "") -> None:
        self.by_name = by_name
        self.current = current

    def select(self, env: Mapping[str, str], url: str | None = None) -> Profile | None:
        """The profile to use; with an address, only one of that server.

        `ACCORD_PROFILE` names one; otherwise the last login decides. Raises ProfileError.
        """
        wanted = env.get(PROFILE_VARIABLE) or ""
        address = server_address(url) if url else ""
        if wanted:
            return self._named(wanted, address)
        if not address:
            return self.by_name.get(self.current)
        matching = [each for each in self.by_name.values() if each.url == address]
        if not matching:
            return None
        chosen = [each for each in matching if each.name == self.current] or matching
        if len(chosen) > 1:
            names = ", ".join(sorted(each.name for each in chosen))
            raise ProfileError(
                f"Several profiles are for {address}: {names}; choose one with {PROFILE_VARIABLE}"
            )
        return chosen[0]

    def _named(self, name: str, address: str) -> Profile:
        profile = self.by_name.get(name)
        if profile is None:
            known = ", ".join(sorted(self.by_name)) or "none"
            raise ProfileError(
                f"There is no profile {name!r} ({PROFILE_VARIABLE}); known profiles: {known}. "
                "`accord login LINK` makes one"
            )
        if address and profile.url != address:
            raise ProfileError(
                f"The profile {name!r} ({PROFILE_VARIABLE}) is for {profile.url}, not for "
                f"{address}; unset one of the two"
            )
        return profile


def config_dir(env: Mapping[str, str], platform: str = sys.platform) -> str:
    """The platform's directory for the configuration of `accord`."""
    user = env.get("HOME") or env.get("USERPROFILE") or os.path.expanduser("~")  # noqa: PTH111 - `pathlib` is too slow for hooks
    if platform == "win32":
        return _join(env.get("APPDATA") or _join(user, "AppData", "Roaming"), "accord")
    if platform == "darwin":
        return _join(user, "Library", "Application Support", "accord")
    config_home = env.get("XDG_CONFIG_HOME") or ""
    absolute = config_home.startswith("/")
    return _join(config_home if absolute else _join(user, ".config"), "accord")


def profiles_path(env: Mapping[str, str]) -> str:
    """Where the profiles are."""
    return _join(config_dir(env), PROFILES_FILE)


def select_profile(env: Mapping[str, str], url: str | None = None) -> Profile | None:
    """The profile to use, None if there is none; see `Profiles.select`. Raises ProfileError."""
    return read_profiles(env).select(env, url)


def read_profiles(env: Mapping[str, str]) -> Profiles:
    """All profiles; empty if there is no file. Raises ProfileError if others could read it."""
    path = profiles_path(env)
    try:
        data = read_private(path)
    except (FileNotFoundError, NotADirectoryError):
        return Profiles({})
    except OSError as error:
        raise ProfileError(f"{path} cannot be read: {error.strerror}") from None
    return parse_profiles(data, path)


def parse_profiles(data: bytes, path: str) -> Profiles:
    """The profiles in the file's content; raises ProfileError."""
    import tomllib

    try:
        content: dict[str, Any] = tomllib.loads(data.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ProfileError(f"{path} cannot be read: {error}; log in again to replace it") from None
    tables = content.get("profiles", {})
    current = content.get("current", "")
    if not isinstance(tables, dict) or not isinstance(current, str):
        raise ProfileError(f"{path} does not contain profiles; log in again to replace it")
    return Profiles({name: _profile(name, table, path) for name, table in tables.items()}, current)


def _profile(name: str, table: object, path: str) -> Profile:
    fields = table if isinstance(table, dict) else {}
    texts = {field: fields.get(field) for field in STRING_FIELDS}
    expires_at = fields.get("expires_at")
    if not (
        all(isinstance(text, str) and text for text in texts.values()) and type(expires_at) is int
    ):
        raise ProfileError(f"{path}: the profile {name!r} is incomplete; log in again")
    return Profile(name, **texts, expires_at=expires_at)  # type: ignore[arg-type]  # checked above


def read_private(path: str) -> bytes:
    """The content, if no other user could have read or written it; raises ProfileError."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    with os.fdopen(handle, "rb") as file:
        if sys.platform != "win32":
            _check_private(path, os.fstat(handle))
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ProfileError(f"{path} is larger than {MAX_FILE_BYTES} bytes, so it is not used")
    return data


def _check_private(path: str, status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise ProfileError(
            f"{path} belongs to another user, so its tokens are not used; remove it and log in "
            "again"
        )
    if status.st_mode & LOOSE_BITS:
        raise ProfileError(
            f"{path} holds tokens that other users can read (mode {status.st_mode & 0o777:o}); "
            f"run: chmod 600 {_quoted(path)}"
        )
    folder = os.path.dirname(path)  # noqa: PTH120 - `pathlib` is too slow for hooks
    if os.stat(folder).st_mode & OTHERS_WRITE_BITS:  # noqa: PTH116 - the same
        raise ProfileError(
            f"Other users can write to {folder}, which holds tokens; run: chmod 700 "
            f"{_quoted(folder)}"
        )


def server_address(url: str) -> str:
    """The address as profiles spell it: scheme, host in lower case, port unless the usual one."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        scheme, host, port = HTTP_SCHEMES.get(parts.scheme, ""), parts.hostname or "", parts.port
    except ValueError:
        raise _no_address(url) from None
    if not scheme or not host:
        raise _no_address(url)
    shown = f"[{host}]" if ":" in host else host
    suffix = "" if port in {None, DEFAULT_PORTS[scheme]} else f":{port}"
    path = parts.path.rstrip("/").removesuffix("/ws")
    return f"{scheme}://{shown}{suffix}{path}"


def _no_address(url: str) -> ProfileError:
    return ProfileError(f"{url!r} is not a server address; use http:// or https://")


def may_carry_token(url: str) -> bool:
    """Whether a token may be sent there: over TLS, or to this machine."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return parts.scheme in {"https", "wss"} or is_this_machine(host)


def is_this_machine(host: str) -> bool:
    """Whether the host is `localhost` or a loopback address."""
    from ipaddress import ip_address

    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def plain_http_sentence(url: str) -> str:
    """Why no token is sent there."""
    return f"{url} is not encrypted, so no token is sent there; use an https:// address"


def _join(*parts: str) -> str:
    return os.path.join(*parts)  # noqa: PTH118 - `pathlib` is too slow for hooks


def _quoted(path: str) -> str:
    from shlex import quote

    return quote(path)
