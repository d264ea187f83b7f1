"""Files of hosts: connected and disconnected they are as before, to the byte."""

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.hosts.adapters.host import ConfigFile, HostAdapter
from accord.hosts.adapters.table import HOSTS
from accord.hosts.changed_files import (
    STATE_FILE,
    apply_changes,
    plan_change,
    read_states,
    unified_diff,
    write_change,
)
from accord.hosts.configuration.entry import ConfigurationError, contains_text
from accord.hosts.configuration.json_entries import JsonFile
from accord.hosts.connections import connection_path, connections_dir
from tests.hosts.configuration.config_texts import json_texts, toml_texts

FIRST, SECOND = "0011aabb", "ffee2233"
lenient = json_texts(with_comments=True)
strict = json_texts(with_comments=False)


def text_for(adapter: HostAdapter, index: int) -> st.SearchStrategy[str]:
    file = adapter.files({"HOME": "/nowhere"}, Path("/r.json"))[index]
    if not isinstance(file.format, JsonFile):
        return toml_texts()
    return lenient if file.format.comments else strict


@st.composite
def homes(draw: st.DrawFn) -> tuple[str, tuple[bytes | None, ...]]:
    """A host, and the content of its files; None for one that is missing."""
    name = draw(st.sampled_from(sorted(HOSTS)))
    count = len(HOSTS[name].files({"HOME": "/nowhere"}, Path("/r.json")))
    contents = (
        draw(st.one_of(st.none(), st.just(""), text_for(HOSTS[name], index)))
        for index in range(count)
    )
    return name, tuple(None if text is None else text.encode() for text in contents)


class Home:
    """A home directory with one host."""

    def __init__(self, root: Path, name: str) -> None:
        self.env: Mapping[str, str] = {"HOME": str(root)}
        self.adapter = HOSTS[name]
        self.paths = [file.path for file in self.files("00000000")]

    def files(self, number: str) -> tuple[ConfigFile, ...]:
        return self.adapter.files(self.env, self.record(number))

    def record(self, number: str) -> Path:
        return connection_path(self.env, f"{self.adapter.name}-{number}")

    def change(self, number: str, *, remove: bool = False) -> None:
        states, id = read_states(self.env), f"{self.adapter.name}-{number}"
        files = self.adapter.files(self.env, self.record(number))
        apply_changes(self.env, [plan_change(file, states, id, remove) for file in files])

    def write(self, contents: tuple[bytes | None, ...]) -> None:
        for path, content in zip(self.paths, contents, strict=True):
            if content is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)

    def contents(self) -> tuple[bytes | None, ...]:
        return tuple(path.read_bytes() if path.exists() else None for path in self.paths)

    def has(self, number: str) -> bool:
        """Whether every file that names records names this one."""
        marked = [
            file
            for file in self.adapter.files(self.env, self.record(number))
            if any(entry.mark for entry in file.entries)
        ]
        record = str(self.record(number))
        return bool(marked) and all(
            contains_text(file.format.values(file.path.read_text("utf-8")), record)
            for file in marked
        )


def with_home(name: str, contents: tuple[bytes | None, ...], check: Callable[[Home], None]) -> None:
    with TemporaryDirectory() as root:
        home = Home(Path(root), name)
        home.write(contents)
        check(home)


@given(homes())
def test_connect_and_disconnect_give_back_every_byte(
    drawn: tuple[str, tuple[bytes | None, ...]],
) -> None:
    def check(home: Home) -> None:
        home.change(FIRST)
        written = home.contents()
        home.change(FIRST)
        assert home.contents() == written, "connecting again changes nothing"
        home.change(FIRST, remove=True)
        assert home.contents() == drawn[1]
        assert read_states(home.env) == {}

    with_home(*drawn, check)


@given(homes(), st.booleans())
def test_two_repositories_come_and_go_in_any_order(
    drawn: tuple[str, tuple[bytes | None, ...]], first_leaves_first: bool
) -> None:
    leaving, staying = (FIRST, SECOND) if first_leaves_first else (SECOND, FIRST)

    def check(home: Home) -> None:
        home.change(FIRST)
        home.change(SECOND)
        home.change(leaving, remove=True)
        if home.adapter.name != "opencode":
            assert home.has(staying)
            assert not home.has(leaving)
        home.change(staying, remove=True)
        assert home.contents() == drawn[1]

    with_home(*drawn, check)


@pytest.mark.parametrize("name", sorted(HOSTS))
def test_a_file_that_was_edited_since_loses_our_entries_alone(name: str, tmp_path: Path) -> None:
    home = Home(tmp_path, name)
    is_toml = home.paths[0].suffix == ".toml"
    original = b'# mine\nmodel = "x"\n' if is_toml else b'{\n  "mine": [1, 2]\n}\n'
    home.write(tuple(original for _ in home.paths))
    home.change(FIRST)
    for path in home.paths:
        text = path.read_text("utf-8")
        path.write_text(f"{text}# more\n" if is_toml else text.replace("[1, 2]", "[1, 2, 3]"))

    states = read_states(home.env)
    files = home.adapter.files(home.env, home.record(FIRST))
    changes = [plan_change(file, states, f"{name}-{FIRST}", True) for file in files]

    assert all(change.was_edited for change in changes)
    for change in changes:
        assert change.new is not None
        assert "accord" not in change.new
        assert ("# more" if is_toml else "[1, 2, 3]") in change.new


