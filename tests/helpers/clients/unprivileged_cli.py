"""Runs commands bound by file permissions, even when the tests run as root."""

from tests.helpers.clients.cli import CommandRun, run_python

# root may open every file, unless these two capabilities are dropped before the program starts.
_DROP_CAPABILITIES = """
import ctypes, os, sys
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2
prctl = ctypes.CDLL(None).prctl
for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
        prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def run_accord_unprivileged(*words: str, **env: str) -> CommandRun:
    """Run an `accord` command without the right to bypass file permissions."""
    return run_python("-c", _DROP_CAPABILITIES, "-m", "accord", *words, cwd=None, **env)
