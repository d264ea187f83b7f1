"""From a line, a file or a commit to what led there: decisions, approvals, conversation."""

import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from accord.core.kernel.refusal import Refused, Why
from accord.core.provenance.message import CommitMessage, parse
from accord.core.provenance.note import VERSION, Note, merged
from accord.core.provenance.record import decisions_of
from accord.core.provenance.reviews import Review, reviews_of

from . import bridge, decisions, healing, mending, naming, notes
from .blame import Line, blame, filter_of
from .decisions import decision_ids, shown
from .process import GitError
from .repository import Commit, Repository

_place = re.compile(
    r"(?P<path>.+?):(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?", re.DOTALL
).fullmatch
_short = re.compile(r"has only (\d+ lines?)").search
MOST_ASKED = 50
SIGNS = {
    "note": "its note",
    "commit": "its record",
    "name": "decisions that its message names",
    "patch": "a change that is the same",
    "branch": "a branch that it squashed",
    "trailers": "its own trailers",
}


class Reason(NamedTuple):
    """A commit with what is known of why it was made; `by` is the sign that led there."""

    commit: Commit
    message: CommitMessage
    record: Note
    by: str
    lines: tuple[Line, ...] = ()
    vouched: Mapping[str, str] = {}  # decisions that the server's log has, and for which commit
    reviews: tuple[Review, ...] = ()  # as git says; of its commit, or of one whose place it took

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
            detail = f"{shown(word)}: lines are counted from 1, from the first to the last"
            raise Refused(Why.MALFORMED, detail)
        return Target(found["path"], (first, last))
    if word and (sha := repo.resolve(word)):
        return Target(commit=sha)
    raise _nothing(repo, word, found["path"] if found else word)


def _is_file(repo: Repository, path: str) -> bool:
    if not path:
        return False
    if repo.bare:
        return bool(repo.maybe("ls-tree", "HEAD", "--", path)) and not _is_folder(repo, path)
    here = Path(os.path.normpath(Path(repo.path or "") / path))
    return here.is_file() and bool(repo.maybe("ls-files", "--", path))


def _is_folder(repo: Repository, path: str) -> bool:
    if repo.bare:
        return repo.maybe("cat-file", "-t", f"HEAD:{path}") == "tree"
    return (Path(repo.path or "") / path).is_dir()


def _nothing(repo: Repository, word: str, path: str) -> Refused:
    """Why there is nothing to say about it."""
    name = shown(path)
    if not word:
        return Refused(Why.MALFORMED, "Name a file, a line of it or a commit")
    if word == naming.HEAD:
        return Refused(Why.UNKNOWN, naming.NOTHING_YET)
    if _is_folder(repo, path):
        return Refused(Why.MALFORMED, f"{name} is a folder; ask about a file in it")
    if _is_outside(repo, path):
        return Refused(Why.UNKNOWN, f"{name} is not in this repository")
    gone = repo.maybe("log", "-1", "--diff-filter=D", "--format=%h", "--", path)
    if gone:
        detail = f"{name} was removed by {gone}; `accord why {gone}` says why"
        return Refused(Why.UNKNOWN, detail)
    if not repo.bare and (Path(repo.path or "") / path).is_file():
        detail = f"Git does not know {name} yet, so there is no reason on record"
        return Refused(Why.UNKNOWN, detail)
    detail = f"{shown(word)} is neither a file that git knows here nor a commit"
    return Refused(Why.UNKNOWN, detail)


def _is_outside(repo: Repository, path: str) -> bool:
    if repo.bare:
        return False
    there = Path(os.path.abspath(Path(repo.path or "") / path))  # noqa: PTH100 - links are names
    roots = {repo.root, repo.root.resolve()}
    return not any(each.is_relative_to(root) for each in (there, there.resolve()) for root in roots)


def why(repo: Repository, asked: Target, *, most: int = 20) -> list[Reason]:
    """The commits that are behind it, those with most lines first."""
    if asked.commit:
        return [reason(repo, asked.commit)]
    try:
        lines = blame(repo, asked.path, asked.lines, "HEAD" if repo.bare else "")
    except GitError as no:
        raise _refused(asked.path, str(no)) from None
    count = Counter(line.sha for line in lines)
    shas = [sha for sha, _ in count.most_common(most)]
    if not lines and (last := repo.maybe("log", "-1", "--format=%H", "--", asked.path)):
        shas = [last]  # an empty file has a reason, too
    return [
        reason(repo, sha, [line for line in lines if line.sha == sha])
        for sha in shas
        if set(sha) != {"0"}
    ]


