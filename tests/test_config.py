"""A server's settings: one table, three places to say them, and a sentence for every slip."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.app import Options
from accord.config import ALL, LIMIT_SETTINGS, SETTINGS, Chosen, Config, choose, limit_of
from accord.core.kernel.limits import LIMITS, Limits
from accord.settings import SettingsError

NOWHERE = Path("/nonexistent")


def chosen(home: Path = NOWHERE, text: str | None = None, **said: Any) -> Chosen:
    """With this in `accord.toml`; capitals are variables, the rest are flags."""
    if text is not None:
        (home / "accord.toml").write_text(text, "utf-8")
    env = {name: value for name, value in said.items() if name.isupper()}
    flags = {name: value for name, value in said.items() if not name.isupper()}
    return choose(flags, env, home)


def test_without_anything_all_is_as_usual() -> None:
    found = chosen()

    assert found.usable() == Config()
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
        chosen(config=str(tmp_path / "none.toml")).usable()


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
        ('port = "http"', "port: 'http' will not do; write a whole number from 0 to 65535"),
        ("port = 65536", "port: 65536 will not do;"),
        ("port = -1", "port: -1 will not do;"),
        ("port = true", "port: True will not do;"),
        ("port = 1.5", "port: 1.5 will not do;"),
        ('port = "off"', "port: 'off' will not do;"),
        ("rate_limit = 0", "write a whole number from 1 to 1000000, or off"),
        ('auth = "none"', "auth: 'none' will not do; write token or open"),
        ("auth = 1", "auth: 1 will not do;"),
        ("auth = []", r"auth: [] will not do;"),
        ('host = ""', "host: '' will not do; write text"),
        ("ready_file = 3", "ready_file: 3 will not do; write a path"),
        ('ready_file = "a\\u0000b"', "will not do; write a path"),
        ("[limits]\ngates = 0", "limits.gates: 0 will not do; write a whole number from 1 to"),
        ('[limits]\ngates = "5 MiB"', "limits.gates: '5 MiB' will not do"),
        ("limits = 3", "limits is a table"),
        ("port = ", "cannot be read: Invalid value"),
        ("x = " + "[" * 5000, "cannot be read"),
        ("#" * (1 << 20) + "#", "more than 1048576 bytes"),
    ],
)
def test_a_slip_in_the_file_is_named_with_what_is_allowed(
    text: str, says: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError) as no:
        chosen(tmp_path, text).usable()

    assert says in str(no.value)
    assert str(no.value).startswith(str(tmp_path / "accord.toml"))


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "accord.toml").write_bytes(b"\xff\xfe")

    assert "cannot be read" in chosen(tmp_path).wrong[0]


@pytest.mark.parametrize(
    ("variable", "value", "says"),
    [
        ("ACCORD_PORT", "http", "ACCORD_PORT: port: 'http' will not do;"),
        ("ACCORD_LIMIT_GATES", "many", "ACCORD_LIMIT_GATES: limits.gates: 'many' will not do;"),
        ("ACCORD_LIMIT_GATE", "1", "no such limit; did you mean ACCORD_LIMIT_GATES?"),
    ],
)
def test_a_slip_in_the_environment_is_named(variable: str, value: str, says: str) -> None:
    with pytest.raises(SettingsError) as no:
        choose({}, {variable: value}, NOWHERE).usable()

    assert says in str(no.value)


def test_an_empty_variable_says_nothing() -> None:
    assert chosen(ACCORD_PORT="").usable() == Config()


def test_everything_wrong_is_found_at_once(tmp_path: Path) -> None:
    found = chosen(tmp_path, "prot = 1\nport = -1", ACCORD_AUTH="x")

    assert len(found.wrong) == 3
    with pytest.raises(SettingsError, match="and 2 more; `accord doctor` lists them"):
        found.usable()


def test_off_is_a_value(tmp_path: Path) -> None:
    in_file = chosen(tmp_path, 'rate_limit = "off"')

    assert in_file.config.rate_limit is None
    assert chosen(ACCORD_RATE_LIMIT="off").config.rate_limit is None
    assert chosen(ACCORD_RATE_LIMIT="7", rate_limit=None).config.rate_limit is None


@pytest.mark.parametrize(
    ("text", "bytes_"), [("4096", 4096), ("64 KiB", 65_536), ("1MiB", 1 << 20)]
)
def test_bytes_may_have_a_unit(text: str, bytes_: int) -> None:
    assert limit_of(f"context={text}") == ("limits.context", bytes_)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("gate=1", "did you mean gates?"),
        ("wish=1", "there are "),
        ("gates", "write gates=NUMBER"),
        ("gates=", "will not do"),
    ],
)
def test_a_limit_on_the_line_is_a_name_and_a_number(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        limit_of(text)


@pytest.mark.parametrize("setting", ALL, ids=lambda setting: setting.key)
def test_what_is_usual_is_allowed_and_every_row_says_something(setting: Any) -> None:
    if setting.usual is not None:
        assert setting.read(setting.usual) == setting.usual
    assert setting.allowed
    assert setting.variable.isupper()


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_is_set_from_all_three_places(name: str, tmp_path: Path) -> None:
    bound, key = LIMITS[name].bound, LIMIT_SETTINGS[name].key

    by_file = chosen(tmp_path, f"[limits]\n{name} = {bound.least}")
    by_env = choose({}, {LIMIT_SETTINGS[name].variable: str(bound.least)}, NOWHERE)
    by_flag = choose(dict([limit_of(f"{name}={bound.least}")]), {}, NOWHERE)

    assert by_file.value(key) == by_env.value(key) == by_flag.value(key) == bound.least


def test_a_server_runs_as_its_configuration_says() -> None:
    config = Config(host="::1", port=1, rate_limit=None, gate_seconds=7, limits=Limits(gates=3))

    options = Options.of(config, NOWHERE)

    assert (options.host, options.port, options.rate) == ("::1", 1, None)
    assert (options.house.gate_seconds, options.house.limits.gates) == (7, 3)


@given(
    st.text() | st.integers() | st.floats() | st.booleans() | st.lists(st.integers(), max_size=2)
)
def test_whatever_stands_there_is_read_or_refused_in_words(said: Any) -> None:
    for setting in ALL:
        try:
            setting.read(said)
        except ValueError as error:
            sentence = str(error)
        else:
            continue
        assert setting.allowed in sentence
        assert len(sentence) < 400


def test_no_two_settings_share_a_name() -> None:
    assert len({each.variable for each in ALL}) == len(ALL) == len(SETTINGS) + len(LIMITS)


def test_a_message_cannot_be_longer_than_its_frame() -> None:
    found = chosen(ACCORD_LIMIT_MESSAGE="2 MiB", ACCORD_LIMIT_FRAME="1 MiB")

    with pytest.raises(SettingsError, match="a message comes in a frame"):
        found.usable()
