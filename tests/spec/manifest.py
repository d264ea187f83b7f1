"""The clauses and parts as they stand in the TOML files beside this module."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

# The specifications in the order in which a reader meets them, with the number of their clauses.
COUNTS = {"PVP": 227, "GIT": 68, "PA": 108, "PACT": 87, "MSG": 74, "UNI": 30, "OPEN": 137}

# Not specifications of others but our rulings over them.
RULINGS = frozenset({"UNI", "OPEN"})


class Level(StrEnum):
    """How binding a clause is: a word of RFC 2119, a definition, or a ruling of ours."""

    MUST = "MUST"
    SHOULD = "SHOULD"
    MAY = "MAY"
    FACT = "FACT"
    RULING = "RULING"


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of the product; what is delivered has nothing left to defer."""

    key: str
    sentence: str
    delivered: bool = False


@dataclass(frozen=True, slots=True)
class Clause:
    """One sentence to conform to. It waits for `part` as a whole, or only its `rest` does."""

    id: str
    level: Level
    sentence: str
    part: str | None = None
    rest: str | None = None
    reason: str | None = None

    @property
    def awaits(self) -> str | None:
        """The part that completes this clause, if it is not complete yet."""
        return self.part or self.rest


@dataclass(frozen=True, slots=True)
class Specification:
    """One document and its clauses in their own order."""

    key: str
    title: str
    clauses: tuple[Clause, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything Accord answers for, now or later."""

    specifications: tuple[Specification, ...]
    parts: dict[str, Part]

    @property
    def clauses(self) -> Iterator[Clause]:
        """All clauses of all specifications."""
        return (clause for each in self.specifications for clause in each.clauses)


def load(folder: Path = HERE) -> Manifest:
    """The manifest of a folder; an unknown field or level in it is an error."""
    files = (folder / "clauses" / f"{key.lower()}.toml" for key in COUNTS)
    parts = _read(folder / "parts.toml")
    return Manifest(
        specifications=tuple(_specification(_read(file)) for file in files),
        parts={key: Part(key=key, **fields) for key, fields in parts.items()},
    )


def _specification(table: dict[str, Any]) -> Specification:
    clauses = (Clause(**row | {"level": Level(row["level"])}) for row in table["clause"])
    return Specification(table["key"], table["title"], tuple(clauses))


def _read(file: Path) -> dict[str, Any]:
    return tomllib.loads(file.read_text(encoding="utf-8"))
