"""The tree that a `git commit` of our agent will record, which its call shows.

An approval of a commit call covers the commit only if the call shows the tree. The agent does not
say which it is: git does, when the call is proposed. If something else is staged before it runs,
the commit has another tree, and nothing is covered.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from accord.core.kernel.command_line import words_of
from accord.core.provenance.coverage.coverage_rule import (
    COMMIT_COMMAND,
    GIT_PROGRAM,
    TREE_ARGUMENT,
)
from accord.git.process import GitError
from accord.git.repository import Repository

# Options of `git commit` that leave the tree to the index. Any other, `--all` above all, and every
# path may commit something else.
FLAGS = frozenset(
    {
        *("--quiet", "--signoff", "--no-signoff", "--verbose", "--no-verify", "--amend"),
        *("--no-edit", "--allow-empty", "--allow-empty-message", "--no-gpg-sign"),
    }
)
OPTIONS_WITH_VALUE = frozenset(
    {
        *("--message", "--file", "--author", "--date", "--trailer", "--cleanup"),
        *("--reuse-message", "--fixup", "--squash"),
    }
)
_short_flags = re.compile(r"-[qsvn]+").fullmatch
_short_with_value = re.compile(r"-[qsvn]*[mFC]").fullmatch


def with_commit_tree(arguments: Mapping[str, Any], workdir: Path) -> dict[str, Any]:
    """The arguments of a shell call, with the tree if it commits what is staged."""
    given = {key: value for key, value in arguments.items() if key != TREE_ARGUMENT}
    if not commits_what_is_staged(words_of(arguments) or ()):
        return given
    try:
        tree = Repository(workdir).try_text("write-tree")
    except (GitError, OSError):
        tree = None
    return {**given, TREE_ARGUMENT: tree} if tree else given


def commits_what_is_staged(words: Sequence[str]) -> bool:
    """Whether it is a `git commit` of the index, all of it and nothing else."""
    if list(words[:2]) != [GIT_PROGRAM, COMMIT_COMMAND]:
        return False
    rest = iter(words[2:])
    for word in rest:
        name, has_value, _ = word.partition("=")
        if word in OPTIONS_WITH_VALUE or _short_with_value(word):
            if next(rest, None) is None:
                return False
        elif not (
            word in FLAGS or _short_flags(word) or (has_value and name in OPTIONS_WITH_VALUE)
        ):
            return False
    return True
