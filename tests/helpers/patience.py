"""Hooks that wait for whoever answers them, where the answer is the matter and not the wait."""

from pathlib import Path

from accord.git.hook import HOOKS

PATIENCE_S = 60.0
BEGINS = "from accord.git import hook"
WAITS = f"{BEGINS}; hook.bridge.ask.__defaults__ = ({PATIENCE_S},)"


def patient(hooks: Path) -> None:
    """Have the hooks that lie there ask the bridge for longer than the second that they allow it.

    A machine that is busy takes longer, and a hook that has given up writes nothing.
    """
    for name in HOOKS:
        text = (hooks / name).read_text("utf-8")
        assert text.count(BEGINS) == 1, text
        (hooks / name).write_text(text.replace(BEGINS, WAITS), "utf-8")
