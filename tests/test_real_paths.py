"""What globs stand for on this disk: links, and files that rules name."""

from pathlib import Path

import pytest

from accord.core.policy.call_classification import classify
from accord.core.policy.call_findings import Classification
from accord.core.policy.policy_toml import NO_POLICY
from accord.core.policy.reported_call import CallKind, Place, ReportedCall
from accord.real_paths import resolve
from accord.shell_parser import parse_shell


def class_of(folder: Path, command: str) -> Classification:
    own = str(folder / ".config" / "accord")
    place = Place(cwd=str(folder), worktree=str(folder), home=str(folder), protected=(own,))
    call = ReportedCall(CallKind.SHELL, "Bash", {"command": command}, place)
    return classify(resolve(call, parse_shell), NO_POLICY, parse_shell)


def is_read(folder: Path, command: str) -> bool:
    return class_of(folder, command).is_read


@pytest.mark.parametrize(
    "command", ["cat .env*", "cat .en?", "cat ./.e[n]v", "head -n5 ./.e*", "cat sub/i*", "wc < .e*"]
)
def test_glob_does_not_hide_a_secret(command: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    assert is_read(tmp_path, command.replace("wc < .e*", "wc .e*"))
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "sub" / "id_rsa").write_text("key")

    assert not is_read(tmp_path, command)


@pytest.mark.parametrize("command", ["cat ./*", "cat ./*.py", "cat ./[a-z]*", "cat sub/??.py"])
def test_glob_that_means_no_secret_is_a_read(command: str, tmp_path: Path) -> None:
    """Hidden files are meant only where the dot is written."""
    (tmp_path / "sub").mkdir()
    for name in (".env", "a.py", "sub/id_rsa", "sub/ab.py"):
        (tmp_path / name).write_text("x")

    assert is_read(tmp_path, command)


@pytest.mark.parametrize("command", ["cat ~/.conf*/accord/x", "cat ./.?onfig/acc*/x", "rm .c*/*/x"])
def test_glob_does_not_hide_accords_own_directories(command: str, tmp_path: Path) -> None:
    (tmp_path / ".config" / "accord").mkdir(parents=True)
    (tmp_path / ".config" / "accord" / "x").write_text("token")

    assert "belongs to Accord itself" in class_of(tmp_path, command).refusal


@pytest.mark.parametrize(
    "command",
    [
        "cat link/../x",
        "cd link && cat ../x",
        "cat ./l*/../x",
        "cat sub/up/../../x",
        "wc < link/../x",
    ],
)
def test_parent_of_a_link_is_where_the_link_leads(command: str, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "sub" / "inner", outside / "inner"):
        folder.mkdir(parents=True)
    (outside / "x").write_text("private")
    (root / "x").write_text("public")
    (root / "link").symlink_to(outside / "inner")
    (root / "sub" / "up").symlink_to(outside / "inner")

    found = class_of(root, command)

    assert (found.category, found.is_read) == ("secret_access", False)
    assert is_read(root, "cat sub/../x && cat sub/inner/../../x")
