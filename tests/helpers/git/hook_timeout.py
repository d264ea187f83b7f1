"""A longer hook timeout, for tests about what hooks write rather than how long they wait."""

from pathlib import Path

from accord.git.hooks.dispatch import HOOK_NAMES

HOOK_TIMEOUT_S = 60.0
HOOK_IMPORT = "from accord.git.hooks import dispatch"
PATCHED_HOOK_IMPORT = f"{HOOK_IMPORT}; dispatch.bridge_client.BRIDGE_TIMEOUT_S = {HOOK_TIMEOUT_S}"


def extend_hook_timeout(hooks: Path) -> None:
    """Make the installed hooks wait a minute for the bridge instead of a second.

    On a busy machine the bridge takes longer, and a hook that times out writes nothing.
    """
    for name in HOOK_NAMES:
        text = (hooks / name).read_text("utf-8")
        assert text.count(HOOK_IMPORT) == 1, text
        (hooks / name).write_text(text.replace(HOOK_IMPORT, PATCHED_HOOK_IMPORT), "utf-8")
