"""The tools `write_file`, `edit_file` and `apply_patch`: their arguments alone say what they do.

An approval of such a call covers the content that it leaves, which an approval of a shell command
cannot; docs/design/approval-coverage.md explains why.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accord.core.provenance.coverage.coverage_rule import FileOperation, file_operations
from accord.core.provenance.coverage.text_changes import CallDoesNotFitError, ReplaceText

FILE_TOOLS = ("write_file", "edit_file", "apply_patch")


class FileToolError(Exception):
    """The call cannot be run; the message says why."""


def run_file_tool(name: str, arguments: Mapping[str, Any], workdir: Path) -> tuple[str, ...]:
    """Change the files as the call says, all of them or none; returns their paths."""
    operations = file_operations(name, arguments, str(workdir))
    if not operations:
        raise FileToolError(
            f"{name} needs a path inside the work directory and only the arguments of its kind"
        )
    contents: dict[str, str | None] = {}
    for operation in operations:
        for path in {operation.path, operation.starts_from}:
            if path not in contents:
                contents[path] = read_text(workdir, path)
        contents[operation.path] = content_after(operation, contents[operation.starts_from])
        if operation.source and operation.source != operation.path:
            contents[operation.source] = None
    for path, content in contents.items():
        write_text(workdir / path, path, content)
    return tuple(contents)


def read_text(workdir: Path, path: str) -> str | None:
    """What the file contains; None if it is not there."""
    file = workdir / path
    if file.is_symlink() or not file.resolve().is_relative_to(workdir.resolve()):
        raise FileToolError(f"{path} is a link or leads out of the work directory")
    try:
        return file.read_bytes().decode() if file.exists() else None
    except (OSError, UnicodeDecodeError) as error:
        raise FileToolError(f"{path} cannot be read as text: {error}") from None


def content_after(operation: FileOperation, before: str | None) -> str | None:
    """What the file contains afterwards; None if it is removed."""
    try:
        return operation.change.apply(before)
    except CallDoesNotFitError:
        if isinstance(operation.change, ReplaceText):
            problem = f"The text to replace is not in {operation.path} exactly once"
        else:
            problem = f"The patch does not fit {operation.path}; read the file again"
        raise FileToolError(problem) from None


def write_text(file: Path, path: str, content: str | None) -> None:
    """Write or remove the file."""
    try:
        if content is None:
            file.unlink(missing_ok=True)
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode())
    except OSError as error:
        raise FileToolError(f"{path} cannot be written: {error.strerror}") from None
