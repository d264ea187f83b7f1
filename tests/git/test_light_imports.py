"""What hooks import at every commit costs next to nothing."""

import json
import subprocess
import sys
from pathlib import Path

from accord.git import process, repository

SOURCE = Path(__file__).resolve().parents[2] / "src"
LIGHT = (
    *("commit_message.writer", "commit_message.lint", "commit_message.parser", "notes.note"),
    "commit_message.trailer_values",
)
REDACTION = "accord.core.kernel.redaction"
REST = ("commit_message.trailers",)
HEAVY = (
    "msgspec",
    "asyncio",
    "dataclasses",
    "inspect",
    "hashlib",
    "ssl",
    "urllib",
    "typing_extensions",
)

HEAVIER = (*HEAVY, "typing", "re", "enum", "json", "functools", "contextlib", "pathlib", "socket")


def test_what_every_hook_loads_is_lighter_still() -> None:
    script = f"import sys; sys.path.insert(0, {str(SOURCE)!r}); import accord.git.hooks.dispatch; "
    script += f"print([each for each in {HEAVIER!r} if each in sys.modules])"

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"


def test_a_named_tuple_is_as_typing_has_it() -> None:
    ours = process.GitLimits

    assert (ours._fields, set(ours._field_defaults)) == (
        ("timeout_s", "max_bytes"),
        {"timeout_s", "max_bytes"},
    )
    assert ours(1.0) == (1.0, process.MAX_OUTPUT_BYTES) == ours(1.0)._replace(timeout_s=1.0)
    assert (ours.__doc__, ours.__module__) == (
        *("Timeout and output limit of one git process.",),
        process.__name__,
    )
    assert repository.Commit("a", (), "b", "c", "d\ne").subject == "d"


def test_reading_and_writing_messages_and_notes_needs_the_standard_library_alone() -> None:
    modules = (f"accord.core.provenance.{each}" for each in (*LIGHT, *REST))
    names = ", ".join((*modules, REDACTION))
    script = f"import sys, json; sys.path.insert(0, {str(SOURCE)!r}); import {names}; "
    script += f"print(json.dumps([each for each in {HEAVY!r} if each in sys.modules]))"

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=True
    )

    assert json.loads(done.stdout) == []
