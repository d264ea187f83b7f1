"""A server's settings: one table, three places to say them, and a sentence for every slip."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.kernel.limits import LIMITS, Limits
from accord.core.room.room_settings import ServerPolicy
from accord.server.options import ServerOptions
from accord.settings.client import SettingsError
from accord.settings.server import (
    ALL_SETTINGS,
    LIMIT_SETTINGS,
    SETTINGS,
    LoadedConfig,
    ServerConfig,
    load_config,
    parse_limit,
)

NOWHERE = Path("/nonexistent")


def chosen(home: Path = NOWHERE, text: str | None = None, **said: Any) -> LoadedConfig:
    """With this in `accord.toml`; capitals are variables, the rest are flags."""
    if text is not None:
        (home / "accord.toml").write_text(text, "utf-8")
    env = {name: value for name, value in said.items() if name.isupper()}
    flags = {name: value for name, value in said.items() if not name.isupper()}
    return load_config(flags, env, home)


def test_defaults_apply_without_any_setting() -> None:
    found = chosen()

    assert found.require_valid() == ServerConfig()
    assert (found.sources, found.file) == ({}, None)


def test_a_flag_beats_the_environment_and_that_beats_the_file(tmp_path: Path) -> None:
    text = 'port = 1\nhost = "file"\nauth = "open"\n[limits]\ngates = 5\ntools = 6\n'

    found = chosen(tmp_path, text, ACCORD_PORT="2", ACCORD_HOST="env", port=3)

    file = str(tmp_path / "accord.toml")
    assert (found.config.port, found.config.host, found.config.auth) == (3, "env", "open")
    assert found.config.limits == Limits(gates=5, tools=6)
    assert found.sources == {
        "port": "--port",
        "host": "ACCORD_HOST",
        "auth": file,
        "limits.gates": file,
        "limits.tools": file,
    }


def test_the_file_may_lie_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "team.toml").write_text("port = 5")
    (tmp_path / "other.toml").write_text("port = 6")

    by_variable = chosen(ACCORD_CONFIG=str(tmp_path / "team.toml"))
    by_flag = chosen(ACCORD_CONFIG=str(tmp_path / "team.toml"), config=str(tmp_path / "other.toml"))

    assert (by_variable.config.port, by_flag.config.port) == (5, 6)


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(
        SettingsError, match=r"none\.toml cannot be read: No such file or directory$"
    ):
        chosen(config=str(tmp_path / "none.toml")).require_valid()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("prot = 1", "there is no setting 'prot'; did you mean port?"),
        ("gates = 1", "there is no setting 'gates'; did you mean limits.gates?"),
        ("[limits]\ngate = 1", "there is no setting 'limits.gate'; did you mean limits.gates?"),
        ("wishes = 1", "there is no setting 'wishes'; `accord serve --help`"),
        ("[server]\nport = 1", "there is no setting 'server';"),
        ('token = "x"', "never into a file"),
        ('data_dir = "x"', "--data-dir or ACCORD_HOME"),
        ('port = "http"', "port: 'http' is not valid; write a whole number from 0 to 65535"),
        ("port = 65536", "port: 65536 is not valid;"),
        ("port = -1", "port: -1 is not valid;"),
        ("port = true", "port: True is not valid;"),
        ("port = 1.5", "port: 1.5 is not valid;"),
        ('port = "off"', "port: 'off' is not valid;"),
        ("rate_limit = 0", "write a whole number from 1 to 1000000, or off"),
        ('auth = "none"', "auth: 'none' is not valid; write token or open"),
        ("auth = 1", "auth: 1 is not valid;"),
        ("auth = []", r"auth: [] is not valid;"),
        ('host = ""', "host: '' is not valid; write text"),
        ("ready_file = 3", "ready_file: 3 is not valid; write a path"),
        ('ready_file = "a\\u0000b"', "is not valid; write a path"),
        ("[limits]\ngates = 0", "limits.gates: 0 is not valid; write a whole number from 1 to"),
        ('[limits]\ngates = "5 MiB"', "limits.gates: '5 MiB' is not valid"),
        ("limits = 3", "limits must be a table"),
        ("port = ", "cannot be read: Invalid value"),
        ("x = " + "[" * 5000, "cannot be read"),
        ("#" * (1 << 20) + "#", "over 1048576 bytes"),
    ],
)
def test_a_slip_in_the_file_is_named_with_what_is_allowed(
    text: str, says: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError) as no:
        chosen(tmp_path, text).require_valid()

    assert says in str(no.value)
    assert str(no.value).startswith(str(tmp_path / "accord.toml"))


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "accord.toml").write_bytes(b"\xff\xfe")

    assert "cannot be read" in chosen(tmp_path).problems[0]


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("ACCORD_PORT", "http", "ACCORD_PORT: port: 'http' is not valid;"),
        ("ACCORD_LIMIT_GATES", "many", "ACCORD_LIMIT_GATES: limits.gates: 'many' is not valid;"),
        ("ACCORD_LIMIT_GATE", "1", "no such limit; did you mean ACCORD_LIMIT_GATES?"),
    ],
)
def test_a_slip_in_the_environment_is_named(variable: str, value: str, says: str) -> None:
    with pytest.raises(SettingsError) as no:
        load_config({}, {variable: value}, NOWHERE).require_valid()

    assert says in str(no.value)


def test_empty_environment_variables_are_ignored() -> None:
    assert chosen(ACCORD_PORT="").require_valid() == ServerConfig()


def test_everything_wrong_is_found_at_once(tmp_path: Path) -> None:
    found = chosen(tmp_path, "prot = 1\nport = -1", ACCORD_AUTH="x")

    assert len(found.problems) == 3
    with pytest.raises(SettingsError, match="and 2 more; `accord doctor` lists them"):
        found.require_valid()


def test_off_is_a_value(tmp_path: Path) -> None:
    in_file = chosen(tmp_path, 'rate_limit = "off"')

    assert in_file.config.rate_limit is None
    assert chosen(ACCORD_RATE_LIMIT="off").config.rate_limit is None
    assert chosen(ACCORD_RATE_LIMIT="7", rate_limit=None).config.rate_limit is None


@pytest.mark.parametrize(
    ("text", "bytes_"), [("4096", 4096), ("64 KiB", 65_536), ("1MiB", 1 << 20)]
)
def test_bytes_may_have_a_unit(text: str, bytes_: int) -> None:
    assert parse_limit(f"context={text}") == ("limits.context", bytes_)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gate=1", "did you mean gates?"),
        ("wish=1", "the limits are "),
        ("gates", "write gates=NUMBER"),
        ("gates=", "is not valid"),
    ],
)
def test_a_limit_on_the_line_is_a_name_and_a_number(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        parse_limit(text)


@pytest.mark.parametrize("setting", ALL_SETTINGS, ids=lambda setting: setting.key)
def test_what_is_usual_is_allowed_and_every_row_says_something(setting: Any) -> None:
    if setting.default is not None:
        assert setting.parse(setting.default) == setting.default
    assert setting.allowed_text
    assert setting.variable.isupper()


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_set_from_all_three_places(name: str, tmp_path: Path) -> None:
    bound, key = LIMITS[name].spec, LIMIT_SETTINGS[name].key

    by_file = chosen(tmp_path, f"[limits]\n{name} = {bound.minimum}")
    by_env = load_config({}, {LIMIT_SETTINGS[name].variable: str(bound.minimum)}, NOWHERE)
    by_flag = load_config(dict([parse_limit(f"{name}={bound.minimum}")]), {}, NOWHERE)

    assert by_file.value_of(key) == by_env.value_of(key) == by_flag.value_of(key) == bound.minimum


def test_a_server_runs_as_its_configuration_says() -> None:
    config = ServerConfig(
        host="::1", port=1, rate_limit=None, gate_seconds=7, limits=Limits(gates=3)
    )

    options = ServerOptions.from_config(config, NOWHERE)

    assert (options.host, options.port, options.rate_limit) == ("::1", 1, None)
    assert (options.policy.gate_seconds, options.policy.limits.gates) == (7, 3)


def test_options_of_a_server_are_its_configuration_and_its_directory() -> None:
    options = ServerOptions.from_config(ServerConfig(), NOWHERE)

    assert options == ServerOptions(home=NOWHERE)
    assert set(options.__struct_fields__) - set(ServerConfig.__struct_fields__) == {
        "home",
        "sign_in_link",
    }


def test_default_of_every_setting_is_stated_once() -> None:
    """The core states those of the policy."""
    assert ServerConfig().policy == ServerPolicy()


@pytest.mark.parametrize("name", ["gate_seconds", "on_gate_timeout", "grant_seconds"])
def test_setting_of_the_policy_reaches_the_core(name: str) -> None:
    value = {"on_gate_timeout": "escalated"}.get(name, "77")

    found = load_config({}, {f"ACCORD_{name.upper()}": value}, NOWHERE).require_valid()

    assert str(getattr(found.policy, name)) == value


@pytest.mark.parametrize(
    ("flags", "port"), [({}, 9847), ({"port": 0}, None), ({"port": 0, "bridge_port": 8}, 8)]
)
def test_bridge_is_off_with_any_free_port_unless_set(
    flags: dict[str, int], port: int | None
) -> None:
    assert load_config(flags, {}, NOWHERE).require_valid().bridge_port == port


@given(
    st.text() | st.integers() | st.floats() | st.booleans() | st.lists(st.integers(), max_size=2)
)
def test_whatever_stands_there_is_read_or_refused_in_words(said: Any) -> None:
    for setting in ALL_SETTINGS:
        try:
            setting.parse(said)
        except ValueError as error:
            sentence = str(error)
        else:
            continue
        assert setting.allowed_text in sentence
        assert len(sentence) < 400


def test_no_two_settings_share_a_name() -> None:
    assert (
        len({each.variable for each in ALL_SETTINGS})
        == len(ALL_SETTINGS)
        == len(SETTINGS) + len(LIMITS)
    )


def test_a_message_cannot_be_longer_than_its_frame() -> None:
    found = chosen(ACCORD_LIMIT_MESSAGE="2 MiB", ACCORD_LIMIT_FRAME="1 MiB")

    with pytest.raises(SettingsError, match="a frame must have room for a message"):
        found.require_valid()
