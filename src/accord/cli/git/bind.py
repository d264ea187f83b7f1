"""Binds sessions to a repository: `accord git bind` and `unbind`, and every new session."""

import argparse
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from accord.show.text import one_line, plural

if TYPE_CHECKING:
    from accord.git.repository import Repository

UNKNOWN_SESSION = (
    "No running server of yours on this machine knows {session}; `accord serve` starts one. Until"
    " then, hooks use ACCORD_SESSION"
)
SEVERAL_SESSIONS = (
    "{number} are bound to this repository, so hooks cannot choose: set ACCORD_SESSION, or run"
    " `accord git unbind SESSION`"
)


class RepositoryBinding(NamedTuple):
    """A repository and the sessions bound to it."""

    repo: str
    sessions: tuple[str, ...]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", help="the session's id (default: ACCORD_SESSION)")


def bind(repo: "Repository", args: argparse.Namespace) -> int:
    """Commits here belong to this session from now on."""
    return _print_binding(_change_binding(repo, args, "session-started"), args)


def unbind(repo: "Repository", args: argparse.Namespace) -> int:
    """Commits here no longer belong to this session."""
    return _print_binding(_change_binding(repo, args, "session-ended"), args)


def _change_binding(repo: "Repository", args: argparse.Namespace, action: str) -> RepositoryBinding:
    from accord.cli.connection import session_of
    from accord.core.kernel.refusal import Reason, Refused
    from accord.git.hooks import marker_files

    id, session = repo.try_text("config", "accord.repo"), session_of(args)
    if not id:
        detail = "This repository has no Accord hooks; `accord git install` installs them"
        raise Refused(Reason.WRONG_STATE, detail)
    if (binding := _send_to_bridge(action, id, session)) is None:
        raise Refused(Reason.NOT_FOUND, UNKNOWN_SESSION.format(session=session))
    marker_files.set_bound(repo, is_bound=bool(binding.sessions))
    return binding


def _print_binding(binding: RepositoryBinding, args: argparse.Namespace) -> int:
    from accord.show.output import print_json

    if args.json:
        print_json({"repo": binding.repo, "sessions": list(binding.sessions)})
        return 0
    print("\n".join(binding_lines(binding.sessions)))
    return 0


def binding_lines(sessions: tuple[str, ...]) -> list[str]:
    """Which sessions commits here belong to."""
    if not sessions:
        return ["Commits here belong to no session, unless ACCORD_SESSION is set"]
    lines = [f"Commits here belong to {one_line(session)}" for session in sessions]
    return [*lines, several_sessions_hint(sessions)] if len(sessions) > 1 else lines


def several_sessions_hint(sessions: tuple[str, ...]) -> str:
    """What to do if several sessions are bound."""
    return SEVERAL_SESSIONS.format(number=plural(len(sessions), "session"))


def bound_sessions(id: str) -> tuple[str, ...] | None:
    """The sessions bound to a repository; None if no server answers."""
    from accord.git import bridge_client

    answer = bridge_client.request("status", os.environ, {"repo": id})
    return None if answer is None else _strings_in(answer.get("sessions"))


def is_bound_here(repo: "Repository", session: str) -> bool:
    """Whether commits in this repository may belong to the session."""
    from accord.git import bridge_client

    id = repo.try_text("config", "accord.repo")
    if not id:
        return False
    bridge_client.apply_settings_file(repo, os.environ)
    named = os.environ.get(bridge_client.SESSION_VARIABLE)
    return session == named or session in (bound_sessions(id) or ())


def bind_here(session: str) -> RepositoryBinding | None:
    """Bind a session to the current repository if it has hooks; otherwise None."""
    from accord.git import bridge_client
    from accord.git.hooks import marker_files
    from accord.git.process import GitError
    from accord.git.repository import Repository

    id, repo = None, Repository()
    with suppress(OSError, GitError):
        id = repo.try_text("config", "accord.repo")
        if id:
            bridge_client.apply_settings_file(repo, os.environ)
    binding = _send_to_bridge("session-started", id, session) if id else None
    if binding:
        marker_files.set_bound(repo, is_bound=True)
    return binding


def _send_to_bridge(action: str, id: str, session: str) -> RepositoryBinding | None:
    from accord.git import bridge_client

    facts = {"repo": id, "session": session} | _pact_directory()
    answer = bridge_client.request(action, os.environ, facts)
    return None if answer is None else RepositoryBinding(id, _strings_in(answer.get("sessions")))


def _pact_directory() -> dict[str, str]:
    """The directory of the pact, if there is one, so that the session follows it at once."""
    from accord.core.kernel.refusal import Refused
    from accord.pact.location import find_location

    with suppress(OSError, Refused):
        location = find_location(Path.cwd(), os.environ.get("PACT_DIR", ""))
        if location.repository and location.log_path.exists():
            return {"directory": str(location.directory.absolute())}
    return {}


def _strings_in(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list) else []
    return tuple(item for item in items if isinstance(item, str))
