"""What a check of `accord doctor` comes to."""

from typing import NamedTuple

OK, WARN, FAIL = "ok", "warn", "fail"


class Check(NamedTuple):
    """One line: how it is, what it is about, what was found, what to do."""

    state: str
    about: str
    says: str
    cure: str = ""