def test_a_symbolic_link_stays_one_and_its_file_keeps_its_mode(tmp_path: Path) -> None:
    home = Home(tmp_path / "home", "gemini")
    (path,) = home.paths
    target = tmp_path / "dotfiles" / "gemini.json"
    target.parent.mkdir()
    target.write_text("{}\n")
    target.chmod(0o640)
    path.parent.mkdir(parents=True)
    path.symlink_to(target)

    home.change(FIRST)

    assert path.is_symlink()
    assert "accord" in target.read_text("utf-8")
    assert target.stat().st_mode & 0o777 == 0o640
    home.change(FIRST, remove=True)
    assert path.is_symlink()
    assert target.read_text("utf-8") == "{}\n"


def a_directory(path: Path) -> None:
    path.mkdir()


def a_lost_link(path: Path) -> None:
    path.symlink_to(path.with_name("gone"))


def a_circle(path: Path) -> None:
    path.symlink_to(path)


def not_utf_8(path: Path) -> None:
    path.write_bytes(b'{"a": "\xff"}')


def not_json(path: Path) -> None:
    path.write_text('{"a": }')


def protected(path: Path) -> None:
    path.write_text("{}")
    path.chmod(0o444)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (a_directory, "is not a file"),
        (a_lost_link, "which does not exist"),
        (a_circle, "is a symbolic link"),
        (not_utf_8, "is not UTF-8 text"),
        (not_json, "line 1, column 7: a value is missing here"),
        (protected, "is read-only"),
    ],
)
def test_a_file_that_cannot_be_changed_is_named_in_one_sentence(
    make: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    home = Home(tmp_path, "gemini")
    (path,) = home.paths
    path.parent.mkdir()
    make(path)

    with pytest.raises(ConfigurationError) as error:
        home.change(FIRST)

    assert str(path) in str(error.value)
    assert said in str(error.value)
    assert not (connections_dir(home.env) / STATE_FILE).exists()


def test_a_file_in_place_of_the_directory_is_named(tmp_path: Path) -> None:
    home = Home(tmp_path, "gemini")
    home.paths[0].parent.write_text("")

    with pytest.raises(ConfigurationError, match="is not a directory"):
        home.change(FIRST)


def test_a_file_that_changes_meanwhile_is_left_alone(tmp_path: Path) -> None:
    home = Home(tmp_path, "gemini")
    home.write((b"{}",))
    (file,) = home.adapter.files(home.env, home.record(FIRST))
    change = plan_change(file, {}, f"gemini-{FIRST}")
    file.path.write_text('{"new": 1}')

    with pytest.raises(ConfigurationError, match="was changed just now"):
        write_change(change)

    assert file.path.read_text() == '{"new": 1}'


def test_when_the_second_file_fails_the_first_one_goes_back(tmp_path: Path) -> None:
    home = Home(tmp_path, "claude-code")
    home.write((b'{"a": 1}', b'{"b": 2}'))
    files = home.adapter.files(home.env, home.record(FIRST))
    changes = [plan_change(file, {}, f"claude-code-{FIRST}") for file in files]
    files[1].path.write_text('{"b": 3}')

    with pytest.raises(ConfigurationError):
        apply_changes(home.env, changes)

    assert home.contents() == (b'{"a": 1}', b'{"b": 3}')


def test_what_was_changed_is_kept_without_the_file_s_content(tmp_path: Path) -> None:
    home = Home(tmp_path, "claude-code")
    home.write((b'{"env": {"KEY": "s3cret"}}', None))

    home.change(FIRST)

    state = connections_dir(home.env) / STATE_FILE
    assert "s3cret" not in state.read_text("utf-8")
    assert state.stat().st_mode & 0o777 == 0o600


def test_a_damaged_state_says_what_to_do(tmp_path: Path) -> None:
    home = Home(tmp_path, "gemini")
    home.change(FIRST)
    (connections_dir(home.env) / STATE_FILE).write_text("{")

    with pytest.raises(ConfigurationError, match="remove these entries by hand"):
        home.change(FIRST)


def test_a_new_file_is_shown_as_new_and_private(tmp_path: Path) -> None:
    home = Home(tmp_path, "cursor")
    file = home.adapter.files(home.env, home.record(FIRST))[1]
    change = plan_change(file, {}, f"cursor-{FIRST}")

    lines = unified_diff(change)
    assert lines[:2] == ["--- /dev/null", f"+++ {file.path}"]
    assert all(line.startswith("+") for line in lines[3:])
    home.change(FIRST)
    assert file.path.stat().st_mode & 0o777 == 0o600
