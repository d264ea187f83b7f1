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
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.cli import binding, proof
from accord.show import paint
from accord.show.text import count, line, listed

if TYPE_CHECKING:
    from accord.git.repository import Repository

BELOW = 5
BAD_MESSAGE = 2
SHORT = 10


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


def install(repo: "Repository", args: argparse.Namespace) -> int:
    """Hooks in."""
    from accord.git import installing
    from accord.show.output import tell

    done = installing.install(repo, aliases=args.aliases, rewrite=args.rewrite_ref)
    if args.json:
        tell({"repo": done.repo, "hooks": str(done.folder), "shared": done.shared})
        return 0
    chained = [hook.name for hook in done.hooks if hook.chained]
    print(f"{count(len(done.hooks), 'hook')} in {line(str(done.folder))}")
    if chained:
        print(f"{listed(chained)}: what was there runs first")
    if done.shared:
        print("core.hooksPath leads out of this repository: others that use it get the hooks, too")
    print(f"This repository is {done.repo} (accord.repo in its configuration)")
    return 0


def uninstall(repo: "Repository", args: argparse.Namespace) -> int:
    """Hooks out."""
    from accord.git import installing
    from accord.show.output import tell

    gone = installing.uninstall(repo)
    if args.json:
        tell({"removed": [hook.name for hook in gone]})
    elif gone:
        print(f"{count(len(gone), 'hook')} taken away; what was there before is back")
        print("Notes, decisions and accord.repo stay")
    else:
        print("There were no hooks of Accord here")
    return 0


STATES = {
    (True, True): "as it should be",
    (True, False): "of another version of Accord; `accord git install` renews it",
    (False, False): "not installed",
}


# Where all hooks are alike, one line says it.
ALL = {
    STATES[True, True]: "{number} as they should be, in {folder}",
    STATES[False, False]: "none in {folder}; `accord git install` puts them in",
}
NOTHING_LED_HERE = (
    "a commit made now names no session: nobody asked or decided anything since the last"
)


def status(repo: "Repository", args: argparse.Namespace) -> int:
    """What is set up."""
    from accord.git import decisions, installing, ledger
    from accord.show.output import table, tell

    hooks = installing.look(repo)
    id = repo.maybe("config", "accord.repo") or ""
    rewrite = repo.maybe("config", "--get-all", "notes.rewriteRef") or ""
    number = len(decisions.known(repo))
    bound = binding.sessions_of(id) if id else ()
    if args.json:
        told = [
            {"name": h.name, "installed": h.ours, "current": h.current, "chained": h.chained}
            for h in hooks
        ]
        tell(
            {
                "repo": id,
                "hooks": told,
                "decisions": number,
                "notes": bool(ledger.tips(repo)[ledger.NOTES]),
                "sessions": None if bound is None else list(bound),
            }
        )
        return 0
    print(f"repository  {line(id) or 'has no id; `accord git install` gives it one'}")
    states, folder = [state(hook) for hook in hooks], line(str(installing.folder(repo)))
    if len(set(states)) == 1 and states[0] in ALL:
        print(f"hooks       {ALL[states[0]].format(number=len(hooks), folder=folder)}")
    else:
        print(f"hooks       {folder}")
        table(
            ("hook", "state"), [(hook.name, each) for hook, each in zip(hooks, states, strict=True)]
        )
    print(f"records     {count(number, 'decision')}")
    print(f"sessions    {working(bound)}")
    if id and (said := coming(repo, bound or ())):
        print(f"next        {said}")
    if ledger.NOTES not in rewrite.split():
        print(
            "notes       the hooks carry them along a rebase;\n"
            "            `accord git install --rewrite-ref` makes git do it, too"
        )
    return 0


