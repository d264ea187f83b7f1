"""A program that plays a vendor's command line: it records how it was started, and obeys a file.

    vendor_program.py FOLDER ARGUMENT …

Each start appends a line of JSON to FOLDER/starts.jsonl. FOLDER/behaviour.json says what follows.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

folder = Path(sys.argv[1])
argv = sys.argv[2:]
start = {"argv": argv, "cwd": str(Path.cwd()), "env": dict(os.environ), "pid": os.getpid()}
with (folder / "starts.jsonl").open("a") as starts:
    starts.write(json.dumps(start) + "\n")

behaviours = json.loads((folder / "behaviour.json").read_text())
none: dict[str, Any] = {}
behaviour = next((b for b in behaviours if b.get("when", argv[0]) in argv), none)
if seconds := behaviour.get("child"):
    # In a session of its own, and with the pipes of its parent: it would outlive a plain kill.
    subprocess.Popen(
        [sys.executable, "-c", f"import time; time.sleep({seconds})"],
        start_new_session=behaviour.get("escapes", False),
    )
sys.stdout.write(behaviour.get("stdout", "") * behaviour.get("times", 1))
sys.stdout.flush()
sys.stderr.write(behaviour.get("stderr", ""))
sys.stderr.flush()
time.sleep(behaviour.get("seconds", 0))
sys.exit(behaviour.get("exit", 0))
