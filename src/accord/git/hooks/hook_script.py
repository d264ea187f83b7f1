"""The text of a hook file: our block, and the hook that was there before, in one script.

THE PROBLEM. A repository may already have a hook, often the dispatcher of a hook manager (husky,
pre-commit, lefthook). Dispatchers find the team's own scripts by `$0`: husky sources
`$(dirname "$0")/h` and runs `../$(basename "$0")`. A hook that is renamed or moved finds nothing,
exits with 0, and the team's checks are off without a word.

WHAT WE DO. The earlier hook keeps its path, its name and its text. Our block is inserted behind its
first line, and runs the file a second time, with a variable set, before it runs Accord. In that
second run the block only unsets the variable, so the earlier text runs with its own `$0`, arguments
and standard input. It is unset so that a commit which the earlier hook itself makes is recorded.

    #!/usr/bin/env sh                      the first line of the earlier hook
    # >>> accord …                         our block
    if [ -n "${ACCORD_EARLIER_HOOK-}" ]; then unset ACCORD_EARLIER_HOOK
    else ACCORD_EARLIER_HOOK=1 "$0" "$@" || exit $?; accord …; exit …; fi
    # <<< accord <<<
    . "$(dirname "$0")/h"                  the rest of the earlier hook

A hook that is not a shell script cannot hold the block. It is moved to a folder beside it, where it
keeps its name, and our own script runs it from there.
"""

import re
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

from accord.git.hooks.marker_files import BLOCK_BEGIN, HOOKS_DIR

BLOCK_END = "# <<< accord <<<"
# The file of versions that moved the earlier hook to NAME.before-accord.
FORMER_MARKER = "# Accord writes down why; `accord git uninstall` takes this file away again."
EARLIER_FOLDER = "earlier-than-accord"
OWN_FIRST_LINE = b"#!/bin/sh\n"
# Interpreters that understand our block.
SHELLS = frozenset({"sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"})
FIRST_LINE_PATTERN = re.compile(rb"#! *(?:\S*/)?(?:env +(?:-S +)?)?(?:\S*/)?(\w+)(?: [^\n]*)?\n")
HOOKS_WITH_STDIN = frozenset({"post-rewrite", "pre-push"})
# Both the earlier hook and ours need standard input, so it is read once and piped to each.
READ_STDIN_LINES = (
    "accord_input=$(cat)",
    'accord_pipe() { [ -z "$accord_input" ] || printf "%s\\n" "$accord_input"; }',
)
PIPE_STDIN = "accord_pipe | "
# Most messages have no PVP context; grep finds that out without starting Python.
PVP_GREP_GUARD = 'LC_ALL=C grep -qi -e pvp -- "$1"; [ $? -ne 1 ] || return 0'
REFUSED_EXIT_CODE = 65
# The package's path is fixed, so that neither PYTHONPATH nor the repository decides what runs. If
# Python or Accord was removed, every commit passes. Garbage collection would take a fifth of such
# a short run. An older Accord may lack `exit_now`.
HOOK_BOOTSTRAP = (
    "import gc, sys; gc.disable(); sys.path.insert(0, sys.argv.pop(1))\n"
    "try:\n from accord.git.hooks import dispatch\n"
    "except ImportError: sys.exit(0)\n"
    f"code = {REFUSED_EXIT_CODE} if dispatch.main(sys.argv[1:]) else 0\n"
    "getattr(dispatch, 'exit_now', sys.exit)(code)"
)
# How our script runs the earlier hook: itself again, or the moved file.
RUN_SELF = 'ACCORD_EARLIER_HOOK=1 "$0" "$@"'


class HookScript(NamedTuple):
    """A hook file with our block in it. `earlier`: the text before it was inserted, if any."""

    block: bytes
    earlier: bytes | None


def parse(content: bytes) -> HookScript | None:
    """The parts of a hook file; None if our block is not in it."""
    begin, end = f"{BLOCK_BEGIN}\n".encode(), f"{BLOCK_END}\n".encode()
    first_line, found, rest = content.partition(begin)
    block, closed, after = rest.partition(end)
    if not found or not closed:
        return None
    runs_itself = RUN_SELF.encode() in block
    return HookScript(begin + block + end, first_line + after if runs_itself else None)


def is_shell_script(content: bytes) -> bool:
    """Whether our block can be inserted behind the first line."""
    match = FIRST_LINE_PATTERN.match(content)
    return match is not None and match[1].decode() in SHELLS


def render_around(name: str, earlier: bytes) -> bytes:
    """A shell script that runs this earlier hook, and then Accord."""
    first_line, _, rest = earlier.partition(b"\n")
    return first_line + b"\n" + _block(name, RUN_SELF) + rest


def render_alone(name: str) -> bytes:
    """A shell script that runs Accord, after the hook that was moved if there is one."""
    moved = f'"${{0%/*}}/{EARLIER_FOLDER}/{name}"'
    return OWN_FIRST_LINE + _block(name, f'{moved} "$@"', moved)


def _block(name: str, run_earlier: str, moved: str = "") -> bytes:
    package_root = Path(__file__).resolve().parents[3]
    python, source, bootstrap = (
        shlex.quote(each) for each in (sys.executable, str(package_root), HOOK_BOOTSTRAP)
    )
    read_stdin, pipe = (READ_STDIN_LINES, PIPE_STDIN) if name in HOOKS_WITH_STDIN else ((), "")
    # A post-hook cannot refuse, so a failure of the earlier hook must not prevent the record.
    on_failure, last = (
        ("accord_code=$?", "exit ${accord_code:-0}")
        if name.startswith("post-")
        else ("exit $?", f"[ $? -ne {REFUSED_EXIT_CODE} ]; exit $?")
    )
    run = f'{HOOKS_DIR}="${{0%/*}}" {python} -I -S -c {bootstrap} {source} {name} "$@"'
    define = [
        "accord_hook() {",
        *([f"  {PVP_GREP_GUARD}"] if name == "commit-msg" else []),
        f"  [ ! -x {python} ] || {run}",
        "}",
    ]
    both = [*read_stdin, f"{pipe}{run_earlier} || {on_failure}", f'{pipe}accord_hook "$@"']
    if moved:
        chain = [
            f"if [ -x {moved} ]; then",
            *_indent(both),
            "else",
            '  accord_hook "$@"',
            "fi",
            last,
        ]
        lines = [*define, *chain]
    else:  # `set +e`: the first line may have set -e
        second_run = ['if [ -n "${ACCORD_EARLIER_HOOK-}" ]; then', "  unset ACCORD_EARLIER_HOOK"]
        lines = [*second_run, "else", *_indent(["set +e", *define, *both, last]), "fi"]
    return "\n".join([BLOCK_BEGIN, *lines, BLOCK_END, ""]).encode("utf-8", "surrogateescape")


def _indent(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
