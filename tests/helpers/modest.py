"""Commands by somebody whom rights bind, also where the tests run as root."""

from tests.helpers.cli import Ran, run

# Whoever is root may open everything, unless these two are taken away before the program starts.
_DROP = """
import ctypes, os, sys
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2
prctl = ctypes.CDLL(None).prctl
for each in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
    prctl(PR_CAPBSET_DROP, each, 0, 0, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def accord_modestly(*words: str, **env: str) -> Ran:
    """Run it to its end, bound by the rights of files."""
    return run("-c", _DROP, "-m", "accord", *words, cwd=None, **env)
