"""Importing the client must stay cheap, because every `accord` command does it."""

import subprocess
import sys

HEAVY = ["starlette", "uvicorn", "picows", "apsw", "jwt", "cryptography", "websockets"]


def test_importing_the_client_imports_no_heavy_package() -> None:
    program = f"import accord.client, sys; print([m for m in {HEAVY} if m in sys.modules])"

    message = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert message.stdout.decode().strip() == "[]"
