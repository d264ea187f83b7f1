"""Files that exports are written to."""

import os
import threading
from pathlib import Path

from accord.cli.export_file import write_export_file


def test_an_export_is_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "session.html"
    file.write_text("old")
    file.chmod(0o644)
    write_export_file(file, "new")

    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=write_export_file, args=(pipe, "text"))
    writer.start()

    assert pipe.read_text() == "text"
    writer.join(30)
    assert pipe.is_fifo()
