"""`accord doctor` beside the data directory of another server: its advice leads out, not around."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accord.cli.doctor.check_result import OK, CheckResult
from tests.helpers.clients.cli import clean_environment, run_accord
from tests.helpers.servers.server_process import ServerProcess, run_server

MAX_STEPS = 6


@pytest.fixture
def other(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server whose data directory is in ACCORD_HOME, but not its address in ACCORD_URL."""
    with run_server(tmp_path / "other") as running:
        yield running


class Olga:
    """Somebody who does what `accord doctor` says, one thing after the other."""

    def __init__(self, server: ServerProcess, home: Path, config: Path) -> None:
        self.server = server
        self.flags: list[str] = []
        programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.env = {
            "ACCORD_HOME": str(home),
            "ACCORD_URL": server.url,
            "XDG_CONFIG_HOME": str(config),
            "HOME": str(config.parent),
            "PATH": programs,
        }

    def checks(self) -> list[CheckResult]:
        found = run_accord("doctor", "--json", *self.flags, cwd=None, **self.env)
        return [CheckResult(**each) for each in found.json["checks"]]

    def follow(self, fix: str) -> None:
        """Type the command of the advice; what stands for something is filled in."""
        command = fix.rpartition(": ")[2] if fix[0].isupper() else fix
        home = str(self.server.home)
        match command:
            case "accord doctor --data-dir DIR":
                self.flags = ["--data-dir", home]
            case "accord login LINK":
                invite = ("invite", "--role", "driver", "--name", "olga", "--data-dir", home)
                link = run_accord(*invite).out.strip()
                self.run(f"accord login '{link}'")
            case _:
                self.run(command.replace("YOU", "olga"))

    def run(self, command: str) -> None:
        done = subprocess.run(
            ["sh", "-c", command],
            env=clean_environment(**self.env),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)


def first_advice(problems: list[CheckResult]) -> CheckResult:
    return problems[0]


def last_advice(problems: list[CheckResult]) -> CheckResult:
    return problems[-1]


@pytest.mark.parametrize(
    ("choose", "is_new"), [(first_advice, False), (last_advice, True)], ids=["used", "new"]
)
def test_the_advice_leads_to_a_clean_report_and_never_back(
    server: ServerProcess,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    choose: Callable[[list[CheckResult]], CheckResult],
    *,
    is_new: bool,
) -> None:
    home = tmp_path / "none" if is_new else request.getfixturevalue("other").home
    olga = Olga(server, home, tmp_path / "olga" / "config")
    seen: list[set[CheckResult]] = []
    while problems := [each for each in olga.checks() if each.state != OK]:
        assert {*problems} not in seen, "the same was said before"
        seen.append({*problems})
        assert len(seen) < MAX_STEPS, seen
        olga.follow(choose(problems).fix)

    assert any("does not use" in each.found for each in seen[0])
    assert olga.flags == ["--data-dir", str(server.home)]
