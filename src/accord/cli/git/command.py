"""Record in git why commits were made: hooks, decisions, coverage, sharing.

`install` adds six hooks to the repository; existing hooks run first. From then on, a commit made in
a session gets trailers, and its decision is stored twice: as a note on the commit, and under a ref
of its own, so that it is found again after a rebase or a squash merge. Nothing is sent to a remote
until you run `share`.

Examples:
  accord git install
  accord git install --aliases
  accord git uninstall
  accord git status
  accord git hook commit-msg .git/COMMIT_EDITMSG
  accord git bind ses_01M7GMJP1Y4T7CP7A3QNGAT9X2
  accord git unbind ses_01M7GMJP1Y4T7CP7A3QNGAT9X2
  accord git places
  accord git places --remove ../old-worktree/.pact
  accord git check-message .git/COMMIT_EDITMSG
  accord git parse HEAD --json
  accord git coverage origin/main..HEAD --threshold 80
  accord git tree
  accord git heal
  accord git share origin
  accord git fetch origin
  accord git export HEAD -o proof.json
  accord git verify proof.json --key server.pub
  accord git log
  accord git log --session ses_01M7GMJP1Y4T7CP7A3QNGAT9X2
  accord git log --by human:alice
  accord git branch fork_01M7GMJP1Y4T7CP7A3QNGAT9X2
"""

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from accord.cli.git import (
    attestation,
    bind,
    commit_message,
    commits,
    hooks,
    pact_locations,
    remotes,
)

if TYPE_CHECKING:
    from accord.git.repository import Repository


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs and their flags."""
    from accord.git.hooks.dispatch import HOOK_NAMES

    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    parsers = {name: verbs.add_parser(name, help=what) for name, (what, _) in VERBS.items()}
    for name, verb in parsers.items():
        if name != "hook":  # git reads nothing that a hook prints
            verb.add_argument("--json", action="store_true", help="print JSON")
    add = parsers["install"].add_argument
    add(
        "--aliases",
        action="store_true",
        help="also add the git aliases pvp-log, pvp-notes, pvp-session and pvp-by",
    )
    add("--rewrite-ref", action="store_true", help="also let git itself copy notes on a rebase")
    parsers["hook"].add_argument(
        "name", choices=HOOK_NAMES, metavar="NAME", help=f"one of {', '.join(HOOK_NAMES)}"
    )
    parsers["hook"].add_argument(
        "rest", nargs=argparse.REMAINDER, metavar="...", help="the arguments that git gave it"
    )
    for name in ("bind", "unbind"):
        bind.arguments(parsers[name])
    pact_locations.arguments(parsers["places"])
    parsers["check-message"].add_argument("file", help="a file with a commit message, or -")
    parsers["parse"].add_argument("rev", nargs="?", default="HEAD", help="a commit (default: HEAD)")
    parsers["coverage"].add_argument(
        "range", nargs="?", default="HEAD", help="a range of commits (default: HEAD)"
    )
    add = parsers["coverage"].add_argument
    add(
        "--threshold",
        type=percentage_type,
        default=0.0,
        metavar="N",
        help="exit with 5 below N percent",
    )
    add(
        "--records",
        action="store_true",
        help="also count commits that have only a record, as after a squash merge",
    )
    parsers["tree"].add_argument("--session", help="only this session")
    parsers["heal"].add_argument(
        "range", nargs="?", default="HEAD", help="a range of commits (default: HEAD)"
    )
    for name in ("share", "fetch"):
        parsers[name].add_argument(
            "remote", nargs="?", default="origin", help="the remote (default: origin)"
        )
    group = parsers["log"].add_mutually_exclusive_group()
    group.add_argument("--session", metavar="ID", help="commits of this session")
    group.add_argument("--by", metavar="NAME", help="commits that NAME decided on")
    attestation.export_arguments(parsers["export"])
    attestation.verify_arguments(parsers["verify"])
    parsers["branch"].add_argument("fork", help="the fork")
    parsers["branch"].add_argument(
        "--start", default="HEAD", metavar="REV", help="where the branch starts (default: HEAD)"
    )


def percentage_type(text: str) -> float:
    """An argument type for percentages."""
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = -1.0
    if not 0 <= number <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 100")
    return number


def run(args: argparse.Namespace) -> int:
    from accord.git import bridge_client, user_arguments
    from accord.git.process import GitError
    from accord.git.repository import Repository

    repo = Repository()
    try:
        if args.verb not in {"check-message", "verify"}:
            user_arguments.require_repository(repo)
            bridge_client.apply_settings_file(repo, os.environ)
        return VERBS[args.verb][1](repo, args)
    except GitError as error:
        raise user_arguments.refusal_from_git(error) from None


VERBS: dict[str, tuple[str, Callable[["Repository", argparse.Namespace], int]]] = {
    "install": ("install the hooks in this repository", hooks.install),
    "uninstall": ("remove the hooks", hooks.uninstall),
    "status": ("hooks, records and bound sessions", hooks.status),
    "hook": ("run one hook, from a hook file that is part of the repository", hooks.run_hook),
    "bind": ("bind a session: commits here belong to it", bind.bind),
    "unbind": ("end the binding of a session", bind.unbind),
    "places": (
        "directories in which the server reads this repository's pact",
        pact_locations.places,
    ),
    "check-message": (
        "check a commit message; exits with 2 on errors",
        commit_message.check_message,
    ),
    "parse": ("show the metadata in a commit's message", commit_message.parse),
    "coverage": ("share of commits that say how they were decided", commits.coverage),
    "tree": ("sessions, forks and merges as a tree of commits", commits.tree),
    "heal": ("link commits to their decisions again", commits.heal),
    "share": ("send notes and decisions to a remote", remotes.share),
    "fetch": ("fetch notes and decisions from a remote", remotes.fetch),
    "export": ("write a signed statement about a commit", attestation.export),
    "verify": ("verify such a statement, without a server", attestation.verify),
    "log": ("commits that belong to sessions", commits.log),
    "branch": ("create a git branch for a fork", commits.branch),
}
