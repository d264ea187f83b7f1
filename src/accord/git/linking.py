"""The record of a commit that was just made: to its note and to our ref."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from accord.core.kernel.ulid import ulid
from accord.core.provenance.kinds import recorded, usual
from accord.core.provenance.message import CommitMessage, parse
from accord.core.provenance.note import Note
from accord.core.provenance.reviews import Review, note_of

from . import bridge, decisions, patches
from .checking import say
from .decisions import Link, decision_ids, decisions_in, is_id, shown
from .patches import Patch
from .process import GitError
from .repository import Commit, Repository

MOST_BROUGHT = 5000
MOST_FILES = 2000
MOST_TRAILERS = 200
MOST_TYPE = 64
AGAIN = "once that is mended, `accord git heal` keeps one"
BEFORE = "HEAD@{1}"


class Then(NamedTuple):
    """Where a commit was made: the branch, and what was checked out before it."""

    branch: str
    before: str


class Made(NamedTuple):
    """A commit, what it says, and what git says of it."""

    commit: Commit
    message: CommitMessage
    patch: str
    branch: str
    files: list[str]


def link(repo: Repository, commit: Commit, squashed: list[str]) -> None:
    """Put a commit on record that was just made; who made it is told where that failed."""
    try:
        record(repo, commit, squashed)
    except GitError as no:
        said = str(no).removeprefix("fatal: ").removeprefix("error: ").partition("\n")[0]
        say(f"No record of this commit was kept: {said}; {AGAIN}")


def record(
    repo: Repository, commit: Commit, squashed: list[str], then: Then | None = None
) -> frozenset[str]:
    """Tie a commit to its decision, and to those of what it squashed; says which these are."""
    message = parse(commit.message)
    squashed = squashed if squashed and _is_in(repo, squashed, commit.sha) else []
    forks = _brought(repo, commit) if len(commit.parents) > 1 and not message.has_context else {}
    if not (message.has_context or squashed or forks):
        return frozenset()
    patch = patches.of(repo, commit)
    then = then or Then(repo.branch(), BEFORE)
    known = _known(repo, message.decision_ids) or _copied(repo, commit.reflog, patch.name, then)
    earlier = _carried(repo, squashed) | known
    fresh = message.has_context and not known
    new = _new(repo, _made(commit, message, patch, then.branch), forks) if fresh or forks else {}
    ids = frozenset(new) | earlier
    if ids:
        decisions.attach(repo, {commit.sha: Link(ids, frozenset({patch.name} - {""}))}, new)
    return ids


def _is_in(repo: Repository, squashed: list[str], sha: str) -> bool:
    from . import moving

    return moving.is_in(repo, squashed, sha)


def _made(commit: Commit, message: CommitMessage, patch: Patch, branch: str) -> Made:
    files = [shown(path) for path in patch.files[:MOST_FILES]]
    return Made(commit, message, patch.name, shown(branch), files)


def _copied(repo: Repository, reflog: str, patch: str, then: Then) -> frozenset[str]:
    """The decisions of the commit that was amended or picked to make this one."""
    if reflog.startswith("cherry-pick"):
        return decisions.of_patches(repo, [patch]).get(patch, frozenset())
    if reflog.startswith("commit (amend)"):
        amended = repo.resolve(then.before) if then.before else None
        return _on_record(repo, amended) if amended else frozenset()
    return frozenset()


def _on_record(repo: Repository, sha: str) -> frozenset[str]:
    """A commit's decisions; its note may have been written, and our ref not."""
    linked, noted = decisions.on_record(repo, [sha])
    return linked.get(sha, frozenset()) | frozenset(decision_ids(noted.get(sha, {})))


def _carried(repo: Repository, shas: Iterable[str]) -> frozenset[str]:
    """The decisions of other commits."""
    found = decisions.of_commits(repo, shas)
    return frozenset().union(*found.values())