def coming(repo: "Repository", bound: tuple[str, ...]) -> str:
    """What the hooks would write into a commit made now; nothing where nobody works here."""
    from accord.git.preparing import SETTINGS, known

    if session := known(repo, os.environ, repo.settings(SETTINGS)).get("session"):
        return f"a commit made now is of {line(str(session))}"
    return NOTHING_LED_HERE if len(bound) == 1 else ""


def working(bound: tuple[str, ...] | None) -> str:
    """Whose work commits here are."""
    if bound is None:
        return "no server of yours answers on this machine"
    if len(bound) > 1:
        return f"{listed(map(line, bound))}; {binding.several(bound)}"
    return listed(map(line, bound)) or "none is bound; `accord git bind SESSION` does it"


def state(hook: Any) -> str:
    """A hook in words."""
    if hook.foreign:
        return "somebody else's; `accord git install` lets it run first"
    said = STATES[hook.ours, hook.ours and hook.current]
    return f"{said}, after the one that was there" if hook.chained else said


def check_message(repo: "Repository", args: argparse.Namespace) -> int:
    """What is wrong with a message."""
    from accord.core.provenance.check import check, cleaned
    from accord.show.output import tell

    raw = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
    found = check(cleaned(raw.decode("utf-8", "replace")))
    if args.json:
        tell({"findings": [each._asdict() for each in found]})
    else:
        for each in found:
            print(f"{line(str(each))}. {line(each.mend)}")
    return BAD_MESSAGE if any(each.error for each in found) else 0


def parse(repo: "Repository", args: argparse.Namespace) -> int:
    """What a commit's message says."""
    from accord.core.provenance.message import metadata
    from accord.core.provenance.message import parse as read
    from accord.git import naming
    from accord.show.output import tell

    told = metadata(read(shown(repo.commit(naming.commit(repo, args.rev)).message)))
    if args.json:
        tell(told)
        return 0
    for name, value in told.items():
        print(f"{name:12}  {line(spoken(value))}")
    return 0


def spoken(value: Any) -> str:
    """A value on one line."""
    match value:
        case list():
            return ", ".join(map(spoken, value))
        case {"type": kind, "identifier": name}:
            return f"{kind}:{name}"
        case _:
            return str(value)


def coverage(repo: "Repository", args: argparse.Namespace) -> int:
    """How many say how they were decided."""
    from accord.git import naming
    from accord.git.coverage import measure
    from accord.show.output import tell

    found = measure(repo, naming.commits(repo, args.range))
    if args.json:
        told = {"commits": found.commits, "covered": found.covered, "recorded": found.recorded}
        tell(told | {"percent": found.percent, "without": [each.sha for each in found.without]})
    elif not found.commits:
        print("There are no commits to look at")
    else:
        part = f"{found.covered} of {count(found.commits, 'commit')}"
        print(f"{found.percent:.0f} %  {part} with PVP trailers; {found.recorded} with a record")
        for each in found.without[:SHORT]:
            print(f"  {paint.yellow(each.sha[:SHORT])} {line(each.subject)}")
        if len(found.without) > SHORT:
            print(f"  … and {len(found.without) - SHORT} more")
    return 0 if found.percent >= args.threshold else BELOW


def tree(repo: "Repository", args: argparse.Namespace) -> int:
    """Sessions, forks and merges as commits."""
    from accord.cli.limbs import drawn, told
    from accord.git.sharing import unfetched
    from accord.git.tree import grow
    from accord.show.output import tell

    found = grow(repo, args.session)
    if args.json:
        tell({"sessions": [told(each) for each in found]})
        return 0
    for each in found:
        print("\n".join(drawn(each)))
    if found:
        print(paint.dim("As git's records say; `accord why COMMIT` asks your server, too"))
    else:
        print("; ".join(filter(None, ("No session has left a commit here yet", unfetched(repo)))))
    return 0


