"""From a line, a file or a commit to what led there: decisions, approvals, conversation."""

import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from accord.core.kernel.refusal import Refused, Why
from accord.core.provenance.message import CommitMessage, parse
from accord.core.provenance.note import VERSION, Note, merged
from accord.core.provenance.record import decisions_of

from . import bridge, decisions, healing, notes
from .blame import Line, blame
from .decisions import decision_ids
from .process import GitError
from .repository import Commit, Repository

_place = re.compile(
    r"(?P<path>.+?):(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?", re.DOTALL
).fullmatch
SIGNS = {
    "note": "its note",
    "commit": "its record",
    "name": "decisions that its message names",
    "patch": "a change that is the same",
    "branch": "a branch that it squashed",
}


class Reason(NamedTuple):
    """A commit with what is known of why it was made; `by` is the sign that led there."""

    commit: Commit
    message: CommitMessage
    record: Note
    by: str
    lines: tuple[Line, ...] = ()

    @property
    def known(self) -> bool:
        """Whether there is a decision on record."""
        return bool(decisions_of(self.record))


class Target(NamedTuple):
    """What is asked about: lines of a file, a whole file, or a commit."""

    path: str = ""
    lines: tuple[int, int] | None = None
    commit: str = ""


def target(repo: Repository, word: str) -> Target:
    """A path before anything else, a path with a line, then whatever git calls a commit."""
    if _is_file(repo, word):
        return Target(word)
    found = _place(word)
    if found and _is_file(repo, found["path"]):
        first = int(found["first"])
        last = int(found["last"] or first)
        if not 0 < first <= last:
            raise Refused(
                Why.MALFORMED, f"{word}: lines are counted from 1, from the first to the last"
            )
        return Target(found["path"], (first, last))
    if sha := repo.resolve(word):
        return Target(commit=sha)
    raise Refused(Why.UNKNOWN, f"{word} is neither a file that git knows here nor a commit")


def _is_file(repo: Repository, path: str) -> bool:
    if path.startswith("-"):
        return False
    here = Path(os.path.normpath(Path(repo.path or "") / path))
    return here.is_file() and bool(repo.maybe("ls-files", "--", path))


def why(repo: Repository, asked: Target, *, most: int = 20) -> list[Reason]:
    """The commits that are behind it, those with most lines first."""
    if asked.commit:
        return [reason(repo, asked.commit)]
    try:
        lines = blame(repo, asked.path, asked.lines)
    except GitError as no:
        said = str(no).removeprefix("fatal: ").partition("\n")[0]
        raise Refused(Why.UNKNOWN, f"{asked.path}: {said}") from None
    count = Counter(line.sha for line in lines)
    shas = [sha for sha, _ in count.most_common(most)]
    return [
        reason(repo, sha, [line for line in lines if line.sha == sha])
        for sha in shas
        if set(sha) != {"0"}
    ]


def reason(repo: Repository, sha: str, lines: Iterable[Line] = ()) -> Reason:
    """What is known of one commit."""
    commit = repo.commit(sha)
    record, by = _record(repo, commit)
    return Reason(commit, parse(commit.message), record, by, tuple(lines))


def _record(repo: Repository, commit: Commit) -> tuple[Note, str]:
    """Its note, together with the decisions that our ref has for it."""
    noted = notes.of(repo, [commit.sha]).get(commit.sha)
    if noted and decision_ids(noted):
        whole = decisions.records(repo, decision_ids(noted))
        return merged(noted, *whole.values()), "note"
    ids, by = healing.ids_of(repo, commit)
    found = decisions.records(repo, ids)
    parts = [note for note in (noted, *found.values()) if note]
    return (merged(*parts) if parts else {"version": VERSION}), by if found else ""


def ask_server(repo: Repository, reason: Reason) -> Reason:
    """With what the server of this machine knows besides."""
    id = repo.maybe("config", "accord.repo")
    answer = bridge.ask("extended-metadata", os.environ, {"repo": id, "sha": reason.commit.sha})
    note = answer.get("note") if answer else None
    if not isinstance(note, dict) or not decision_ids(note):
        return reason
    return reason._replace(record=merged(reason.record, note), by=reason.by or "commit")
