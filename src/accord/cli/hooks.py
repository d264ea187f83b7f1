"""The hooks of a repository: into it, out of it, and what is set up there."""

import argparse
import os
from typing import TYPE_CHECKING, Any

from accord.cli import binding
from accord.show.text import count, line, listed

if TYPE_CHECKING:
    from accord.git.repository import Repository
    from accord.show.facts import Fact


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
CARRIED = "the hooks carry them along a rebase; with `accord git install --rewrite-ref` git does"
LABEL = 12
NOTHING_LED_HERE = (
    "a commit made now names no session: nobody asked or decided anything since the last one"
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
    folder = line(str(installing.folder(repo)))
    lines = [state(hook) for hook in hooks]
    same = ALL.get(lines[0], "") if len(set(lines)) == 1 else ""
    _print(
        ("repository", line(id) or "has no id; `accord git install` gives it one"),
        ("hooks", same.format(number=len(hooks), folder=folder) if same else folder),
    )
    if not same:
        table(
            ("hook", "state"), [(hook.name, each) for hook, each in zip(hooks, lines, strict=True)]
        )
    by_hooks = any(hook.ours for hook in hooks)
    _print(
        ("records", count(number, "decision")),
        ("sessions", working(bound)),
        ("next", coming(repo, bound or ()) if id else ""),
        ("notes", CARRIED if by_hooks and ledger.NOTES not in rewrite.split() else ""),
    )
    return 0


def _print(*facts: "Fact") -> None:
    from accord.show.facts import labelled

    print("\n".join(labelled(facts, label=LABEL)))


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
