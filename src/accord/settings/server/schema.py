"""The table of server settings: name, type, default, bounds and description."""

import re
from enum import StrEnum
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from accord.core.kernel.limits import LIMITS, Limit, Limits
from accord.core.room.room_settings import GateResolution, ServerPolicy

LIMITS_SECTION = "limits"
DEFAULT_POLICY = ServerPolicy()
OFF_VALUE = "off"
MAX_SHOWN_CHARS = 60
NUMBER_PATTERN = re.compile(r"([0-9]{1,15})(?: ?(KiB|MiB|GiB))?")
UNIT_BYTES = {None: 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class SettingInfo(NamedTuple):
    """A setting's description, bounds for numbers, and how help shows its value."""

    description: str
    minimum: int = 0
    maximum: int = 0
    placeholder: str = ""
    default_text: str = ""  # shown as default when the value itself does not explain it
    has_flag: bool = True


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The table. A new setting is a new row; flags, variables and docs follow from it."""

    host: Annotated[str, SettingInfo("address to listen on")] = "127.0.0.1"
    port: Annotated[int, SettingInfo("port to listen on; 0 picks a free one", 0, 65_535)] = 7420
    store: Annotated[
        str | None,
        SettingInfo(
            "where the log is: sqlite:PATH, postgresql://… or nats://…",
            placeholder="URL",
            default_text="sqlite: in the data directory",
        ),
    ] = None
    auth: Annotated[
        Literal["token", "open"],
        SettingInfo("require signed tokens, or accept any name (open; on this machine only)"),
    ] = "token"
    tls_cert: Annotated[
        Path | None,
        SettingInfo(
            "TLS certificate followed by its chain; reloaded when renewed",
            placeholder="FILE",
            default_text="none",
        ),
    ] = None
    tls_key: Annotated[
        Path | None,
        SettingInfo(
            "private key of that certificate (mode 600)",
            placeholder="FILE",
            default_text="none",
        ),
    ] = None
    public_url: Annotated[
        str | None,
        SettingInfo(
            "address by which people and agents reach the server, behind a proxy or by name",
            placeholder="URL",
            default_text="where it listens",
        ),
    ] = None
    durability: Annotated[
        Literal["full", "normal"],
        SettingInfo(
            "full: acknowledged means on disk; normal: a power cut may lose the last moments"
        ),
    ] = "full"
    rate_limit: Annotated[
        int | None,
        SettingInfo("messages per second and participant", 1, 1_000_000, "N|off"),
    ] = 200
    bridge_port: Annotated[
        int | None,
        SettingInfo("port for git hooks; off with --port 0 unless set", 1, 65_535, "9847|off"),
    ] = 9847
    ready_file: Annotated[
        Path | None,
        SettingInfo(
            "file written once connections are accepted", placeholder="FILE", default_text="none"
        ),
    ] = None
    log_format: Annotated[
        Literal["auto", "json", "text"],
        SettingInfo(
            "format of the log on stderr; auto is text on a terminal, otherwise JSON lines"
        ),
    ] = "auto"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        SettingInfo("minimum level of log lines; message contents are never logged"),
    ] = "info"
    otel: Annotated[
        Literal["off", "on"],
        SettingInfo("send traces to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names"),
    ] = "off"
    drain: Annotated[
        int,
        SettingInfo(
            "seconds to keep serving after a signal, while /readyz reports not ready",
            0,
            3600,
            "SECONDS",
        ),
    ] = 0
    stop_timeout: Annotated[
        int,
        SettingInfo(
            "seconds to finish after that; a second signal stops at once", 1, 3600, "SECONDS"
        ),
    ] = 10
    gate_seconds: Annotated[
        int,
        SettingInfo(
            "seconds until a gate for a tool or a merge times out; sessions may choose their own",
            1,
            31_536_000,
            has_flag=False,
        ),
    ] = DEFAULT_POLICY.gate_seconds
    on_gate_timeout: Annotated[
        GateResolution,
        SettingInfo("what happens to a gate that times out", has_flag=False),
    ] = DEFAULT_POLICY.on_gate_timeout
    grant_seconds: Annotated[
        int, SettingInfo("seconds for which a grant is valid", 1, 31_536_000, has_flag=False)
    ] = DEFAULT_POLICY.grant_seconds
    grace_seconds: Annotated[
        int,
        SettingInfo(
            "minimum seconds of absence that end the open answers of an agent",
            1,
            86_400,
            has_flag=False,
        ),
    ] = DEFAULT_POLICY.grace_seconds
    silence_seconds: Annotated[
        int,
        SettingInfo(
            "seconds of silence after which a thread and the operators are told that an addressed "
            "member does not answer",
            1,
            604_800,
            has_flag=False,
        ),
    ] = DEFAULT_POLICY.silence_seconds
    wakes_per_hour: Annotated[
        int,
        SettingInfo("how often one agent is woken in an hour at most", 0, 1000, has_flag=False),
    ] = DEFAULT_POLICY.wakes_per_hour
    wake: Annotated[
        Path | None,
        SettingInfo(
            "file that says which agents this server may wake by a command, and how",
            placeholder="FILE",
            default_text="none",
        ),
    ] = None
    keep_ended_days: Annotated[
        int | None,
        SettingInfo(
            "remove messages of sessions this many days after they ended; 0 is at once",
            0,
            36_500,
            "DAYS|off",
        ),
    ] = None
    limits: Limits = Limits()

    @property
    def policy(self) -> ServerPolicy:
        """The settings that the core needs."""
        names = set(ServerPolicy.__struct_fields__) & set(self.__struct_fields__)
        return ServerPolicy(**{name: getattr(self, name) for name in names})

    @property
    def tls(self) -> tuple[Path, Path] | None:
        """Certificate and key, if TLS is configured."""
        cert, key = self.tls_cert, self.tls_key
        return None if cert is None or key is None else (cert, key)


class Setting(NamedTuple):
    """A setting with its name, type and default."""

    name: str
    type_hint: Any
    default: Any
    info: SettingInfo

    @property
    def key(self) -> str:
        """Its name in the file."""
        return self.name

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return f"ACCORD_{self.name.upper()}"

    @property
    def default_text(self) -> str:
        """The default, as text."""
        return self.info.default_text or (OFF_VALUE if self.default is None else str(self.default))

    @property
    def choices(self) -> tuple[str, ...]:
        """The allowed words, if it is an enumeration."""
        if self.enumeration is not None:
            return tuple(member.value for member in self.enumeration)
        return get_args(self.type_hint) if get_origin(self.type_hint) is Literal else ()

    @property
    def enumeration(self) -> type[StrEnum] | None:
        """The type of its words, if they have one."""
        hint = self.type_hint
        return hint if isinstance(hint, type) and issubclass(hint, StrEnum) else None

    @property
    def types(self) -> tuple[Any, ...]:
        return (
            get_args(self.type_hint)
            if get_origin(self.type_hint) is UnionType
            else (self.type_hint,)
        )

    @property
    def allowed_text(self) -> str:
        """What may be written, in words."""
        if self.choices:
            return " or ".join(self.choices)
        if int in self.types:
            off = ", or off" if type(None) in self.types else ""
            return f"a whole number from {self.info.minimum} to {self.info.maximum}{off}"
        return "a path" if Path in self.types else "text"

    def parse(self, value: Any) -> Any:
        """The parsed value; ValueError says what is allowed."""
        if int in self.types:
            return self._number(value)
        if isinstance(value, Path):
            return value
        is_text = isinstance(value, str) and bool(value.strip()) and "\0" not in value
        if not is_text or (self.choices and value not in self.choices):
            raise ValueError(f"{abbreviate(value)} is not valid; write {self.allowed_text}")
        if self.enumeration is not None:
            return self.enumeration(value)
        return self._path(value) if Path in self.types else value

    def _path(self, value: str) -> Path:
        try:
            return Path(value).expanduser()
        except RuntimeError:  # `~` followed by an unknown user
            raise ValueError(
                f"{abbreviate(value)} is not valid; write {self.allowed_text}"
            ) from None

    def _number(self, value: Any) -> int | None:
        if type(None) in self.types and value in (OFF_VALUE, None):
            return None
        number = parse_integer(value, units=False)
        if number is None or not self.info.minimum <= number <= self.info.maximum:
            raise ValueError(f"{abbreviate(value)} is not valid; write {self.allowed_text}")
        return number


class LimitSetting(NamedTuple):
    """A limit as a setting."""

    limit: Limit

    @property
    def key(self) -> str:
        """Its name in the file, with its section."""
        return f"{LIMITS_SECTION}.{self.limit.name}"

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return f"ACCORD_LIMIT_{self.limit.name.upper()}"

    @property
    def default(self) -> int:
        return self.limit.default

    @property
    def allowed_text(self) -> str:
        """What may be written, in words."""
        bound = self.limit.spec
        units = " (KiB and MiB may follow it)" if bound.in_bytes else ""
        return f"a whole number from {bound.minimum} to {bound.maximum}{units}"

    def parse(self, value: Any) -> int:
        """The parsed value; ValueError says what is allowed."""
        bound = self.limit.spec
        number = parse_integer(value, units=bound.in_bytes)
        if number is None or not bound.minimum <= number <= bound.maximum:
            raise ValueError(f"{abbreviate(value)} is not valid; write {self.allowed_text}")
        return number


AnySetting = Setting | LimitSetting


def _config_settings() -> dict[str, Setting]:
    hints, defaults = get_type_hints(ServerConfig, include_extras=True), ServerConfig()
    names = [name for name in ServerConfig.__struct_fields__ if name != LIMITS_SECTION]
    return {
        name: Setting(
            name, get_args(hints[name])[0], getattr(defaults, name), hints[name].__metadata__[0]
        )
        for name in names
    }


SETTINGS = _config_settings()
LIMIT_SETTINGS = {name: LimitSetting(limit) for name, limit in LIMITS.items()}
ALL_SETTINGS: tuple[AnySetting, ...] = (*SETTINGS.values(), *LIMIT_SETTINGS.values())
SETTINGS_BY_KEY: dict[str, AnySetting] = {setting.key: setting for setting in ALL_SETTINGS}


def parse_integer(value: Any, *, units: bool) -> int | None:
    """A whole number from TOML or text; None if it is not one."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = NUMBER_PATTERN.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or (match[2] and not units):
        return None
    return int(match[1]) * UNIT_BYTES[match[2]]


def abbreviate(value: Any) -> str:
    """The value's repr, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"
