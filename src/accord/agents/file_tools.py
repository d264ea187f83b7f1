"""The tools `write_file` and `edit_file`: what they do follows from their arguments alone.

An approval of such a call covers the content that it leaves, which an approval of a shell command
cannot; docs/design/approval-coverage.md explains why.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accord.core.provenance.coverage.coverage_rule import file_operations
from accord.core.provenance.coverage.text_changes import CallDoesNotFitError

FILE_TOOLS = ("write_file", "edit_file")


class FileToolError(Exception):
    """The call cannot be run; the message says why."""


def run_file_tool(name: str, arguments: Mapping[str, Any], workdir: Path) -> str:
    """Change the file as the call says; returns its path in the work directory."""
    (operation,) = file_operations(name, arguments, str(workdir)) or (None,)
    if operation is None:
        raise FileToolError(
            f"{name} needs a path inside the work directory and only the arguments of its kind"
        )
    file = workdir / operation.path
    if file.is_symlink() or not file.resolve().is_relative_to(workdir.resolve()):
        raise FileToolError(f"{operation.path} is a link or leads out of the work directory")
    try:
        before = file.read_bytes().decode() if file.exists() else None
        content = operation.change.apply(before)
    except (OSError, UnicodeDecodeError) as error:
        raise FileToolError(f"{operation.path} cannot be read as text: {error}") from None
    except CallDoesNotFitError:
        raise FileToolError(
            f"The text to replace is not in {operation.path} exactly once"
        ) from None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes((content or "").encode())
    except OSError as error:
        raise FileToolError(f"{operation.path} cannot be written: {error.strerror}") from None
    return operation.path
