"""The command line starts fast because the client brings little."""

import subprocess
import sys

HEAVY = ["starlette", "uvicorn", "picows", "apsw", "jwt", "cryptography", "websockets"]


def test_the_client_does_not_import_the_server() -> None:
    program = f"import accord.client, sys; print([m for m in {HEAVY} if m in sys.modules])"

    said = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert said.stdout.decode().strip() == "[]"
