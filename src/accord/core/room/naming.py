"""What a tool is by its name, whatever its proposer calls it."""

import re
import unicodedata

from accord.core.room.state import Category

SHELLS = (
    *("bash", "sh", "shell", "zsh", "fish", "dash", "ksh", "mksh"),
    *("csh", "tcsh", "ash", "busybox", "nu", "nushell", "cmd", "command"),
    *("powershell", "pwsh", "exec", "execute", "run", "terminal", "run_command", "python"),
    *("python3", "node", "perl", "ruby", "eval", "sudo", "ssh"),
)
# OPEN-21: a tool whose name says what it does is gated as that, whatever its proposer calls it.
TRUE_CATEGORY: dict[str, Category] = {
    **{category.value: category for category in Category},
    **dict.fromkeys(SHELLS, Category.SHELL_EXECUTE),
    "execute_shell_command": Category.SHELL_EXECUTE,
    "execute_nushell_command": Category.SHELL_EXECUTE,
    "notebook_execute": Category.SHELL_EXECUTE,
    "file_edit": Category.FILE_WRITE,
    "write_file": Category.FILE_WRITE,
    "edit_file": Category.FILE_WRITE,
    "apply_patch": Category.FILE_WRITE,
    "delete_file": Category.FILE_DELETE,
}


def called(name: str, category: Category) -> frozenset[Category]:
    """What its proposer calls the tool, and what its name says it is."""
    names = (name, *name.split()[:1])
    return frozenset({category, *(TRUE_CATEGORY.get(core(n), category) for n in names)})


def core(name: str) -> str:
    """What is left of a tool's name without what only makes it look like another one."""
    letters = unicodedata.normalize("NFKC", name).casefold()
    kept = "".join(c for c in letters if c.isprintable() and not c.isspace())
    return re.split(r"[/\\]", kept.rstrip("/\\"))[-1].removesuffix(".exe")
