"""Runs a process as another user of the operating system, where the tests may."""

import os
import shutil
from pathlib import Path

OTHER_USER = 65534  # `nobody`
# root's interpreter may be in a directory that only root can enter, so the process may read it all.
BECOME = (
    "setpriv",
    *("--reuid", str(OTHER_USER), "--regid", str(OTHER_USER), "--clear-groups"),
    *("--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"),
)


def can_become_other_user() -> bool:
    """Whether the tests run as root on a system with `setpriv`."""
    return os.getuid() == 0 and shutil.which("setpriv") is not None


def as_other_user(*words: str) -> list[str]:
    """The command that runs these words as another user; the words themselves without root."""
    return [*BECOME, *words] if can_become_other_user() else list(words)


def give_to_other_user(folder: Path) -> Path:
    """Make the other user the owner of an empty folder; returns the folder."""
    folder.mkdir(parents=True)
    folder.chmod(0o700)
    if can_become_other_user():
        os.chown(folder, OTHER_USER, OTHER_USER)
    return folder
