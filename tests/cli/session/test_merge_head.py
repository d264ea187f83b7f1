"""Which commit `accord session merge` shows on the gate."""

from pathlib import Path

import pytest

from accord.cli.session.forks import branch_head
from tests.helpers.git.work_tree import WorkTree


def test_only_a_repository_of_the_session_says_what_is_to_be_merged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names of forks are readable, so another session may have a fork of the same name."""
    repo = WorkTree.create(tmp_path)
    head = repo.commit("chore: begin")
    repo.git("branch", "pvp/aside")
    for name in ("ACCORD_HOME", "XDG_RUNTIME_DIR", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    monkeypatch.delenv("ACCORD_URL", raising=False)
    monkeypatch.setenv("ACCORD_SESSION", "ses_here")
    monkeypatch.chdir(repo.path)

    assert branch_head("ses_here", "aside") == ""
    repo.git("config", "accord.repo", "01M7GMJP1Y4T7CP7A3QNGAT9X2")
    assert branch_head("ses_here", "aside") == head
    assert branch_head("ses_here", "other") == ""
    assert branch_head("ses_other", "aside") == ""
    monkeypatch.chdir(tmp_path)
    assert branch_head("ses_here", "aside") == ""
