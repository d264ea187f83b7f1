"""Codex runs only hooks that the person trusts: ask for that trust, and write it on a yes."""

import argparse
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from accord.core.kernel.refusal import Refused
from accord.show.text import escape_controls

if TYPE_CHECKING:
    from accord.hosts.adapters.host import HostAdapter
    from accord.hosts.codex_hooks import CodexHook
    from accord.hosts.connections import Connection

WHY = (
    "Codex runs a hook only if you trust it, and silently skips it otherwise: then nothing "
    "is gated. Trust covers exactly the commands shown above."
)
BY_HAND = (
    "Codex does not run our hooks yet, so NOTHING IS GATED. Start `codex` in this repository and "
    'choose to trust the hooks under "Hooks need review", or run `accord connect codex` again.'
)
NOT_ASKED = (
    "Whether Codex trusts our hooks is not known ({error}). Until you have trusted them, NOTHING "
    "IS GATED: start `codex` in this repository and review its hooks, then run `accord connect "
    "codex --check`."
)


def offer_trust(adapter: "HostAdapter", connection: "Connection", args: argparse.Namespace) -> bool:
    """Ask for the trust where it is missing; False if Codex does not run our hooks in the end."""
    from accord.cli.hosts.connect import plan
    from accord.cli.hosts.dialogue import confirm, say
    from accord.hosts.changed_files import apply_changes
    from accord.hosts.codex_hooks import CodexError, trust_entries

    try:
        hooks = listed_hooks(adapter, connection)
        if all(hook.will_run for hook in hooks):
            return True
        if not args.json:
            say(WHY)
        if not confirm("Trust these hooks?", yes=args.yes):
            warn(BY_HAND)
            return False
        apply_changes(os.environ, plan(adapter, connection.id, trusted=trust_entries(hooks)))
        if all(hook.will_run for hook in listed_hooks(adapter, connection)):
            return True
        warn(BY_HAND)
    except CodexError as error:
        warn(NOT_ASKED.format(error=error))
    except Refused as error:
        warn(f"{error.detail}. {BY_HAND}")
    return False


def warn(text: str) -> None:
    """On standard error, so that it is seen beside JSON too."""
    print(escape_controls(f"accord: {text}"), file=sys.stderr)


def listed_hooks(adapter: "HostAdapter", connection: "Connection") -> list["CodexHook"]:
    """Our hooks as the installed Codex sees them; raises CodexError."""
    from accord.hosts.codex_hooks import CodexError, our_hooks
    from accord.hosts.connections import connection_path

    program = shutil.which(adapter.programs[0])
    if program is None:
        raise CodexError("there is no program `codex` in your PATH")
    record = connection_path(os.environ, connection.id)
    hooks = our_hooks([program], Path(connection.root), os.environ, record)
    if not hooks:
        raise CodexError("Codex does not list our hooks")
    return hooks
