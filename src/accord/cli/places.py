"""Where the server of this machine sees a repository's pact: `accord git places`."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.show.text import count, line

if TYPE_CHECKING:
    from accord.git.repository import Repository

NO_SERVER = "No server of yours answers on this machine; `accord serve` starts one"
NOWHERE = "The server sees no pact of this repository; any verb of `accord pact` says where it is"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which one to remove."""
    add = parser.add_argument
    add("--remove", metavar="DIR", help="the pact lies there no longer")
    add("--force", action="store_true", help="even if a session goes by what only that place has")


def places(repo: "Repository", args: argparse.Namespace) -> int:
    """Show them, or remove one."""
    from accord.core.kernel.refusal import Refused, Why
    from accord.show.output import table, tell

    id = repo.maybe("config", "accord.repo")
    if not id:
        detail = "This repository has no hooks of Accord; `accord git install` puts them in"
        raise Refused(Why.WRONG_STATE, detail)
    found = _ask("places", {"repo": id})["places"]
    if args.remove:
        _remove(id, found, args)
        found = _ask("places", {"repo": id})["places"]
    if args.json:
        tell({"repo": id, "places": found})
    elif found:
        heads = ("directory", "events", "only there", "state")
        table(heads, [(each["directory"], *numbers(each), state(each)) for each in found])
    else:
        print(NOWHERE)
    return 0


def _remove(id: str, found: list[dict[str, Any]], args: argparse.Namespace) -> None:
    from accord.core.kernel.refusal import Refused, Why

    # As it is listed, or as one would name it from here.
    named = {args.remove, str(Path(args.remove).absolute()), os.path.realpath(args.remove)}
    directory = next((each["directory"] for each in found if each["directory"] in named), None)
    if directory is None:
        raise Refused(Why.UNKNOWN, f"The server sees no pact of this repository in {args.remove}")
    _ask("place-removed", {"repo": id, "directory": directory, "force": args.force})


def _ask(action: str, facts: dict[str, Any]) -> dict[str, Any]:
    from accord.core.kernel.refusal import Refused, Why
    from accord.git import bridge

    answer = bridge.heard(action, os.environ, facts)
    if answer is None:
        raise Refused(Why.UNAVAILABLE, NO_SERVER)
    if no := answer.get("error"):
        raise Refused(Why.WRONG_STATE, str(no.get("message")))
    return answer


def numbers(place: dict[str, Any]) -> tuple[str, str]:
    """How many events it has, and how many of them no other place has."""
    return str(place["events"]), str(place["alone"])


def state(place: dict[str, Any]) -> str:
    """What is wrong there."""
    unread = place["unread"]
    lines = f"{count(len(unread), 'line')} that are no events: {', '.join(map(str, unread))}"
    return line("; ".join(filter(None, (place["trouble"], lines if unread else "")))) or "well"
