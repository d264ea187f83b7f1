"""`accord backup`, `restore` and `verify` on a home, and what is there afterwards."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.helpers.cli import Ran, accord


def backup(home: Path, file: Path, *words: str) -> Ran:
    return accord("backup", str(file), "--data-dir", str(home), *words)


def restore(home: Path, file: Path, *words: str) -> Ran:
    return accord("restore", str(file), "--data-dir", str(home), *words)


def verify(home: Path) -> Ran:
    return accord("verify", "--data-dir", str(home), "--json")


def heads(home: Path) -> dict[str, str]:
    found = verify(home).json["streams"]
    return {each["stream"]: f"{each['version']}:{each['hash']}" for each in found}


def ask(file: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(file)) as db:
        return db.execute(sql).fetchall()


def aside(home: Path) -> list[Path]:
    return sorted(home.glob("accord.db.before-*Z"))
