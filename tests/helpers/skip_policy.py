"""With CI=true a skipped test fails the run, unless `tests/unavailable.toml` lists it."""

import tomllib
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

UNAVAILABLE = Path(__file__).parents[1] / "unavailable.toml"
SKIPPED_PREFIX = "Skipped: "
LONG_MARK = "long"
ReportT = TypeVar("ReportT", pytest.TestReport, pytest.CollectReport)


class UnavailablePart(NamedTuple):
    """Tests that may be skipped for this reason, and why it cannot be helped."""

    name: str
    tests: tuple[str, ...]
    reason: str
    why: str

    def has(self, test: str, reason: str) -> bool:
        return test.startswith(self.tests) and reason == self.reason


def read_parts(file: Path) -> list[UnavailablePart]:
    """The parts that are listed; KeyError or TypeError if one lacks something."""
    listed = tomllib.loads(file.read_text("utf-8")).get("part", [])
    return [UnavailablePart(**{**part, "tests": tuple(part["tests"])}) for part in listed]


class SkipPolicy:
    """A plugin for pytest: no test is left out of CI unnoticed, none runs long unasked."""

    def __init__(self, env: Mapping[str, str], file: Path = UNAVAILABLE) -> None:
        self.is_ci = env.get("CI", "").lower() == "true"
        self.is_long = bool(env.get("ACCORD_LONG"))
        self.parts = read_parts(file)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        return self.checked((yield))

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self,
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        return self.checked((yield))

    def checked(self, report: ReportT) -> ReportT:
        """The report, failed if the test was skipped and must not be."""
        if not (self.is_ci and report.skipped) or hasattr(report, "wasxfail"):
            return report
        reason = reason_of(report)
        if not any(part.has(report.nodeid, reason) for part in self.parts):
            report.outcome = "failed"
            report.longrepr = (
                f"{report.nodeid} was skipped: {reason}\n"
                f"With CI=true every test runs, except for those in tests/{UNAVAILABLE.name}."
            )
        return report

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Leave out what `make soak` asks for; it is not skipped, since nobody wants it here."""
        left_out = [item for item in items if item.get_closest_marker(LONG_MARK)]
        if left_out and not self.is_long:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item not in left_out]


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why a test was skipped, as it says itself."""
    where = report.longrepr
    text = where[2] if isinstance(where, tuple) else str(where or "")
    return text.removeprefix(SKIPPED_PREFIX)
