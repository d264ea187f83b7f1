"""Client settings: flags override the environment, which overrides `.accord.toml`."""

import ipaddress
import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from accord.settings.profiles import (
    PROFILE_VARIABLE,
    Profile,
    ProfileError,
    may_carry_token,
    plain_http_sentence,
    select_profile,
    server_address,
)

SETTINGS_FILE = ".accord.toml"


class SettingsError(ValueError):
    """A setting is invalid; the message says where it was set."""


class FileSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `.accord.toml`. No token: secrets do not belong in a repository."""

    url: str | None = None
    session: str | None = None


class Settings(msgspec.Struct, frozen=True):
    """The settings every command starts with."""

    home: Path
    url: str | None = None
    token: str | None = None
    session: str | None = None
    profile: Profile | None = None

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
        """Flags (the keywords) override the environment, which overrides the file.

        `ACCORD_TOKEN` is only sent to an address given by flag or environment, or to this machine;
        a file that came with a clone cannot redirect it.
        """
        from_file = read_settings_file(file) if file else FileSettings()
        given_url = url or env.get("ACCORD_URL")
        token = env.get("ACCORD_TOKEN") or None
        trusted = bool(given_url) or (from_file.url is not None and is_local(from_file.url))
        return cls(
            home=home or home_of(env),
            url=given_url or from_file.url,
            token=token if trusted else None,
            session=session or env.get("ACCORD_SESSION") or from_file.session,
        )

    @classmethod
    def for_process(cls, **flags: Any) -> "Settings":
        """The settings of this process in its working directory."""
        file = find_settings_file(Path.cwd())
        if file is not None and not is_trusted_owner(file):
            warn_untrusted_file(file)
            file = None
        return cls.load(os.environ, file, **flags)

    @classmethod
    def for_client(cls, **flags: Any) -> "Settings":
        """The same, with the profile of `accord login` where there is no `ACCORD_TOKEN` to send.

        Raises SettingsError or ProfileError rather than to send a token where it must not go.
        """
        return with_profile(cls.for_process(**flags), os.environ)


def with_profile(known: Settings, env: Mapping[str, str]) -> Settings:
    """The settings with the profile that their address selects, or with the current one."""
    if known.token:
        if known.url and not may_carry_token(known.url):
            raise SettingsError(plain_http_sentence(known.url))
        return known
    if known.url and not is_address(known.url):
        return known  # reported when it is used
    profile = select_profile(env, known.url)
    if profile is None:
        return known
    if not known.url and env.get("ACCORD_TOKEN") and not env.get(PROFILE_VARIABLE):
        raise SettingsError(
            f"ACCORD_TOKEN is set without ACCORD_URL, and you are logged in as {profile.id} at "
            f"{profile.url}; set ACCORD_URL too, or unset ACCORD_TOKEN"
        )
    return msgspec.structs.replace(known, url=profile.url, token=profile.token, profile=profile)


def is_address(url: str) -> bool:
    """Whether this can be the address of a server."""
    try:
        server_address(url)
    except ProfileError:
        return False
    return True


def home_of(env: Mapping[str, str], platform: str = sys.platform) -> Path:
    """`ACCORD_HOME`, or the platform's directory for application data."""
    if given_url := env.get("ACCORD_HOME"):
        return Path(given_url).expanduser()
    user = Path(env.get("HOME") or env.get("USERPROFILE") or Path.home())
    if platform == "win32":
        return Path(env.get("LOCALAPPDATA") or user / "AppData" / "Local") / "accord"
    if platform == "darwin":
        return user / "Library" / "Application Support" / "accord"
    data_home = Path(env.get("XDG_DATA_HOME") or "")
    return (data_home if data_home.is_absolute() else user / ".local" / "share") / "accord"


def find_settings_file(directory: Path) -> Path | None:
    """The nearest `.accord.toml`, here or in a parent directory."""
    files = (parent / SETTINGS_FILE for parent in (directory, *directory.parents))
    return next((file for file in files if file.is_file()), None)


def is_trusted_owner(file: Path) -> bool:
    """Whether the current user or root owns the file.

    In a directory that others can write to, such as `/tmp`, any user could redirect us.
    """
    if sys.platform == "win32":
        return True
    trusted = {os.geteuid(), 0}
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "").isdigit():
        trusted.add(int(os.environ["SUDO_UID"]))
    return file.stat().st_uid in trusted


@cache
def warn_untrusted_file(file: Path) -> None:
    """Warn once per file."""
    sys.stderr.write(f"Ignoring {file}: it belongs to another user\n")


def read_settings_file(file: Path) -> FileSettings:
    """The file's settings; raises SettingsError."""
    import tomllib

    try:
        content = tomllib.loads(file.read_text("utf-8"))
        return msgspec.convert(content, FileSettings)
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise SettingsError(f"{file} cannot be read: {error}") from None
    except msgspec.ValidationError as error:
        hint = "; set a token in ACCORD_TOKEN, not in a file" if "`token`" in str(error) else ""
        raise SettingsError(f"{file}: {error}{hint}") from None


def port_of(url: str) -> int:
    """The port of an address, or the default of its scheme."""
    parts = urlsplit(url)
    return parts.port or (443 if parts.scheme in {"https", "wss"} else 80)


def is_local(url: str) -> bool:
    """Whether the address is on this machine."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
