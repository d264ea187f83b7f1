"""Records which functions of Accord run in this process, one line for each, while asked to.

`python call_recorder.py DIRECTORY NAME MODULE [ARGUMENT …]` runs a module and records it. The byte
in `DIRECTORY/phase` says what happens now, and may change at any time: 0 records nothing, and any
other number is written at the start of each line. `trace_files.py` reads the lines.

It uses the standard library alone, because git hooks run without site packages.
"""

import mmap
import os
import runpy
import sys
import threading
from types import CodeType, FrameType
from typing import Any

PHASE_FILE = "phase"
SOURCE = f"{os.sep}src{os.sep}accord{os.sep}"
CO_OPTIMIZED = 1  # set for functions, and not for the bodies of modules and classes
IMPORT_SYSTEM = "<frozen importlib"


def record(directory: str, name: str) -> None:
    """Record this process and its threads from now on."""
    with open(os.path.join(directory, PHASE_FILE), "rb") as file:  # noqa: PTH118, PTH123 - pathlib is slow to import in a hook
        phase = mmap.mmap(file.fileno(), 1, access=mmap.ACCESS_READ)
    path = os.path.join(directory, f"{name}-{os.getpid()}.calls")  # noqa: PTH118 - see above
    # A hook leaves without closing its files, so every line is written at once.
    out = open(path, "a", buffering=1, encoding="utf-8")  # noqa: PTH123, SIM115 - see above
    seen: set[tuple[int, CodeType]] = set()

    def on_event(frame: FrameType, event: str, _: Any) -> None:
        now, code = phase[0], frame.f_code
        if event != "call" or not now or (now, code) in seen:
            return
        _, found, file = code.co_filename.rpartition(SOURCE)
        if found and (not code.co_flags & CO_OPTIMIZED or _is_importing(frame)):
            return
        seen.add((now, code))
        if found:
            out.write(f"{now} {file} {code.co_qualname}\n")

    threading.setprofile(on_event)
    sys.setprofile(on_event)


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported: its tables are built by functions too."""
    while frame is not None and not frame.f_code.co_filename.startswith(IMPORT_SYSTEM):
        frame = frame.f_back
    return frame is not None


if __name__ == "__main__":
    _, into, process, module, *arguments = sys.argv
    sys.argv[1:] = arguments
    record(into, process)
    runpy.run_module(module, run_name="__main__", alter_sys=True)
