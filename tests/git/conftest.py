"""A repository with hooks, and somebody who works there in a session."""

from pathlib import Path

import pytest

from tests.helpers.git.work_tree import WorkTree

SESSION = {
    "PVP_SESSION_ID": "ses_01HX7K9P4QZCVD3N8MYW6R5T2B",
    "PVP_MESSAGES": "msg-01,msg-05",
    "PVP_DECISION_BY": "human:alice,ai:claude",
}


@pytest.fixture
def plain(tmp_path: Path) -> WorkTree:
    """A repository without hooks."""
    return WorkTree.create(tmp_path)


@pytest.fixture
def work(plain: WorkTree) -> WorkTree:
    """With hooks, without a session."""
    ran = plain.accord("git", "install")
    assert ran.code == 0, ran.err
    return plain


@pytest.fixture
def session(work: WorkTree) -> WorkTree:
    """With hooks, in a session that the environment names."""
    return work.with_environment(**SESSION)
