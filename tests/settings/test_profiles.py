"""Profiles: which one is used, and which files are refused."""

import subprocess
import sys
from pathlib import Path

import pytest

from accord.settings.profiles import (
    ProfileError,
    config_dir,
    may_carry_token,
    profiles_path,
    read_profiles,
    select_profile,
    server_address,
)

SOURCE = Path(__file__).resolve().parents[2] / "src"
HOME = {"HOME": "/home/alice"}
LOCAL, TEAM = "http://127.0.0.1:7420", "https://team.example.org"


def table(name: str, url: str) -> str:
    return (
        f'[profiles."{name}"]\nurl = "{url}"\nserver = "S"\nid = "{name}"\ndevice = "D-{name}"\n'
        f'key = "K"\ntoken = "T-{name}"\nexpires_at = 1000\n'
    )


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}


def write(env: dict[str, str], text: str, mode: int = 0o600) -> Path:
    file = Path(profiles_path(env))
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    return file


@pytest.mark.parametrize(
    ("platform", "env", "expected"),
    [
        ("linux", HOME, "/home/alice/.config/accord"),
        ("linux", HOME | {"XDG_CONFIG_HOME": "/etc/me"}, "/etc/me/accord"),
        ("linux", HOME | {"XDG_CONFIG_HOME": "not/absolute"}, "/home/alice/.config/accord"),
        ("darwin", HOME, "/home/alice/Library/Application Support/accord"),
        ("win32", {"USERPROFILE": "/u"}, "/u/AppData/Roaming/accord"),
        ("win32", {"USERPROFILE": "/u", "APPDATA": "/u/roam"}, "/u/roam/accord"),
    ],
)
def test_profiles_are_where_the_platform_keeps_configuration(
    platform: str, env: dict[str, str], expected: str
) -> None:
    assert config_dir(env, platform) == expected


def test_without_a_file_there_is_no_profile(env: dict[str, str]) -> None:
    assert select_profile(env) is None
    assert select_profile(env, LOCAL) is None


def test_the_current_profile_is_used_unless_the_environment_names_another(
    env: dict[str, str],
) -> None:
    write(env, f'current = "alice"\n{table("alice", LOCAL)}{table("bob", TEAM)}')

    alice, bob = select_profile(env), select_profile(env | {"ACCORD_PROFILE": "bob"})

    assert alice is not None
    assert bob is not None
    assert (alice.name, alice.url, alice.token, alice.key) == ("alice", LOCAL, "T-alice", "K")
    assert (bob.id, bob.device, bob.server, bob.expires_at) == ("bob", "D-bob", "S", 1000)
    assert alice.seconds_left(990.5) == 9.5
    assert "T-alice" not in repr(alice)
    assert "K" not in repr(alice)


def test_an_address_selects_the_profile_of_that_server_and_lends_no_other(
    env: dict[str, str],
) -> None:
    write(env, f'current = "alice"\n{table("alice", LOCAL)}{table("bob", TEAM)}')

    selected = select_profile(env, f"{TEAM}:443/ws")

    assert selected is not None
    assert selected.name == "bob"
    assert select_profile(env, "https://evil.example.org") is None
    assert select_profile(env, "http://team.example.org") is None
    with pytest.raises(ProfileError, match=r"'bob' \(ACCORD_PROFILE\) is for https://team"):
        select_profile(env | {"ACCORD_PROFILE": "bob"}, LOCAL)


def test_of_two_profiles_at_one_server_the_current_one_is_used(env: dict[str, str]) -> None:
    both = table("alice", LOCAL) + table("bob", LOCAL)
    write(env, f'current = "bob"\n{both}')

    selected = select_profile(env, LOCAL)

    assert selected is not None
    assert selected.name == "bob"
    write(env, both)
    assert select_profile(env) is None
    with pytest.raises(ProfileError, match="alice, bob; choose one with ACCORD_PROFILE"):
        select_profile(env, LOCAL)


def test_an_unknown_name_is_an_error_that_lists_the_known_ones(env: dict[str, str]) -> None:
    write(env, table("alice", LOCAL))

    with pytest.raises(ProfileError, match=r"no profile 'zoe'.*known profiles: alice"):
        select_profile(env | {"ACCORD_PROFILE": "zoe"})


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o620])
def test_a_file_that_others_could_use_is_refused_with_the_fix(
    env: dict[str, str], mode: int
) -> None:
    file = write(env, table("alice", LOCAL), mode)

    with pytest.raises(ProfileError, match=f"mode {mode:o}.*chmod 600 {file}"):
        read_profiles(env)


def test_a_directory_that_others_can_write_to_is_refused_with_the_fix(
    env: dict[str, str],
) -> None:
    folder = write(env, table("alice", LOCAL)).parent
    folder.chmod(0o770)

    with pytest.raises(ProfileError, match=f"chmod 700 {folder}"):
        read_profiles(env)


def test_a_file_of_another_user_is_refused(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(env, table("alice", LOCAL))
    monkeypatch.setattr("os.geteuid", lambda: 12345)

    with pytest.raises(ProfileError, match="belongs to another user"):
        read_profiles(env)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("not toml", "cannot be read"),
        ("profiles = 3", "does not contain profiles"),
        ("current = 3", "does not contain profiles"),
        ("[profiles.a]\nurl = 'x'", "'a' is incomplete"),
        ("[profiles]\na = 1", "'a' is incomplete"),
        (table("a", LOCAL).replace("1000", "true"), "'a' is incomplete"),
        ("#" * ((1 << 20) + 1), "larger than"),
    ],
)
def test_a_file_that_is_not_understood_is_refused(
    env: dict[str, str], text: str, problem: str
) -> None:
    write(env, text)

    with pytest.raises(ProfileError, match=problem):
        read_profiles(env)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTP://LocalHost:80/", "http://localhost"),
        ("ws://127.0.0.1:7420/ws", LOCAL),
        ("wss://team.example.org:443/accord/ws", f"{TEAM}/accord"),
        ("https://[::1]:7420", "https://[::1]:7420"),
        ("https://a:443@evil.example.org/", "https://evil.example.org"),
    ],
)
def test_one_server_has_one_spelling(url: str, expected: str) -> None:
    assert server_address(url) == expected


@pytest.mark.parametrize("url", ["team", "ftp://team", "http://", "http://a:b", "https://[::1"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ProfileError, match="is not a server address"):
        server_address(url)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (LOCAL, True),
        ("http://localhost:1", True),
        ("http://[::1]:1", True),
        (TEAM, True),
        ("wss://team", True),
        ("http://team.example.org", False),
        ("ws://10.0.0.1", False),
        ("http://localhost.evil.example", False),
        ("http://[::1", False),
    ],
)
def test_tokens_travel_over_tls_or_on_this_machine(url: str, expected: bool) -> None:
    assert may_carry_token(url) is expected


def test_importing_it_costs_next_to_nothing() -> None:
    heavy = ("typing", "pathlib", "tomllib", "urllib", "msgspec", "json", "re", "enum", "socket")
    script = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); import accord.settings.profiles; "
    script += f"print([each for each in {heavy!r} if each in sys.modules])"

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"
