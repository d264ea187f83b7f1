"""Who watches over a server under attack is not misled by the machine, and misses nothing."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.attacks.bystanders import LONGEST, Heard, Witness
from tests.helpers.attacks.machine_stalls import STALL, Machine, processor_wait


def witness(*seconds: float) -> Witness:
    """One who heard a number every minute, each so late."""
    nobody: Any = None
    made = Witness("s", nobody, nobody)
    made.said = len(seconds)
    made.heard = [Heard(n, 60.0 * n, 60.0 * n + late) for n, late in enumerate(seconds)]
    return made


def test_what_took_too_long_is_noticed(tmp_path: Path) -> None:
    witness(0.1, LONGEST - 0.1).check(Machine(tmp_path))

    with pytest.raises(AssertionError):
        witness(0.1, LONGEST + 0.1).check(Machine(tmp_path))


def test_what_the_machine_stood_still_for_does_not_count_where_it_did(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.took(59.0, 64.0)

    witness(0.1, LONGEST + 3.9).check(machine)
    with pytest.raises(AssertionError):
        witness(0.1, LONGEST + 4.1).check(machine)
    with pytest.raises(AssertionError):
        witness(LONGEST + 0.1, 0.1).check(machine)


def test_a_machine_that_is_merely_busy_stood_not_still(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    for n in range(1000):
        machine.took(n * STALL, (n + 1) * STALL)

    assert machine.stood_still(0.0, 1000.0) == 0.0


def test_a_slow_machine_gets_more_time_in_proportion(tmp_path: Path) -> None:
    slow = witness(0.1, 3 * LONGEST - 0.1)
    slow.slowdown = 3.0
    slow.check(Machine(tmp_path))

    slow.slowdown = 2.9
    with pytest.raises(AssertionError):
        slow.check(Machine(tmp_path))


def test_waiting_for_a_processor_does_not_count(tmp_path: Path) -> None:
    late = witness(0.1)
    late.heard = [Heard(0, 0.0, LONGEST + 3.9, waited=4.0)]
    late.check(Machine(tmp_path))

    late.heard = [Heard(0, 0.0, LONGEST + 4.1, waited=4.0)]
    with pytest.raises(AssertionError):
        late.check(Machine(tmp_path))


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="Linux counts it")
def test_a_process_that_shares_its_processor_waits_for_it() -> None:
    (processor, *_) = os.sched_getaffinity(0)
    spin = (
        f"import os; os.sched_setaffinity(0, {{{processor}}}); print(flush=True)\nwhile True: pass"
    )
    words = [sys.executable, "-c", spin]
    with (
        subprocess.Popen(words, stdout=subprocess.PIPE) as one,
        subprocess.Popen(words, stdout=subprocess.PIPE) as two,
    ):
        try:
            for each in (one, two):
                assert each.stdout
                each.stdout.readline()
            deadline = time.monotonic() + 30
            while processor_wait([one.pid]) + processor_wait([two.pid]) < 0.1:
                assert time.monotonic() < deadline, "two share one processor and neither waits"
                time.sleep(0.01)
        finally:
            one.kill()
            two.kill()


@pytest.mark.parametrize("heard", [[0], [1, 0], [0, 0, 1]])
def test_a_number_that_is_missing_twice_or_elsewhere_is_noticed(
    tmp_path: Path, heard: list[int]
) -> None:
    made = witness(0.1, 0.1)
    made.heard = [Heard(n, 0.0, 0.1) for n in heard]

    with pytest.raises(AssertionError):
        made.check(Machine(tmp_path))


def test_a_machine_naps_until_it_is_told(tmp_path: Path) -> None:
    ticks = iter(range(10_000))
    with Machine(tmp_path, lambda: next(ticks) * 2.0) as machine:
        while len(machine.stalls) < 2:
            pass

    assert machine.stalls[:2] == [(0.0, 2.0), (4.0, 6.0)]
