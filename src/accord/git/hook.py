"""What the hooks run: `python -m accord.git.hook NAME …`. Standard library alone, and quick.

A hook never stands between people and their commit: whatever goes wrong here is nothing (OPEN-57).
Only `commit-msg` says no, to a message that claims a session and says it badly, and `pre-push`
where the repository asks for it. `ACCORD_DEBUG=1` shows what went wrong.
"""

import os
import sys
from collections.abc import Sequence

HOOKS = (
    *("prepare-commit-msg", "commit-msg", "post-commit"),
    *("post-merge", "post-rewrite", "pre-push"),
)


def main(words: Sequence[str]) -> int:
    """Run one hook; 1 refuses, anything else is 0."""
    name, *rest = words or [""]
    try:
        return run(name, rest)
    except Exception as error:  # noqa: BLE001 - a hook that fails must not fail the commit
        if os.environ.get("ACCORD_DEBUG"):
            import traceback

            traceback.print_exception(error)
        return 0


def run(name: str, words: Sequence[str]) -> int:
    """The hook of this name, with git's arguments."""
    from .history import History

    repo = History()
    if name == "prepare-commit-msg":
        from . import preparing

        preparing.prepare(repo, words[0], words[1] if len(words) > 1 else "")
        return 0
    if name == "commit-msg":
        from . import checking

        return checking.check(repo, words[0])
    if name == "post-commit":
        from . import linking

        linking.committed(repo)
        return 0
    if name == "post-merge":
        from . import linking

        linking.merged(repo)
        return 0
    if name == "post-rewrite":
        from . import linking

        linking.rewritten(repo, sys.stdin.read())
        return 0
    if name == "pre-push":
        from . import pushing

        return pushing.check(repo, words[0], sys.stdin.read())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
