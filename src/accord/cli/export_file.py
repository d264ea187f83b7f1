"""Writes an export to a file that only its owner can read."""

from pathlib import Path

from accord.atomic_files import write_private


def write_export_file(file: Path, text: str) -> None:
    """Replace the file with one of mode 600; a pipe or device is written to as it is."""
    if file.exists() and not file.is_file():
        file.write_text(text, "utf-8")
    else:
        write_private(file, text.encode("utf-8"))
