"""The table of settings: what each is called, may be, is usually, and is about."""

import re
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from accord.core.kernel.limits import LIMITS, Limit, Limits

SECTION = "limits"
OFF = "off"
LONGEST_SHOWN = 60
NUMBER = re.compile(r"([0-9]{1,15})(?: ?(KiB|MiB|GiB))?")
UNITS = {None: 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


class Says(NamedTuple):
    """What a setting is about; bounds for a number, and how its value is shown in help."""

    sentence: str
    least: int = 0
    most: int = 0
    value: str = ""
    usual: str = ""  # what holds where nothing is set, if the value cannot say so itself
    flag: bool = True


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The table. A new setting is a new row here; all else follows from it."""

    host: Annotated[str, Says("address to listen on")] = "127.0.0.1"
    port: Annotated[int, Says("0 picks a free one", 0, 65_535)] = 7420
    store: Annotated[
        str | None,
        Says("where the log is", value="URL", usual="sqlite: in the data directory"),
    ] = None
    auth: Annotated[
        Literal["token", "open"],
        Says("ask for signed tokens, or trust every name; open works on this machine alone"),
    ] = "token"
    tls_cert: Annotated[
        Path | None,
        Says(
            "certificate to speak TLS with, its chain behind it; a renewed one is noticed",
            value="FILE",
            usual="none",
        ),
    ] = None
    tls_key: Annotated[
        Path | None,
        Says("key of that certificate, for you alone (mode 600)", value="FILE", usual="none"),
    ] = None
    durability: Annotated[
        Literal["full", "normal"],
        Says("full: acknowledged means on disk; normal: a power cut may cost the last moments"),
    ] = "full"
    rate_limit: Annotated[
        int | None,
        Says("messages a second for each participant", 1, 1_000_000, "N|off"),
    ] = 200
    bridge_port: Annotated[
        int | None,
        Says("where git hooks ask; off with --port 0 unless named", 1, 65_535, "9847|off"),
    ] = 9847
    ready_file: Annotated[
        Path | None,
        Says("written once connections are accepted", value="FILE", usual="none"),
    ] = None
    log_format: Annotated[
        Literal["auto", "json", "text"],
        Says("how the log on stderr is written; auto is text on a terminal, else JSON lines"),
    ] = "auto"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        Says("what is logged; at no level what people and agents say"),
    ] = "info"
    otel: Annotated[
        Literal["off", "on"],
        Says("send traces to the collector that OTEL_EXPORTER_OTLP_ENDPOINT names"),
    ] = "off"
    drain: Annotated[
        int,
        Says("seconds to go on after a signal, while /readyz says no", 0, 3600, "SECONDS"),
    ] = 0
    stop_timeout: Annotated[
        int,
        Says("seconds to finish in after that; a second signal ends at once", 1, 3600, "SECONDS"),
    ] = 10
    gate_seconds: Annotated[
        int, Says("how long a gate for a tool waits, in seconds", 1, 31_536_000, flag=False)
    ] = 300
    on_gate_timeout: Annotated[
        Literal["rejected", "auto_approved", "escalated"],
        Says("what becomes of a gate that nobody passed in time", flag=False),
    ] = "rejected"
    grant_seconds: Annotated[
        int, Says("how long a grant lasts, in seconds", 1, 31_536_000, flag=False)
    ] = 3600
    grace_seconds: Annotated[
        int,
        Says("the least time a lost connection is waited for, in seconds", 1, 86_400, flag=False),
    ] = 300
    keep_ended_days: Annotated[
        int | None,
        Says(
            "remove what was said in sessions this many days after they ended; 0 is at once",
            0,
            36_500,
            "DAYS|off",
        ),
    ] = None
    limits: Limits = Limits()

    @property
    def tls(self) -> tuple[Path, Path] | None:
        """Certificate and key, where TLS is spoken."""
        cert, key = self.tls_cert, self.tls_key
        return None if cert is None or key is None else (cert, key)


class Setting(NamedTuple):
    """A row with its name, its type and what is usual."""

    name: str
    hint: Any
    usual: Any
    says: Says

    @property
    def key(self) -> str:
        """What it is called in the file."""
        return self.name

    @property
    def flag(self) -> str:
        """What it is called on the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        """What it is called in the environment."""
        return f"ACCORD_{self.name.upper()}"

    @property
    def usually(self) -> str:
        """What holds where nothing is set, in words."""
        return self.says.usual or (OFF if self.usual is None else str(self.usual))

    @property
    def choices(self) -> tuple[str, ...]:
        """The words it may be, where it is one of a few."""
        return get_args(self.hint) if get_origin(self.hint) is Literal else ()

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The types it may have."""
        return get_args(self.hint) if get_origin(self.hint) is UnionType else (self.hint,)

    @property
    def allowed(self) -> str:
        """What may be written, in words."""
        if self.choices:
            return " or ".join(self.choices)
        if int in self.kinds:
            off = ", or off" if type(None) in self.kinds else ""
            return f"a whole number from {self.says.least} to {self.says.most}{off}"
        return "a path" if Path in self.kinds else "text"

    def read(self, said: Any) -> Any:
        """The value that was meant; ValueError with what is allowed."""
        if int in self.kinds:
            return self._number(said)
        if isinstance(said, Path):
            return said
        good = isinstance(said, str) and bool(said.strip()) and "\0" not in said
        if not good or (self.choices and said not in self.choices):
            raise ValueError(f"{shown(said)} will not do; write {self.allowed}")
        return self._path(said) if Path in self.kinds else said

    def _path(self, said: str) -> Path:
        try:
            return Path(said).expanduser()
        except RuntimeError:  # `~` and the name of nobody
            raise ValueError(f"{shown(said)} will not do; write {self.allowed}") from None

    def _number(self, said: Any) -> int | None:
        if type(None) in self.kinds and said in (OFF, None):
            return None
        number = whole(said, units=False)
        if number is None or not self.says.least <= number <= self.says.most:
            raise ValueError(f"{shown(said)} will not do; write {self.allowed}")
        return number


class LimitSetting(NamedTuple):
    """A limit as a setting."""

    limit: Limit

    @property
    def key(self) -> str:
        """What it is called in the file, with its section."""
        return f"{SECTION}.{self.limit.name}"

    @property
    def variable(self) -> str:
        """What it is called in the environment."""
        return f"ACCORD_LIMIT_{self.limit.name.upper()}"

    @property
    def usual(self) -> int:
        """What holds where nothing is set."""
        return self.limit.usual

    @property
    def allowed(self) -> str:
        """What may be written, in words."""
        bound = self.limit.bound
        units = " (KiB and MiB may follow it)" if bound.bytes else ""
        return f"a whole number from {bound.least} to {bound.most}{units}"

    def read(self, said: Any) -> int:
        """The value that was meant; ValueError with what is allowed."""
        bound = self.limit.bound
        number = whole(said, units=bound.bytes)
        if number is None or not bound.least <= number <= bound.most:
            raise ValueError(f"{shown(said)} will not do; write {self.allowed}")
        return number


AnySetting = Setting | LimitSetting


def _rows() -> dict[str, Setting]:
    hints, usual = get_type_hints(Config, include_extras=True), Config()
    names = [name for name in Config.__struct_fields__ if name != SECTION]
    return {
        name: Setting(
            name, get_args(hints[name])[0], getattr(usual, name), hints[name].__metadata__[0]
        )
        for name in names
    }


SETTINGS = _rows()
LIMIT_SETTINGS = {name: LimitSetting(limit) for name, limit in LIMITS.items()}
ALL: tuple[AnySetting, ...] = (*SETTINGS.values(), *LIMIT_SETTINGS.values())
KEYS: dict[str, AnySetting] = {each.key: each for each in ALL}


def whole(said: Any, *, units: bool) -> int | None:
    """A whole number, as TOML or text has it."""
    if isinstance(said, int) and not isinstance(said, bool):
        return said
    found = NUMBER.fullmatch(said.strip()) if isinstance(said, str) else None
    if found is None or (found[2] and not units):
        return None
    return int(found[1]) * UNITS[found[2]]


def shown(value: Any) -> str:
    """A value in a sentence, never longer than one can read."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
