"""No test takes longer than 20 seconds but those that are named here.

On a loaded machine any test takes long by the clock, and none may fail for that. So two times are
judged that load does not stretch: the CPU time of the test and of all processes that it starts, and
the time by the clock in which nothing on this machine waited for CPU, memory or a disk (Linux's
pressure figures; elsewhere the CPU time alone). Both are relative to the speed of the machine.
"""

import os
import re
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.helpers.measure.cpu_time import machine_slowdown
from tests.helpers.measure.process_tree import tree_cpu_s

LIMIT_S = 20.0
# The same work takes a little longer or shorter each time.
TOLERANCE = 1.25
PRESSURE = Path("/proc/pressure")
NAMED = {
    "tests/chaos/test_several_servers_history.py"
    "::test_history_agrees_with_the_log_under_every_fault": "every fault strikes three servers "
    "and their database three times, and after each the whole log is compared",
    "tests/hosts/test_connected_story.py"
    "::test_three_vendors_agents_and_two_people_work_in_one_session": "starts the agents of three "
    "vendors, each of which needs seconds of CPU before its first turn",
    "tests/setup/test_lock.py"
    "::test_runtime_lock_installs_alone_and_a_missing_package_is_reported": "`make` installs the "
    "whole lock twice, from an index of its own",
    "tests/setup/test_lock.py::test_setup_installs_exactly_the_lock": "`make setup` installs the "
    "whole lock, and imports what it has installed",
    "tests/stories/test_three_people_two_days.py::test_the_record_is_true_after_two_days": "the "
    "story of three people, their agents, forks, crashes and commits, without a cut",
}


def limit_time(test: pytest.Item) -> Generator[None, object, object]:
    """Run a test, and fail it if it takes longer than a test without a name may."""
    started, used, stalled = time.monotonic(), tree_cpu_s(), stalled_s()
    result = yield
    wall_s = time.monotonic() - started
    if wall_s < LIMIT_S or may_be_slow(test.nodeid):
        return result
    taken = tree_cpu_s() - used
    if stalled is not None and (now := stalled_s()) is not None:
        taken = max(taken, wall_s - (now - stalled))
    limit = LIMIT_S * TOLERANCE * machine_slowdown()
    if taken > limit:
        pytest.fail(
            f"this test took {taken:.0f} s without the load of the machine; at most {limit:.0f} s "
            "here, unless tests/helpers/measure/slow_tests.py names it with a reason",
            pytrace=False,
        )
    return result


def may_be_slow(test_id: str) -> bool:
    return bool(os.environ.get("ACCORD_LONG")) or test_id in NAMED


def stalled_s() -> float | None:
    """Seconds so far in which something on this machine had to wait; None if nobody counts."""
    try:
        figures = [(PRESSURE / each).read_text("ascii") for each in ("cpu", "memory", "io")]
    except OSError:
        return None
    totals = [re.search(r"^some .*total=(\d+)", figure, re.MULTILINE) for figure in figures]
    return sum(int(total[1]) for total in totals if total) / 1e6
