"""Messages that the hooks complete pass stock commitlint, gitlint and commitizen."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.clients.cli import CommandRun
from tests.helpers.git import npm_programs
from tests.helpers.git.work_tree import WorkTree

pytestmark = [pytest.mark.network, pytest.mark.timeout(600)]

MANY_IDS = ",".join(f"01M7GMJP1Y4T7CP7A3QNGAT9{number:02}" for number in range(40))
CONTEXT = {
    "PVP_SESSION_ID": "ses_01M7GMJP1Y4T7CP7A3QNGAT9X2",
    "PVP_MESSAGES": MANY_IDS,
    "PVP_DECISION_BY": ",".join(["human:alice", "ai:claude", *(f"human:p{n}" for n in range(20))]),
    "PVP_FORK_ID": "fork_01M7GMJP1Y4T7CP7A3QNGAT9X2",
    "PVP_CONFIDENCE": "0.9",
    "PVP_DECISION_TYPE": "bugfix",
}
OWN_PARTS = {
    "header and body": "fix: mend the race\n\nThe lock was taken after the read of the counter.\n",
    "with a trailer": (
        "fix(core): mend the race\n\nThe lock was taken after the read of the counter.\n\n"
        "Signed-off-by: Alice <alice@example.org>\n"
    ),
}


@pytest.fixture(scope="module")
def npm_commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return npm_programs.install(tmp_path_factory.mktemp("npm"))


@pytest.fixture
def linters(work: WorkTree, npm_commands: Path) -> "Linters":
    return Linters(work, npm_commands)


class Linters:
    """The three programs, each with its stock rules."""

    def __init__(self, work: WorkTree, npm_commands: Path) -> None:
        self.work = work
        self.env = {
            **work.env,
            "PATH": f"{npm_programs.NODE_DIR}{os.pathsep}{work.env['PATH']}",
        }
        self.file = work.home / "message"
        python = Path(sys.executable).parent
        conventional = ("--extends", "@commitlint/config-conventional")
        self.words: dict[str, tuple[str, ...]] = {
            "commitlint": (
                str(npm_commands / "commitlint"),
                *conventional,
                *("--cwd", str(npm_commands.parent.parent)),
            ),
            "gitlint": (str(python / "gitlint"),),
            "commitizen": (str(python / "cz"), "check", "--commit-msg-file", str(self.file)),
        }

    def run(self, name: str, message: str) -> CommandRun:
        """Check one message; gitlint and commitlint read it from standard input."""
        self.file.write_text(message)
        done = subprocess.run(
            self.words[name],
            input=message,
            capture_output=True,
            text=True,
            cwd=self.work.path,
            env=self.env,
            check=False,
            timeout=60,
        )
        return CommandRun(done.returncode, done.stdout, done.stderr)


each_linter = pytest.mark.parametrize("name", ["commitlint", "gitlint", "commitizen"])


@each_linter
@pytest.mark.parametrize("own_part", OWN_PARTS.values(), ids=OWN_PARTS)
def test_a_completed_message_passes_when_its_own_part_does(
    linters: Linters, name: str, own_part: str
) -> None:
    assert linters.run(name, own_part).code == 0
    work = linters.work.with_environment(**CONTEXT)
    work.commit(own_part)
    completed = work.message()
    assert "PVP-Session: ses_01M7GMJP1Y4T7CP7A3QNGAT9X2" in completed

    ran = linters.run(name, completed)

    assert ran.code == 0, (completed, ran)


EXPLORE = "explore: try another lock\n\nThe first one is slow when many readers wait.\n"
# What a repository has before, by linter; only these rules look at the type.
CONFIGURATIONS = {
    "commitlint": (".commitlintrc.json", '{"extends": ["@commitlint/config-conventional"]}\n'),
    "gitlint": (".gitlint", "[general]\ncontrib=contrib-title-conventional-commits\n"),
    "commitizen": ("pyproject.toml", '[tool.commitizen]\nname = "cz_conventional_commits"\n'),
}
REFUSALS = {"commitlint": "type-enum", "gitlint": "CT1", "commitizen": "validation: failed"}


def offered_setting(work: WorkTree, name: str) -> str:
    """The setting that `accord git install` prints; empty if it prints none."""
    lines = work.accord("git", "install").out.splitlines()
    begin = next((n for n, line in enumerate(lines) if line.startswith(f"{name} refuses")), None)
    if begin is None:
        return ""
    after = lines[begin + 1 :]
    end = next(n for n, line in enumerate(after) if not line.startswith("  "))
    return "\n".join(line.removeprefix("  ") for line in after[:end])


@each_linter
def test_install_offers_the_setting_that_accepts_the_type_explore(
    linters: Linters, npm_commands: Path, name: str
) -> None:
    work = linters.work
    file, content = CONFIGURATIONS[name]
    (work.path / file).write_text(content)
    (work.path / "node_modules").symlink_to(npm_commands.parent)
    linters.words["commitlint"] = (str(npm_commands / "commitlint"),)
    refused = linters.run(name, EXPLORE)
    assert refused.code != 0
    assert REFUSALS[name] in refused.out + refused.err

    setting = offered_setting(work, name)
    is_json = file.endswith(".json")
    extended = content.replace("}", f", {setting}}}") if is_json else f"{content}{setting}\n"
    (work.path / file).write_text(extended)

    ran = linters.run(name, EXPLORE)
    assert ran.code == 0, (extended, ran)
    assert linters.run(name, "nonsense: try\n\nA body that is long enough for it.\n").code != 0
    assert offered_setting(work, name) == ""


def test_install_offers_nothing_where_no_linter_is_configured(work: WorkTree) -> None:
    (work.path / "package.json").write_text('{"name": "shop"}\n')
    (work.path / "pyproject.toml").write_text('[project]\nname = "shop"\n')
    (work.path / ".gitlint").write_text("[general]\nignore=B6\n")

    assert "explore" not in work.accord("git", "install").out
