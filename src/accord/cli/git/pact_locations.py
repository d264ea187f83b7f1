"""`accord git places`: the directories in which the local server reads a repository's pact."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.show.text import one_line, plural

if TYPE_CHECKING:
    from accord.git.repository import Repository

NO_SERVER = "No server of yours is running on this machine; `accord serve` starts one"
NO_LOCATION = (
    "The server knows no pact of this repository; any `accord pact` command tells it the directory"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--remove", metavar="DIR", help="forget this directory")
    add(
        "--force",
        action="store_true",
        help="even if a session uses events that only this directory has",
    )


def places(repo: "Repository", args: argparse.Namespace) -> int:
    """List the directories, or remove one."""
    from accord.core.kernel.refusal import Reason, Refused
    from accord.show.output import print_json, print_table

    id = repo.try_text("config", "accord.repo")
    if not id:
        detail = "This repository has no Accord hooks; `accord git install` installs them"
        raise Refused(Reason.WRONG_STATE, detail)
    found = _ask_bridge("places", {"repo": id})["places"]
    if args.remove:
        _remove(id, found, args)
        found = _ask_bridge("places", {"repo": id})["places"]
    if args.json:
        print_json({"repo": id, "places": found})
    elif found:
        heads = ("directory", "events", "only there", "state")
        print_table(
            heads,
            [(place["directory"], *event_counts(place), location_state(place)) for place in found],
        )
    else:
        print(NO_LOCATION)
    return 0


def _remove(id: str, found: list[dict[str, Any]], args: argparse.Namespace) -> None:
    from accord.core.kernel.refusal import Reason, Refused

    # As listed, or relative to the current directory.
    named = {args.remove, str(Path(args.remove).absolute()), os.path.realpath(args.remove)}
    directory = next((place["directory"] for place in found if place["directory"] in named), None)
    if directory is None:
        raise Refused(
            Reason.NOT_FOUND, f"The server knows no pact of this repository in {args.remove}"
        )
    _ask_bridge("place-removed", {"repo": id, "directory": directory, "force": args.force})


def _ask_bridge(action: str, facts: dict[str, Any]) -> dict[str, Any]:
    from accord.core.kernel.refusal import Reason, Refused
    from accord.git import bridge_client

    answer = bridge_client.request_or_error(action, os.environ, facts)
    if answer is None:
        raise Refused(Reason.UNAVAILABLE, NO_SERVER)
    if error := answer.get("error"):
        raise Refused(Reason.WRONG_STATE, str(error.get("message")))
    return answer


def event_counts(place: dict[str, Any]) -> tuple[str, str]:
    """How many events the directory has, and how many only it has."""
    return str(place["events"]), str(place["alone"])


def location_state(place: dict[str, Any]) -> str:
    """The directory's problems, or `ok`."""
    unread = place["unread"]
    lines = f"{plural(len(unread), 'line')} that are not events: {', '.join(map(str, unread))}"
    return one_line("; ".join(filter(None, (place["trouble"], lines if unread else "")))) or "ok"
