"""Whose work the commits of a repository are: `accord git bind`, `unbind`, and a new session."""

import argparse
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from accord.show.text import count, line

if TYPE_CHECKING:
    from accord.git.repository import Repository

UNKNOWN_HERE = (
    "No server of yours on this machine knows {session}; `accord serve` starts one, and hooks go by"
    " ACCORD_SESSION meanwhile"
)
SEVERAL = (
    "{number} work here now, and hooks do not guess: say which in ACCORD_SESSION, or end it here"
    " with `accord git unbind SESSION`"
)


class Bound(NamedTuple):
    """A repository with the sessions that work in it."""

    repo: str
    sessions: tuple[str, ...]


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which session."""
    parser.add_argument("session", nargs="?", help="default: ACCORD_SESSION")


def bind(repo: "Repository", args: argparse.Namespace) -> int:
    """From now on commits here are of this session."""
    return _told(_asked(repo, args, "session-started"), args)


def unbind(repo: "Repository", args: argparse.Namespace) -> int:
    """No longer."""
    return _told(_asked(repo, args, "session-ended"), args)


def _asked(repo: "Repository", args: argparse.Namespace, action: str) -> Bound:
    from accord.cli.where import session_of
    from accord.core.kernel.refusal import Refused, Why

    id, session = repo.maybe("config", "accord.repo"), session_of(args)
    if not id:
        detail = "This repository has no hooks of Accord; `accord git install` puts them in"
        raise Refused(Why.WRONG_STATE, detail)
    if (found := _say(action, id, session)) is None:
        raise Refused(Why.UNKNOWN, UNKNOWN_HERE.format(session=session))
    return found


def _told(found: Bound, args: argparse.Namespace) -> int:
    from accord.show.output import tell

    if args.json:
        tell({"repo": found.repo, "sessions": list(found.sessions)})
        return 0
    print("\n".join(shown(found.sessions)))
    return 0


def shown(sessions: tuple[str, ...]) -> list[str]:
    """Which sessions commits here are of."""
    if not sessions:
        return ["Commits here are of no session, unless ACCORD_SESSION names one"]
    lines = [f"Commits here are of {line(each)}" for each in sessions]
    return [*lines, several(sessions)] if len(sessions) > 1 else lines


def several(sessions: tuple[str, ...]) -> str:
    """What to do where nobody can tell whose work a commit is."""
    return SEVERAL.format(number=count(len(sessions), "session"))


def sessions_of(id: str) -> tuple[str, ...] | None:
    """The sessions that work in a repository; None where no server answers."""
    from accord.git import bridge

    answer = bridge.ask("status", os.environ, {"repo": id})
    return None if answer is None else _listed(answer.get("sessions"))


def here(session: str) -> Bound | None:
    """Bind a session to the repository that one stands in, if it has hooks; else nothing."""
    from accord.git.process import GitError
    from accord.git.repository import Repository

    id = None
    with suppress(OSError, GitError):
        id = Repository().maybe("config", "accord.repo")
    return _say("session-started", id, session) if id else None


def _say(action: str, id: str, session: str) -> Bound | None:
    from accord.git import bridge

    facts = {"repo": id, "session": session} | _pact()
    answer = bridge.ask(action, os.environ, facts)
    return None if answer is None else Bound(id, _listed(answer.get("sessions")))


def _pact() -> dict[str, str]:
    """Where the pact lies, if there is one: the session heeds it from its first moment here."""
    from accord.core.kernel.refusal import Refused
    from accord.pact.place import place

    with suppress(OSError, Refused):
        found = place(Path.cwd(), os.environ.get("PACT_DIR", ""))
        if found.repository and found.log.exists():
            return {"directory": str(found.directory.absolute())}
    return {}


def _listed(found: object) -> tuple[str, ...]:
    return tuple(each for each in found if isinstance(each, str)) if isinstance(found, list) else ()