def _refused(path: str, said: str) -> Refused:
    """What git says of a file, as a sentence about it."""
    told = said.removeprefix("fatal: ").partition("\n")[0]
    if found := _short(told):
        rest = "is empty" if found[1] == "0 lines" else f"has only {found[1]}"
        return Refused(Why.UNKNOWN, f"{shown(path)} {rest}")
    return Refused(Why.UNKNOWN, f"{shown(path)}: {shown(told)}")


def reason(repo: Repository, sha: str, lines: Iterable[Line] = ()) -> Reason:
    """What is known of one commit."""
    commit = repo.commit(sha)
    record, by = _record(repo, commit)
    seen = reviews_of(record)
    return Reason(commit, parse(commit.message), record, by, tuple(lines), reviews=seen)


def _record(repo: Repository, commit: Commit) -> tuple[Note, str]:
    """Its note, together with the decisions that our ref has for it."""
    noted, no = None, None
    try:
        noted = notes.of(repo, [commit.sha]).get(commit.sha)
    except Refused as later:  # our own ref may know all the same
        no = later
    if noted and decision_ids(noted):
        whole = decisions.records(repo, decision_ids(noted))
        return merged(noted, *whole.values()), "note"
    ids, by = healing.ids_of(repo, commit)
    found = decisions.records(repo, ids)
    if no and not found:
        raise no
    parts = [note for note in (noted, *found.values()) if note]
    return (merged(*parts) if parts else {"version": VERSION}), by if found else ""


def mended(repo: Repository, reasons: Iterable[Reason]) -> list[Reason]:
    """With the records that hooks were killed over, which are made now if they can be."""
    found = list(reasons)
    if not any(mending.speaks(each.commit) for each in found if not each.known):
        return found
    with suppress(GitError, OSError):  # whoever may not write here may still read
        if mending.mend(repo):
            return [each if each.known else _again(repo, each) for each in found]
    return found


def _again(repo: Repository, before: Reason) -> Reason:
    return reason(repo, before.commit.sha, before.lines)


def cut_off(repo: Repository, reasons: Iterable[Reason]) -> list[str]:
    """Commits that a shallow clone ends at: a line of theirs may be older than they are."""
    try:
        ends = set(repo.common.joinpath("shallow").read_text("ascii").split())
    except OSError:
        return []
    return [each.commit.sha for each in reasons if each.lines and each.commit.sha in ends]


def unfiltered(repo: Repository, asked: Target, reasons: Iterable[Reason]) -> str:
    """The filter that may be why lines look as if they were not committed; empty for none."""
    told = sum(len(each.lines) for each in reasons)
    first, last = asked.lines or (1, 0)
    return filter_of(repo, asked.path) if told <= last - first and not repo.bare else ""


def ask_server(repo: Repository, reasons: Iterable[Reason]) -> list[Reason]:
    """With what the log of this machine's server has of them, within a second."""
    until = time.monotonic() + bridge.PATIENCE_S
    id = repo.maybe("config", "accord.repo")
    return [_heard(id, each, until) for each in reasons]


def _heard(id: str | None, reason: Reason, until: float) -> Reason:
    """Whatever the server says of a decision takes the place of what git says.

    A note can be written by anybody, so the two are never mixed: a name that git adds to a
    decision of the server would look as if the server had told it. A review comes after the
    decision and its record is in git alone; it is kept apart.
    """
    made = decisions_of(reason.record)
    shas = dict.fromkeys([reason.commit.sha, *(each.git_sha for each in made)])
    wanted = {each.id for each in made}
    told: dict[str, Note] = {}
    vouched: dict[str, str] = {}
    for sha in [sha for sha in shas if sha][:MOST_ASKED]:
        left = until - time.monotonic()
        answer = left > 0 and bridge.ask("extended-metadata", os.environ, _about(id, sha), left)
        note = answer.get("note") if answer else None
        if not isinstance(note, dict):
            continue
        for each in decision_ids(note):
            if each not in vouched and (each in wanted or sha == reason.commit.sha):
                told[each], vouched[each] = note, sha
    if not told:
        return reason
    record = merged(*told.values(), *_rest(reason.record, told))
    by = reason.by or "commit"
    return reason._replace(record=record, by=by, vouched=vouched)


def _about(id: str | None, sha: str) -> dict[str, str | None]:
    return {"repo": id, "sha": sha}


def _rest(record: Note, told: Mapping[str, Note]) -> list[Note]:
    """What git has besides, if that is more than the server told."""
    others = [each for each in decisions.decisions_in(record) if each.get("id") not in told]
    return [{**record, "decisions": others}] if others else []
