"""Flags beat the environment, the environment beats the file."""

import os
from pathlib import Path

import pytest

from accord.settings.client import (
    Settings,
    SettingsError,
    find_settings_file,
    home_of,
    is_local,
    is_trusted_owner,
    port_of,
)

HOME = {"HOME": "/home/alice"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / ".accord.toml"


@pytest.mark.parametrize(
    ("platform", "env", "expected"),
    [
        ("linux", HOME, "/home/alice/.local/share/accord"),
        ("linux", HOME | {"XDG_DATA_HOME": "/data"}, "/data/accord"),
        ("linux", HOME | {"XDG_DATA_HOME": "not/absolute"}, "/home/alice/.local/share/accord"),
        ("darwin", HOME, "/home/alice/Library/Application Support/accord"),
        (
            "win32",
            {"USERPROFILE": "/users/a", "LOCALAPPDATA": "/users/a/local"},
            "/users/a/local/accord",
        ),
        ("win32", {"USERPROFILE": "/users/a"}, "/users/a/AppData/Local/accord"),
        *((each, HOME | {"ACCORD_HOME": "/srv/a"}, "/srv/a") for each in ("linux", "win32")),
        ("linux", HOME | {"ACCORD_HOME": ""}, "/home/alice/.local/share/accord"),
    ],
)
def test_data_lies_where_the_platform_keeps_it(
    platform: str, env: dict[str, str], expected: str
) -> None:
    assert home_of(env, platform) == Path(expected)


def test_without_anything_there_is_only_a_home() -> None:
    assert Settings.load({"ACCORD_HOME": "/srv/a"}) == Settings(home=Path("/srv/a"))


def test_the_environment_gives_clients_their_defaults() -> None:
    env = {
        "ACCORD_HOME": "/srv/a",
        "ACCORD_URL": "http://team:7420",
        "ACCORD_TOKEN": "a.b.c",
        "ACCORD_SESSION": "s1",
    }

    assert Settings.load(env) == Settings(Path("/srv/a"), "http://team:7420", "a.b.c", "s1")


def test_a_file_in_the_repository_does_the_same(file: Path) -> None:
    file.write_text('url = "http://127.0.0.1:7420"\nsession = "s1"\n')

    settings = Settings.load(HOME, file)

    assert (settings.url, settings.session) == ("http://127.0.0.1:7420", "s1")


def test_flags_beat_the_environment_and_that_beats_the_file(file: Path) -> None:
    file.write_text('url = "http://file"\nsession = "file"\n')
    env = {"ACCORD_HOME": "/env", "ACCORD_URL": "http://env", "ACCORD_SESSION": "env"}

    assert Settings.load(env, file).url == "http://env"
    assert Settings.load(env, file).session == "env"
    flagged = Settings.load(env, file, home=Path("/flag"), url="http://flag", session="flag")
    assert flagged == Settings(Path("/flag"), "http://flag", None, "flag")


def test_empty_values_count_as_unset(file: Path) -> None:
    file.write_text('url = "http://localhost:1"')
    env = HOME | {"ACCORD_URL": "", "ACCORD_TOKEN": "", "ACCORD_SESSION": ""}

    settings = Settings.load(env, file)

    assert (settings.url, settings.token, settings.session) == ("http://localhost:1", None, None)


@pytest.mark.parametrize(
    ("url", "env", "expected"),
    [
        ("http://127.0.0.1:7420", {}, "a.b.c"),
        ("http://evil.example", {}, None),
        ("http://127.0.0.1.evil.example", {}, None),
        ("http://127.0.0.1@evil.example", {}, None),
        ("http://evil.example", {"ACCORD_URL": "http://team:7420"}, "a.b.c"),
    ],
)
def test_a_file_from_a_clone_cannot_send_the_token_elsewhere(
    file: Path, url: str, env: dict[str, str], expected: str | None
) -> None:
    file.write_text(f'url = "{url}"')

    settings = Settings.load(HOME | {"ACCORD_TOKEN": "a.b.c"} | env, file)

    assert settings.token == expected


def test_a_token_does_not_belong_into_a_file(file: Path) -> None:
    file.write_text('token = "a.b.c"')

    with pytest.raises(SettingsError, match="ACCORD_TOKEN"):
        Settings.load(HOME, file)


DEEP = "url = " + "[" * 2000 + "]" * 2000


@pytest.mark.parametrize("text", ["url = 7", "urll = 'x'", "url = ", "= =", "url = '\udcff'", DEEP])
def test_a_file_that_cannot_be_understood_is_named(file: Path, text: str) -> None:
    file.write_bytes(text.encode("utf-8", "surrogateescape"))

    with pytest.raises(SettingsError, match=r"\.accord\.toml"):
        Settings.load(HOME, file)


def test_the_nearest_file_is_taken(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b" / "c"
    inner.mkdir(parents=True)
    assert find_settings_file(inner) is None

    (tmp_path / ".accord.toml").touch()
    assert find_settings_file(inner) == tmp_path / ".accord.toml"
    (tmp_path / "a" / "b" / ".accord.toml").touch()
    assert find_settings_file(inner) == tmp_path / "a" / "b" / ".accord.toml"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / ".accord.toml"
    file.write_text('url = "http://127.0.0.1:1"\nsession = "theirs"\n')
    os.chown(file, 12345, 12345)
    monkeypatch.chdir(tmp_path)
    for name in ("ACCORD_URL", "ACCORD_SESSION", "SUDO_UID"):
        monkeypatch.delenv(name, raising=False)

    known = Settings.for_process()

    assert (known.url, known.session) == (None, None)
    assert capsys.readouterr().err == f"Ignoring {file}: it belongs to another user\n"
    monkeypatch.setenv("SUDO_UID", "12345")
    assert Settings.for_process().session == "theirs"


def test_settings_file_is_read_only_from_its_owner_or_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / ".accord.toml"
    file.write_text("")
    owner = file.stat().st_uid
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert is_trusted_owner(file)
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert is_trusted_owner(file) is (owner == 0), "the system's own user is trusted"


def test_a_process_reads_where_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".accord.toml").write_text('session = "s1"')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ACCORD_HOME", str(tmp_path))
    for name in ("ACCORD_URL", "ACCORD_TOKEN", "ACCORD_SESSION"):
        monkeypatch.delenv(name, raising=False)

    assert Settings.for_process(url="http://flag") == Settings(tmp_path, "http://flag", None, "s1")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:7420", True),
        ("ws://[::1]:7420/ws", True),
        ("https://127.8.8.8", True),
        ("http://10.0.0.1", False),
        ("http://", False),
        ("http://[broken", False),
        ("", False),
    ],
)
def test_an_address_is_this_machines_own_or_not(url: str, expected: bool) -> None:
    assert is_local(url) is expected


@pytest.mark.parametrize(
    ("url", "port"),
    [("https://a", 443), ("wss://a/ws", 443), ("ws://a", 80), ("http://a:7", 7)],
)
def test_port_is_that_of_the_scheme_unless_given(url: str, port: int) -> None:
    assert port_of(url) == port