def _known(repo: Repository, ids: Iterable[str]) -> frozenset[str]:
    """Those that are on record: the commit is a copy of one that was linked."""
    return frozenset(decisions.records(repo, islice(ids, decisions.MOST_IDS)))


def _brought(repo: Repository, commit: Commit) -> dict[str, set[str]]:
    """The forks whose commits a merge brings in, by their session."""
    first, *others = commit.parents
    shas = repo.ask("rev-list", f"--max-count={MOST_BROUGHT}", *others, f"^{first}").split()
    ids = _carried(repo, shas)
    found: dict[str, set[str]] = {}
    for note in decisions.records(repo, ids).values():
        for each in decisions_in(note):
            session, fork = each.get("pvp_session"), each.get("fork")
            if isinstance(session, str) and isinstance(fork, str) and fork:
                found.setdefault(session, set()).add(fork)
    return found


def _new(repo: Repository, made: Made, forks: Mapping[str, set[str]]) -> dict[str, Note]:
    """As the server tells it: of a merge, of each session's forks; else, at least the message."""
    if not forks:
        return _told(repo, made) or _from_message(made)
    found: dict[str, Note] = {}
    for session, names in forks.items():
        found |= _told(repo, made, session=session, merges=sorted(names))
    return found


def _told(repo: Repository, made: Made, **more: Any) -> dict[str, Note]:
    """The record as the server tells it; nothing where there is none."""
    if not bridge.in_reach(os.environ):
        return {}
    commit, message = made.commit, made.message
    facts = {
        "repo": repo.settings(r"^accord\.repo$").get("accord.repo"),
        "sha": commit.sha,
        "parents": list(commit.parents),
        "patch_id": made.patch,
        "branch": made.branch,
        "files": made.files,
        "session": message.session_id,
        "fork": message.fork_id,
        "decision": next(iter(message.decision_ids), None),
        "type": (message.header.type or "")[:MOST_TYPE],
        "scope": (message.header.scope or "")[:MOST_TYPE],
        "message_trailers": [[each.key, each.value] for each in message.trailers[:MOST_TRAILERS]],
        **more,
    }
    answer = bridge.ask("commit-created", os.environ, facts)
    note = answer.get("note") if answer else None
    return dict.fromkeys(decision_ids(note), note) if isinstance(note, dict) else {}


def _from_message(made: Made) -> dict[str, Note]:
    """Nothing but what the commit itself says: no approval and no conversation."""
    commit, message = made.commit, made.message
    named = [id for id in message.decision_ids if is_id(id)]
    id = named[0] if named else _id_of(commit)
    told: dict[str, Any] = {
        "id": id,
        "pvp_session": message.session_id or "",
        "git_sha": commit.sha,
        "pvp_messages": list(message.message_ids),
        "decision_type": recorded(message.decision_type or _usual(message)),
        "confidence_score": message.confidence,
        "files_changed": made.files,
        "fork": message.fork_id,
        "decided_by": [str(each) for each in message.decided_by],
        "decided_at": commit.at,
        "branch": made.branch,
        "parents": list(commit.parents),
        "patch_id": made.patch,
    }
    filled = {name: value for name, value in told.items() if value or name == "pvp_session"}
    session = {"session": {"id": message.session_id}} if message.session_id else {}
    seen = note_of(Review(str(each), commit.sha, id) for each in message.reviewed_by)
    return {id: {**seen, **session, "decisions": [filled]}}


def _id_of(commit: Commit) -> str:
    """The same whoever makes the record, and how often: of a commit's own words there is one."""
    from datetime import datetime

    at = 0
    with suppress(ValueError, OverflowError):  # a date may be any number
        at = int(1000 * datetime.fromisoformat(commit.at).timestamp())
    return f"dec_{ulid(at, bytes.fromhex(commit.sha))}"


def _usual(message: CommitMessage) -> str:
    return usual(message.header.type or "", message.header.scope) or ""
