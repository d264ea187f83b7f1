"""Many at once: one winner for each task, and no line that another one tore."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from accord.core.kernel.refusal import Refused
from accord.core.work.format import log_lines
from accord.core.work.verbs import ActingSeat
from accord.pact import verbs
from accord.pact.ledger import file_lock
from accord.pact.location import find_location
from accord.pact.workspace import Workspace, WorkspacePorts
from tests.helpers.clients.cli import COMMAND_TIMEOUT_S, clean_environment
from tests.helpers.git.repositories import create_repository
from tests.helpers.seeds import LONG
from tests.pact.team import Team, assignment
from tests.spec import proves

# How many tasks each of twenty processes tries to assign.
ATTEMPTS = 300 if LONG else 15
WRITER = """
import sys
from pathlib import Path
from accord.core.kernel.refusal import Refused
from accord.core.work.verbs import ActingSeat, Assignment
from accord.pact import verbs
from accord.pact.workspace import open_workspace

seat, attempts = sys.argv[1], int(sys.argv[2])
here = open_workspace(Path.cwd(), "", seat)
print("ready", flush=True)
sys.stdin.readline()
won = 0
for number in range(attempts):
    try:
        said = Assignment(f"T{number}", f"F{number % 7}", "b", "bob", "cy")
        verbs.assign(here, ActingSeat(seat), said)
        won += 1
    except Refused as refusal:
        assert "already exists" in refusal.detail, refusal.detail
print(won)
"""


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(create_repository(tmp_path / "repo").root).init()


@proves("PACT-6.4-1", "OPEN-106")
def test_of_two_who_assign_one_task_one_wins(team: Team) -> None:
    command = [sys.executable, "-m", "accord", "pact", *assignment("T1")]
    both = [
        subprocess.Popen(
            command,
            cwd=team.root,
            env=clean_environment(PACT_AGENT_ID=seat),
            stderr=subprocess.PIPE,
        )
        for seat in ("ann", "cy")
    ]
    told = [each.communicate(timeout=COMMAND_TIMEOUT_S)[1] for each in both]

    assert sorted(each.returncode for each in both) == [0, 5]
    assert sum(b"already exists" in each for each in told) == 1
    assert team.kinds == ["init", "assign"]


@proves("OPEN-106", "PACT-2-1", "PACT-6.4-1")
@pytest.mark.timeout(1200 if LONG else 120)
def test_twenty_who_write_at_once_tear_no_line_and_win_each_task_once(team: Team) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, ("ann", "bob", "cy")[number % 3], str(ATTEMPTS)],
            cwd=team.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(20)
    ]
    for each in writers:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    outs = list[str]()
    for each in writers:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    for each in writers:
        outs.append(each.communicate(timeout=1100 if LONG else 100)[0])
        assert each.returncode == 0

    data = (team.pact / "log.jsonl").read_bytes()
    reading = log_lines.parse_log(data)
    tasks = Counter(entry.event.task_id for entry in reading.entries[1:])

    assert reading.faults == []
    assert len({entry.event.event_id for entry in reading.entries}) == len(reading.entries)
    assert set(tasks.values()) == {1}
    assert sum(map(int, outs)) == len(tasks) == ATTEMPTS
    assert team("ann", "validate").code == 0


def test_a_tool_that_takes_no_lock_does_not_come_between(team: Team) -> None:
    """Bash tools append without a lock: what was decided on an older log is decided again."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom accord.pact.workspace import open_workspace\n"
        "from accord.core.work import verbs\n"
        "from accord.core.work.verbs import ActingSeat, Assignment\n"
        "here = open_workspace(Path.cwd(), '', 'ann')\nlooked = 0\n"
        "def decide(work):\n"
        "    global looked\n    looked += 1\n"
        "    if looked == 1:\n"
        "        theirs = Path('theirs').read_bytes()\n"
        "        with here.location.log_path.open('ab') as log: log.write(theirs)\n"
        "    return verbs.assign(work, ActingSeat('ann'), Assignment('T1','F','b','bob','ann'))\n"
        "try:\n    here.write(decide)\nexcept Exception as no:\n    print(looked, no)\n"
    )
    theirs = team.events[0] | {
        "event_id": "theirs",
        "event_type": "assign",
        "task_id": "T1",
        "feature": "F",
        "payload": {"owner": "bob", "reviewer": "cy", "branch": "b", "spec": "t"},
    }
    (team.root / "theirs").write_text(json.dumps(theirs) + "\n")

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=team.root, capture_output=True, text=True, check=True
    )

    assert done.stdout.startswith("2 Task T1 already exists")
    assert team.kinds == ["init", "assign"]


def test_while_another_tool_merges_nobody_else_does(team: Team) -> None:
    naps = list[float]()
    lock = team.root / ".git" / "pactify-base.lock"
    with file_lock(lock, 1):
        desk = Workspace(find_location(team.root), "ann", WorkspacePorts(sleep=naps.append))
        with pytest.raises(Refused, match="try again later"):
            verbs.merge(desk, ActingSeat("ann"), "F", git=True)
    assert 179 < sum(naps) < 181
