"""Where Accord keeps its things and whom it talks to: flags, then environment, then file."""

import ipaddress
import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

FILE = ".accord.toml"


class SettingsError(ValueError):
    """A setting cannot be used; the sentence says where it stands."""


class InFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What may stand in `.accord.toml`. A token may not: nothing secret lies in a repository."""

    url: str | None = None
    session: str | None = None


class Settings(msgspec.Struct, frozen=True):
    """What every command begins with."""

    home: Path
    url: str | None = None
    token: str | None = None
    session: str | None = None

    @classmethod
    def load(
        cls,
        env: Mapping[str, str],
        file: Path | None = None,
        *,
        home: Path | None = None,
        url: str | None = None,
        session: str | None = None,
    ) -> "Settings":
        """Flags (the keywords) beat the environment, the environment beats the file.

        `ACCORD_TOKEN` goes to the address given beside it or to this machine; a file that came
        with a clone cannot send it elsewhere.
        """
        found = read(file) if file else InFile()
        chosen = url or env.get("ACCORD_URL")
        token = env.get("ACCORD_TOKEN") or None
        trusted = bool(chosen) or (found.url is not None and is_local(found.url))
        return cls(
            home=home or home_of(env),
            url=chosen or found.url,
            token=token if trusted else None,
            session=session or env.get("ACCORD_SESSION") or found.session,
        )

    @classmethod
    def here(cls, **flags: Any) -> "Settings":
        """The settings of this process, in the directory it runs in."""
        file = find(Path.cwd())
        if file is not None and not is_ours(file):
            pass_by(file)
            file = None
        return cls.load(os.environ, file, **flags)


def home_of(env: Mapping[str, str], platform: str = sys.platform) -> Path:
    """`ACCORD_HOME`, else the place where this platform keeps programs' data."""
    if chosen := env.get("ACCORD_HOME"):
        return Path(chosen).expanduser()
    user = Path(env.get("HOME") or env.get("USERPROFILE") or Path.home())
    if platform == "win32":
        return Path(env.get("LOCALAPPDATA") or user / "AppData" / "Local") / "accord"
    if platform == "darwin":
        return user / "Library" / "Application Support" / "accord"
    shared = Path(env.get("XDG_DATA_HOME") or "")
    return (shared if shared.is_absolute() else user / ".local" / "share") / "accord"


def find(directory: Path) -> Path | None:
    """The nearest `.accord.toml`, here or further up."""
    files = (parent / FILE for parent in (directory, *directory.parents))
    return next((file for file in files if file.is_file()), None)


def is_ours(file: Path) -> bool:
    """Whether whoever runs this wrote the file, or the system's own user did.

    In a directory that many may write to, such as `/tmp`, anybody could tell us whom to talk to.
    """
    if sys.platform == "win32":
        return True
    trusted = {os.geteuid(), 0}
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "").isdigit():
        trusted.add(int(os.environ["SUDO_UID"]))
    return file.stat().st_uid in trusted


@cache
def pass_by(file: Path) -> None:
    """Say so, once."""
    sys.stderr.write(f"{file} belongs to another user and is not read\n")


def read(file: Path) -> InFile:
    """What the file says; SettingsError when it says what it must not."""
    import tomllib

    try:
        said = tomllib.loads(file.read_text("utf-8"))
        return msgspec.convert(said, InFile)
    except OSError as no:
        raise SettingsError(f"{file} cannot be read: {no.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as no:
        raise SettingsError(f"{file} cannot be read: {no}") from None
    except msgspec.ValidationError as no:
        hint = "; put a token into ACCORD_TOKEN, never into a file" if "`token`" in str(no) else ""
        raise SettingsError(f"{file}: {no}{hint}") from None


def is_local(url: str) -> bool:
    """Whether the address is this machine's own."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
