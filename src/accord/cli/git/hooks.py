"""`accord git install`, `uninstall` and `status`."""

import argparse
import os
from typing import TYPE_CHECKING

from accord.cli.git import bind
from accord.show.text import join_words, one_line, plural

if TYPE_CHECKING:
    from accord.git.hooks.hook_files import HookFile
    from accord.git.repository import Repository
    from accord.show.labelled_values import LabelledValue


def install(repo: "Repository", args: argparse.Namespace) -> int:
    from accord.git.hooks import installer
    from accord.show.output import print_json

    done = installer.install(repo, aliases=args.aliases, rewrite=args.rewrite_ref)
    if args.json:
        print_json({"repo": done.repo, "hooks": str(done.folder), "shared": done.is_shared})
        return 0
    chained = [hook.name for hook in done.hooks if hook.is_chained]
    number = sum(hook.is_ours for hook in done.hooks)
    print(f"Installed {plural(number, 'hook')} in {one_line(str(done.folder))}")
    if chained:
        print(f"{join_words(chained)}: the hook that was already there runs first")
    for hook in done.hooks:
        if hook.is_tracked and not hook.is_ours:
            print(TRACKED_HOOK_HINT.format(path=one_line(str(hook.path)), name=hook.name))
    if HUSKY_FOLDER in done.folder.parts:
        print(HUSKY_HINT)
    _print_linter_hints(repo)
    if done.is_shared:
        print("core.hooksPath points outside this repository: other repositories share these hooks")
    print(f"The id of this repository is {done.repo} (accord.repo in its git configuration)")
    return 0


def _print_linter_hints(repo: "Repository") -> None:
    """Offer the setting with which linters of messages accept the commit type `explore`."""
    from accord.cli.git.message_linters import linters_without_explore

    if repo.is_bare:
        return
    for found in linters_without_explore(repo.root):
        print(LINTER_HINT.format(name=found.linter.name, file=found.file))
        print("\n".join(f"  {line}" for line in found.setting.splitlines()))


def run_hook(repo: "Repository", args: argparse.Namespace) -> int:
    """Run one hook, for a hook file that is part of the repository and calls us."""
    from accord.git.hooks import dispatch

    del repo
    return dispatch.main([args.name, *args.rest])


def uninstall(repo: "Repository", args: argparse.Namespace) -> int:
    from accord.git.hooks import installer
    from accord.show.output import print_json

    removed = installer.uninstall(repo)
    if args.json:
        print_json({"removed": [hook.name for hook in removed]})
    elif removed:
        print(f"Removed {plural(len(removed), 'hook')}; earlier hooks are restored")
        print("Notes, decisions and accord.repo are kept")
    else:
        print("There are no Accord hooks here")
    return 0


HUSKY_FOLDER = ".husky"
HUSKY_HINT = (
    "husky writes its hooks again at every `npm install`; to keep these, let package.json say "
    '"prepare": "husky && accord git install"'
)
LINTER_HINT = "{name} refuses the commit type `explore`; to allow it, add to {file}:"
TRACKED_HOOK_HINT = (
    "{path} is part of the repository, so it was left as it is; add this line to it:\n"
    '  command -v accord >/dev/null && accord git hook {name} "$@"'
)


HOOK_STATES = {
    (True, True): "installed",
    (True, False): "from another version of Accord; `accord git install` updates it",
    (False, False): "not installed",
}


# One line if all hooks are in the same state.
UNIFORM_STATES = {
    HOOK_STATES[True, True]: "{number} installed in {folder}",
    HOOK_STATES[False, False]: "none in {folder}; `accord git install` installs them",
}
NOTES_REWRITE_HINT = (
    "the hooks copy them on a rebase; `accord git install --rewrite-ref` lets git do it"
)
LABEL_WIDTH = 12
NO_SESSION_SENTENCE = (
    "a commit made now names no session: there was no prompt or decision since the last one"
)


def status(repo: "Repository", args: argparse.Namespace) -> int:
    """Print hooks, records, bound sessions and the server that is asked."""
    from accord.git.hooks import installer
    from accord.git.records import decisions_ref, record_refs
    from accord.show.output import print_json, print_table

    hooks = installer.read_hooks(repo)
    id = repo.try_text("config", "accord.repo") or ""
    rewrite = repo.try_text("config", "--get-all", "notes.rewriteRef") or ""
    number = len(decisions_ref.all_decision_ids(repo))
    bound = bind.bound_sessions(id) if id else ()
    if args.json:
        states = [
            {
                "name": h.name,
                "installed": h.is_ours,
                "current": h.is_current,
                "chained": h.is_chained,
            }
            for h in hooks
        ]
        print_json(
            {
                "repo": id,
                "hooks": states,
                "decisions": number,
                "notes": bool(record_refs.read_tips(repo)[record_refs.NOTES_REF]),
                "sessions": None if bound is None else list(bound),
                "server": server_sentence(bound) or None,
            }
        )
        return 0
    folder = one_line(str(installer.hooks_directory(repo)))
    lines = [hook_state(hook) for hook in hooks]
    same = UNIFORM_STATES.get(lines[0], "") if len(set(lines)) == 1 else ""
    _print_labelled(
        ("repository", one_line(id) or "has no id; `accord git install` gives it one"),
        ("hooks", same.format(number=len(hooks), folder=folder) if same else folder),
    )
    if not same:
        print_table(
            ("hook", "state"), [(hook.name, line) for hook, line in zip(hooks, lines, strict=True)]
        )
    by_hooks = any(hook.is_ours for hook in hooks)
    _print_labelled(
        ("records", plural(number, "decision")),
        ("sessions", bound_sessions_sentence(bound)),
        ("server", server_sentence(bound)),
        ("next", next_commit_sentence(repo, bound or ()) if id else ""),
        (
            "notes",
            NOTES_REWRITE_HINT if by_hooks and record_refs.NOTES_REF not in rewrite.split() else "",
        ),
    )
    return 0


def _print_labelled(*values: "LabelledValue") -> None:
    from accord.show.labelled_values import render_labelled

    print("\n".join(render_labelled(values, label=LABEL_WIDTH)))


def next_commit_sentence(repo: "Repository", bound: tuple[str, ...]) -> str:
    """Which session a commit made now would name; empty if none is bound."""
    from accord.git.hooks.message_hooks import SETTINGS_PATTERN, commit_context

    if session := commit_context(repo, os.environ, repo.read_config(SETTINGS_PATTERN)).get(
        "session"
    ):
        return f"a commit made now belongs to {one_line(str(session))}"
    return NO_SESSION_SENTENCE if len(bound) == 1 else ""


def server_sentence(bound: tuple[str, ...] | None) -> str:
    """Which server the hooks ask; empty if none answers."""
    from accord.git import bridge_client

    if bound is None:
        return ""
    address = bridge_client.server_asked(os.environ)
    return one_line(address) if address else "yours on this machine"


def bound_sessions_sentence(bound: tuple[str, ...] | None) -> str:
    """The sessions that commits here belong to."""
    if bound is None:
        return "no server of yours is running on this machine"
    if len(bound) > 1:
        return f"{join_words(map(one_line, bound))}; {bind.several_sessions_hint(bound)}"
    return join_words(map(one_line, bound)) or "none is bound; `accord git bind SESSION` binds one"


def hook_state(hook: "HookFile") -> str:
    """The state of a hook in words."""
    if hook.is_foreign:
        return "not Accord's; `accord git install` keeps it and lets it run first"
    state = HOOK_STATES[hook.is_ours, hook.is_ours and hook.is_current]
    return f"{state}, runs after an earlier hook" if hook.is_chained else state
