"""What no table of the code says: a sentence for every name, kept in docs/reference/words.toml.

A name without its sentence is an error, and so is a sentence whose name is gone.
"""

import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

FILE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "words.toml"


class WordsError(Exception):
    """The sentences and the code do not fit together."""


@cache
def _all() -> dict[str, dict[str, str]]:
    return tomllib.loads(FILE.read_text("utf-8"))


def sentences_of(section: str, names: Iterable[str]) -> dict[str, str]:
    """The sentences of a section, exactly one for each name."""
    known = _all().get(section, {})
    wanted = list(names)
    missing = [name for name in wanted if name not in known]
    stale = sorted(known.keys() - set(wanted))
    if missing or stale:
        wrong = [f"{name} has no sentence" for name in missing]
        wrong += [f"{name} is gone from the code" for name in stale]
        raise WordsError(f"{FILE.name}, section {section}: {'; '.join(wrong)}")
    return {name: known[name] for name in wanted}
