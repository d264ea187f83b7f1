"""Let git remember why: hooks, records of decisions, coverage, sharing.

`install` puts six hooks into the repository; hooks that are there already run first. From then
on a commit that comes of a session carries trailers, and its decision is kept in two places: a
note on the commit, and a ref of our own that finds it again after a rebase or a squash merge.
Nothing is sent anywhere until you say `share`.

Examples:
  accord git install
  accord git install --aliases
  accord git uninstall
  accord git status
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
from collections.abc import Callable
from typing import TYPE_CHECKING

from accord.cli import binding, commits, hooks, messages, places, proof, remotes

if TYPE_CHECKING:
    from accord.git.repository import Repository


def arguments(parser: argparse.ArgumentParser) -> None:
    """One parser for each verb."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    made = {name: verbs.add_parser(name, help=what) for name, (what, _) in VERBS.items()}
    for each in made.values():
        each.add_argument("--json", action="store_true", help="print JSON")
    add = made["install"].add_argument
    add("--aliases", action="store_true", help="also git pvp-log, pvp-notes, pvp-session, pvp-by")
    add("--rewrite-ref", action="store_true", help="also let git itself carry notes along a rebase")
    for name in ("bind", "unbind"):
        binding.arguments(made[name])
    places.arguments(made["places"])
    made["check-message"].add_argument("file", help="a file with a commit message, or -")
    made["parse"].add_argument("rev", nargs="?", default="HEAD", help="a commit (default: HEAD)")
    made["coverage"].add_argument(
        "range", nargs="?", default="HEAD", help="commits (default: HEAD)"
    )
    add = made["coverage"].add_argument
    add(
        "--threshold",
        type=percentage,
        default=0.0,
        metavar="N",
        help="exit code 5 below N per cent",
    )
    add("--records", action="store_true", help="count a record as well, as after a squash merge")
    made["tree"].add_argument("--session", help="this session alone")
    made["heal"].add_argument("range", nargs="?", default="HEAD", help="commits (default: HEAD)")
    for name in ("share", "fetch"):
        made[name].add_argument("remote", nargs="?", default="origin", help="default: origin")
    group = made["log"].add_mutually_exclusive_group()
    group.add_argument("--session", metavar="ID", help="commits of this session")
    group.add_argument("--by", metavar="NAME", help="commits that NAME decided")
    proof.export_arguments(made["export"])
    proof.verify_arguments(made["verify"])
    made["branch"].add_argument("fork", help="the fork")
    made["branch"].add_argument("--start", default="HEAD", metavar="REV", help="where it begins")


def percentage(text: str) -> float:
    """From 0 to 100."""
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = -1.0
    if not 0 <= number <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} will not do; write a number from 0 to 100")
    return number


def run(args: argparse.Namespace) -> int:
    """What the chosen verb does."""
    from accord.git import naming
    from accord.git.process import GitError
    from accord.git.repository import Repository

    repo = Repository()
    try:
        if args.verb not in {"check-message", "verify"}:
            naming.repository(repo)
        return VERBS[args.verb][1](repo, args)
    except GitError as no:
        raise naming.spoken(no) from None


VERBS: dict[str, tuple[str, Callable[["Repository", argparse.Namespace], int]]] = {
    "install": ("put the hooks into this repository", hooks.install),
    "uninstall": ("take them out again", hooks.uninstall),
    "status": ("what is set up here", hooks.status),
    "bind": ("commits here are of a session from now on", binding.bind),
    "unbind": ("commits here are of it no longer", binding.unbind),
    "places": ("where the server sees this repository's pact; remove one", places.places),
    "check-message": ("what is wrong with a commit message; exit code 2", messages.check_message),
    "parse": ("what a commit's message says", messages.parse),
    "coverage": ("how many commits say how they were decided", commits.coverage),
    "tree": ("sessions, forks and merges as commits and branches", commits.tree),
    "heal": ("find the decisions of commits again", commits.heal),
    "share": ("send notes and decisions to a remote", remotes.share),
    "fetch": ("bring notes and decisions from a remote", remotes.fetch),
    "export": ("a signed statement about a commit, for a stranger", proof.export),
    "verify": ("check such a statement, without a server", proof.verify),
    "log": ("the newest commits that come of sessions, or those of one", commits.log),
    "branch": ("a git branch for a fork", commits.branch),
}
