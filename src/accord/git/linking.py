"""`post-commit` and `post-rewrite`: the record of a commit, written to the note and to our ref."""

import os
import time
from collections.abc import Iterable, Mapping
from typing import Any

from accord.core.provenance.kinds import recorded, usual
from accord.core.provenance.message import CommitMessage, parse
from accord.core.provenance.note import VERSION, Note

from . import bridge, decisions, notes
from .decisions import Link, is_id, shown
from .history import Commit, History
from .preparing import SQUASHED

MOST_REWRITTEN = 5000
MOST_FILES = 2000
MOST_TRAILERS = 200
MOST_TYPE = 64


def committed(repo: History) -> None:
    """Link the commit that was just made to its decision, if it has one."""
    commit = repo.commit("HEAD")
    squashed = _squashed(repo)
    message = parse(commit.message)
    forks = _brought(repo, commit) if len(commit.parents) > 1 and not message.has_context else {}
    if not (message.has_context or squashed or forks) or _rebasing(repo):
        return
    patch = repo.patch_of(commit.sha)
    known = _known(repo, message.decision_ids) or _copied(repo, patch)
    earlier = _carried(repo, squashed) | known
    fresh = message.has_context and not known
    new = _new(repo, commit, message, patch) if fresh else {}
    for session, names in forks.items():
        new |= _told(repo, commit, message, patch, session=session, merges=sorted(names))
    ids = frozenset(new) | earlier
    if ids:
        patches = frozenset({patch} - {""})
        decisions.attach(repo, {commit.sha: Link(ids, patches)}, new)


def merged(repo: History) -> None:
    """Link a merge commit that was just made; git calls no `post-commit` for it."""
    said = repo.maybe("log", "-g", "-1", "--format=%gs", "HEAD", "--") or ""
    if "Merge made by" in said:  # no fast-forward, and no squash
        committed(repo)


def _copied(repo: History, patch: str) -> frozenset[str]:
    """The decisions of the commit that was amended or picked to make this one."""
    said = repo.maybe("log", "-g", "-1", "--format=%gs", "HEAD", "--") or ""
    if said.startswith("cherry-pick"):
        return decisions.of_patches(repo, [patch]).get(patch, frozenset())
    if said.startswith("commit (amend)"):
        before = repo.resolve("HEAD@{1}")
        return _carried(repo, [before]) if before else frozenset()
    return frozenset()


def _rebasing(repo: History) -> bool:
    """`post-rewrite` will come and carry over whatever there is."""
    return any(repo.file(name).exists() for name in ("rebase-merge", "rebase-apply"))


def _squashed(repo: History) -> list[str]:
    place = repo.file(SQUASHED)
    try:
        found = place.read_text("ascii").split()
        place.unlink()
    except (OSError, ValueError):
        return []
    return found


def _carried(repo: History, shas: Iterable[str]) -> frozenset[str]:
    """The decisions of other commits."""
    found = decisions.of_commits(repo, shas)
    return frozenset().union(*found.values())


def _known(repo: History, ids: Iterable[str]) -> frozenset[str]:
    """Those that are on record: the commit is a copy of one that was linked."""
    return frozenset(decisions.records(repo, ids))


def _brought(repo: History, commit: Commit) -> dict[str, set[str]]:
    """The forks whose commits a merge brings in, by their session."""
    if not decisions.there(repo):
        return {}
    first, *others = commit.parents
    shas = repo.ask("rev-list", f"--max-count={MOST_REWRITTEN}", *others, f"^{first}").split()
    ids = _carried(repo, shas)
    found: dict[str, set[str]] = {}
    for note in decisions.records(repo, ids).values():
        for each in _decisions(note):
            session, fork = each.get("pvp_session"), each.get("fork")
            if isinstance(session, str) and isinstance(fork, str) and fork:
                found.setdefault(session, set()).add(fork)
    return found


