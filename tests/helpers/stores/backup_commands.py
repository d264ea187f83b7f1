"""Runs `accord backup`, `restore` and `verify` on a data directory."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.helpers.clients.cli import CommandRun, run_accord


def backup(home: Path, file: Path, *words: str) -> CommandRun:
    """Run `accord backup`."""
    return run_accord("backup", str(file), "--data-dir", str(home), *words)


def restore(home: Path, file: Path, *words: str) -> CommandRun:
    """Run `accord restore`."""
    return run_accord("restore", str(file), "--data-dir", str(home), *words)


def verify(home: Path) -> CommandRun:
    """Run `accord verify --json`."""
    return run_accord("verify", "--data-dir", str(home), "--json")


def stream_heads(home: Path) -> dict[str, str]:
    """Version and hash of the head of each stream, according to `accord verify`."""
    found = verify(home).json["streams"]
    return {each["stream"]: f"{each['version']}:{each['hash']}" for each in found}


def query_database(file: Path, sql: str) -> list[Any]:
    """Rows read directly from a database file."""
    with closing(sqlite3.connect(file)) as db:
        return db.execute(sql).fetchall()


def replaced_databases(home: Path) -> list[Path]:
    """The databases that a restore moved aside."""
    return sorted(home.glob("accord.db.before-*Z"))
