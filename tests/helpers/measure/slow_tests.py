"""No test takes longer than 20 seconds but those that are named here.

On a loaded machine any test takes long by the clock. What is limited is therefore CPU time, of the
test and all processes that it starts, relative to the speed of the machine: an idle machine with
two cores spends `LIMIT_CPU_S` in 20 seconds, because a test keeps one and a half of them busy at
most. A test that waits is stopped by pytest's `timeout`.
"""

import os
import time
from collections.abc import Generator

import pytest

from tests.helpers.measure.cpu_time import machine_slowdown
from tests.helpers.measure.process_tree import tree_cpu_s

LIMIT_S = 20.0
LIMIT_CPU_S = 30.0
NAMED = {
    "tests/chaos/test_several_servers_history.py"
    "::test_history_agrees_with_the_log_under_every_fault": "every fault strikes three servers "
    "and their database three times, and after each the whole log is compared",
    "tests/hosts/test_connected_story.py"
    "::test_three_vendors_agents_and_two_people_work_in_one_session": "starts the agents of three "
    "vendors, each of which needs seconds of CPU before its first turn",
    "tests/properties/test_conversations.py::TestConversations::runTest": "thousands of steps "
    "of random conversations, each checked against a model",
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
    started, used = time.monotonic(), tree_cpu_s()
    result = yield
    seconds, cpu_s = time.monotonic() - started, tree_cpu_s() - used
    if may_be_slow(test.nodeid) or seconds < LIMIT_S or cpu_s < LIMIT_CPU_S:
        return result
    limit = LIMIT_CPU_S * machine_slowdown()
    if cpu_s > limit:
        pytest.fail(
            f"this test used {cpu_s:.0f} s of CPU; at most {limit:.0f} s here, unless "
            "tests/helpers/measure/slow_tests.py names it with a reason",
            pytrace=False,
        )
    return result


def may_be_slow(test_id: str) -> bool:
    return bool(os.environ.get("ACCORD_LONG")) or test_id in NAMED
