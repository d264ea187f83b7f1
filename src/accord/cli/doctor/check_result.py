"""The result of one check of `accord doctor`."""

from typing import NamedTuple

OK, WARN, FAIL = "ok", "warn", "fail"


class CheckResult(NamedTuple):
    """One finding: its state, its subject, what was found, and how to fix it."""

    state: str
    about: str
    found: str
    fix: str = ""