def heal(repo: "Repository", args: argparse.Namespace) -> int:
    """Find decisions again."""
    from accord.git import naming
    from accord.git.healing import heal as mend
    from accord.git.healing import remember_branch, trunk_of
    from accord.git.why import SIGNS
    from accord.show.output import tell

    found = mend(repo, naming.commits(repo, args.range))
    if head := repo.resolve("HEAD"):
        remember_branch(repo, head, trunk_of(repo))
    if args.json:
        told = [{"commit": e.commit.sha, "decisions": sorted(e.ids), "by": e.by} for e in found]
        tell({"healed": told})
        return 0
    for each in found:
        head = f"{paint.yellow(each.commit.sha[:SHORT])} {line(each.commit.subject)}"
        print(f"{head}\n  {listed(sorted(each.ids))}, by {SIGNS[each.by]}")
    print(f"{count(len(found), 'commit')} tied to decisions again")
    return 0


def share(repo: "Repository", args: argparse.Namespace) -> int:
    """Send records to a remote."""
    from accord.git import naming, sharing

    return _shared(sharing.share(repo, naming.remote(repo, args.remote)), args)


def fetch(repo: "Repository", args: argparse.Namespace) -> int:
    """Bring records from a remote."""
    from accord.git import naming, sharing

    return _shared(sharing.fetch(repo, naming.remote(repo, args.remote)), args)


def _shared(done: Any, args: argparse.Namespace) -> int:
    from accord.show.output import tell

    if args.json:
        tell({"remote": done.remote, "fetched": done.came, "pushed": done.went})
        return 0
    came = f"merged {listed(done.came)} of {line(done.remote)}" if done.came else ""
    went = f"sent {listed(done.went)} to {line(done.remote)}" if done.went else ""
    print(
        "\n".join(filter(None, (came, went))) or f"{line(done.remote)} has no records, nor have you"
    )
    return 0


def log(repo: "Repository", args: argparse.Namespace) -> int:
    """Commits that come of sessions: the newest, those of one, or a participant's."""
    from accord.git import finding
    from accord.show.output import tell

    if args.session:
        found, whose = finding.of_session(repo, args.session), f"of {args.session}"
    elif args.by:
        found, whose = finding.by_participant(repo, args.by), f"that {args.by} decided"
    else:
        found, whose = finding.newest(repo), "that comes of a session"
    if args.json:
        tell({"commits": [{"sha": e.sha, "subject": shown(e.subject), "at": e.at} for e in found]})
        return 0
    for each in found:
        print(f"{paint.yellow(each.sha[:SHORT])} {line(shown(each.subject))}")
    if not found:
        print(f"accord: there is no commit here {line(whose)}", file=sys.stderr)
    return 0


def shown(text: str) -> str:
    """Words of git that may be no UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def branch(repo: "Repository", args: argparse.Namespace) -> int:
    """A branch for a fork."""
    from accord.git.tree import make_branch
    from accord.show.output import tell

    name = make_branch(repo, args.fork, args.start)
    if args.json:
        tell({"branch": name})
    else:
        print(name)
    return 0


VERBS: dict[str, tuple[str, Callable[["Repository", argparse.Namespace], int]]] = {
    "install": ("put the hooks into this repository", install),
    "uninstall": ("take them out again", uninstall),
    "status": ("what is set up here", status),
    "bind": ("commits here are of a session from now on", binding.bind),
    "unbind": ("commits here are of it no longer", binding.unbind),
    "check-message": ("what is wrong with a commit message; exit code 2", check_message),
    "parse": ("what a commit's message says", parse),
    "coverage": ("how many commits say how they were decided", coverage),
    "tree": ("sessions, forks and merges as commits and branches", tree),
    "heal": ("find the decisions of commits again", heal),
    "share": ("send notes and decisions to a remote", share),
    "fetch": ("bring notes and decisions from a remote", fetch),
    "export": ("a signed statement about a commit, for a stranger", proof.export),
    "verify": ("check such a statement, without a server", proof.verify),
    "log": ("the newest commits that come of sessions, or those of one", log),
    "branch": ("a git branch for a fork", branch),
}