def _new(repo: History, commit: Commit, message: CommitMessage, patch: str) -> dict[str, Note]:
    """The record as the server tells it; failing that, what the message says."""
    told = _told(repo, commit, message, patch)
    return told or _from_message(repo, commit, message, patch, repo.files(commit.sha))


def _told(
    repo: History, commit: Commit, message: CommitMessage, patch: str, **more: Any
) -> dict[str, Note]:
    """The record as the server tells it."""
    files = repo.files(commit.sha)
    settings = repo.settings(r"^accord\.repo$")
    facts = {
        "repo": settings.get("accord.repo"),
        "sha": commit.sha,
        "parents": list(commit.parents),
        "patch_id": patch,
        "branch": repo.branch,
        "files": [shown(path) for path in files[:MOST_FILES]],
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


def decision_ids(note: Note) -> tuple[str, ...]:
    """The decisions that a note holds."""
    names = (each.get("id") for each in _decisions(note))
    return tuple(name for name in names if isinstance(name, str) and is_id(name))


def _decisions(note: Note) -> list[dict[str, Any]]:
    found = note.get("decisions")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _from_message(
    repo: History, commit: Commit, message: CommitMessage, patch: str, files: tuple[str, ...]
) -> dict[str, Note]:
    """Nothing but what the commit itself says: no approval and no conversation."""
    from accord.core.kernel.ids import ulid

    named = [id for id in message.decision_ids if is_id(id)]
    id = named[0] if named else f"dec_{ulid(time.time_ns() // 1_000_000, os.urandom(10))}"
    told: dict[str, Any] = {
        "id": id,
        "pvp_session": message.session_id or "",
        "git_sha": commit.sha,
        "pvp_messages": list(message.message_ids),
        "decision_type": recorded(message.decision_type or _usual(message)),
        "confidence_score": message.confidence,
        "files_changed": [shown(path) for path in files[:MOST_FILES]],
        "fork": message.fork_id,
        "decided_by": [str(each) for each in message.decided_by],
        "reviewed_by": [str(each) for each in message.reviewed_by],
        "decided_at": commit.at,
        "branch": repo.branch,
        "parents": list(commit.parents),
        "patch_id": patch,
    }
    filled = {name: value for name, value in told.items() if value or name == "pvp_session"}
    session = {"session": {"id": message.session_id}} if message.session_id else {}
    return {id: {"version": VERSION, **session, "decisions": [filled]}}


def _usual(message: CommitMessage) -> str:
    return usual(message.header.type or "", message.header.scope) or ""


# After a rebase or an amend


def rewritten(repo: History, pairs: str) -> None:
    """Carry the records from the old commits to the new ones; several may have become one."""
    rows = [line.split()[:2] for line in pairs.splitlines()[:MOST_REWRITTEN]]
    moved: dict[str, set[str]] = {}
    for old, new in (row for row in rows if len(row) == 2):
        moved.setdefault(new, set()).add(old)
    carry(repo, moved)


def carry(repo: History, moved: Mapping[str, Iterable[str]]) -> int:
    """Give each new commit what the old ones had; says how many got something."""
    olds = {old for each in moved.values() for old in each}
    if not olds or not (decisions.there(repo) or notes.exist(repo)):
        return 0
    linked, noted = decisions.of_commits(repo, olds), notes.of(repo, olds)
    found: dict[str, Link] = {}
    extra: dict[str, Note] = {}
    for new, each in moved.items():
        ids: set[str] = set()
        for old in each:
            ids |= linked.get(old, frozenset())
            for id in decision_ids(noted.get(old, {})):
                ids.add(id)
                extra[id] = noted[old]
        if ids:
            found[new] = Link(frozenset(ids), frozenset({repo.patch_of(new)} - {""}))
    stored = decisions.records(repo, extra)
    if found:
        decisions.attach(repo, found, {id: n for id, n in extra.items() if id not in stored})
    return len(found)
