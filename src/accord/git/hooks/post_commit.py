"""Record the decision of a new commit in its note and in the decisions ref."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from accord.core.kernel.ulid import ulid
from accord.core.provenance.commit_message.parser import CommitMessage, parse_message
from accord.core.provenance.commit_message.trailer_values import (
    default_decision_type,
    to_record_type,
)
from accord.core.provenance.coverage.recheck import CommittedFile
from accord.core.provenance.notes.note import CommitReview, Note, reviews_note
from accord.git import bridge_client, commit_content
from accord.git.commit_content import Patch
from accord.git.hooks import marker_files
from accord.git.hooks.message_hooks import committer_name, print_notice
from accord.git.process import GitError
from accord.git.records import decisions_ref
from accord.git.records.decisions_ref import (
    DecisionLink,
    decision_ids_of,
    decisions_in,
    escape_invalid_utf8,
    is_decision_id,
)
from accord.git.repository import Commit, Repository

MAX_MERGED_COMMITS = 5000
MAX_FILES = 2000
MAX_TRAILERS = 200
MAX_TYPE_LENGTH = 64
RETRY_HINT = "once that is fixed, `accord git heal` writes the record"
PREVIOUS_HEAD = "HEAD@{1}"


class CommitOrigin(NamedTuple):
    """Where a commit was made: the branch, and the commit checked out before."""

    branch: str
    before: str


class CommitDetails(NamedTuple):
    """A commit with its parsed message, patch id, branch and changed files."""

    commit: Commit
    message: CommitMessage
    patch: str
    branch: str
    changes: tuple[CommittedFile, ...]

    @property
    def files(self) -> list[str]:
        return [escape_invalid_utf8(change.path) for change in self.changes[:MAX_FILES]]


class CommitRecord(NamedTuple):
    """The decisions of a commit, and why the server made no record of it that it could have made.

    With a reason, the record was made of the message alone, and a server completes it later.
    """

    ids: frozenset[str] = frozenset()
    no_answer: str = ""


def record_new_commit(repo: Repository, commit: Commit, squashed: list[str]) -> CommitRecord:
    """The record of a new commit; a failure is printed and does not raise."""
    try:
        return record_commit(repo, commit, squashed)
    except GitError as error:
        summary = str(error).removeprefix("fatal: ").removeprefix("error: ").partition("\n")[0]
        print_notice(f"No record of this commit was written: {summary}; {RETRY_HINT}")
        return CommitRecord()


def record_commit(
    repo: Repository, commit: Commit, squashed: list[str], origin: CommitOrigin | None = None
) -> CommitRecord:
    """Link a commit to its decision and to those of the commits it squashed."""
    message = parse_message(commit.message)
    squashed = squashed if squashed and _contains_squashed(repo, squashed, commit.sha) else []
    forks = (
        merged_forks(repo, commit) if len(commit.parents) > 1 and not message.has_context else {}
    )
    if not (message.has_context or squashed or forks):
        return CommitRecord()
    patch = commit_content.patch_of(repo, commit)
    origin = origin or CommitOrigin(repo.current_branch(), PREVIOUS_HEAD)
    known = _known_ids(repo, message.decision_ids) or _ids_of_copied_commit(
        repo, commit.reflog, patch.patch_id, origin
    )
    earlier = _ids_of_commits(repo, squashed) | known
    needs_record = message.has_context and not known
    new, no_answer = (
        _new_records(repo, details_of(commit, message, patch, origin.branch), forks)
        if needs_record or forks
        else NewRecords({})
    )
    ids = frozenset(new) | earlier
    if ids:
        decisions_ref.attach_decisions(
            repo, {commit.sha: DecisionLink(ids, frozenset({patch.patch_id} - {""}))}, new
        )
    return CommitRecord(ids, no_answer)


def _contains_squashed(repo: Repository, squashed: list[str], sha: str) -> bool:
    from accord.git.records import rewrite_match

    return rewrite_match.contains_any(repo, squashed, sha)


def details_of(commit: Commit, message: CommitMessage, patch: Patch, branch: str) -> CommitDetails:
    """What the record of a commit says about it."""
    return CommitDetails(
        commit, message, patch.patch_id, escape_invalid_utf8(branch), patch.changes
    )


def _ids_of_copied_commit(
    repo: Repository, reflog: str, patch: str, origin: CommitOrigin
) -> frozenset[str]:
    """The decisions of the commit that was amended or cherry-picked to make this one."""
    if reflog.startswith("cherry-pick"):
        return decisions_ref.ids_by_patch(repo, [patch]).get(patch, frozenset())
    if reflog.startswith("commit (amend)"):
        amended = repo.resolve(origin.before) if origin.before else None
        return _recorded_ids(repo, amended) if amended else frozenset()
    return frozenset()


def _recorded_ids(repo: Repository, sha: str) -> frozenset[str]:
    """Decisions of a commit by its note or the decisions ref; one may lack what the other has."""
    linked, noted = decisions_ref.links_and_notes(repo, [sha])
    return linked.get(sha, frozenset()) | frozenset(decision_ids_of(noted.get(sha, {})))


def _ids_of_commits(repo: Repository, shas: Iterable[str]) -> frozenset[str]:
    """All decisions of these commits."""
    ids_by_sha = decisions_ref.ids_by_commit(repo, shas)
    return frozenset().union(*ids_by_sha.values())


def _known_ids(repo: Repository, ids: Iterable[str]) -> frozenset[str]:
    """The ids that are already on record, which means the commit is a copy of a recorded one."""
    return frozenset(decisions_ref.read_records(repo, islice(ids, decisions_ref.MAX_IDS)))


def merged_forks(repo: Repository, commit: Commit) -> dict[str, set[str]]:
    """The forks whose commits a merge brings in, by session."""
    first, *others = commit.parents
    shas = repo.run_text(
        "rev-list", f"--max-count={MAX_MERGED_COMMITS}", *others, f"^{first}"
    ).split()
    ids = _ids_of_commits(repo, shas)
    forks_by_session: dict[str, set[str]] = {}
    for note in decisions_ref.read_records(repo, ids).values():
        for decision in decisions_in(note):
            session, fork = decision.get("pvp_session"), decision.get("fork")
            if isinstance(session, str) and isinstance(fork, str) and fork:
                forks_by_session.setdefault(session, set()).add(fork)
    return forks_by_session


class NewRecords(NamedTuple):
    """Records by decision id, and why no server answered; empty if one did."""

    notes: dict[str, Note]
    no_answer: str = ""


def _new_records(
    repo: Repository, details: CommitDetails, forks: Mapping[str, set[str]]
) -> NewRecords:
    """Records from the server; without forks to merge, the commit's own message is the fallback."""
    if not forks:
        made = _record_from_server(repo, details)
        return made if made.notes else NewRecords(_record_from_message(details), made.no_answer)
    made_by_session = [
        _record_from_server(repo, details, session=session, merges=sorted(names))
        for session, names in forks.items()
    ]
    notes = {id: note for made in made_by_session for id, note in made.notes.items()}
    return NewRecords(notes, next((made.no_answer for made in made_by_session), ""))


def _record_from_server(repo: Repository, details: CommitDetails, **more: Any) -> NewRecords:
    """The record that the server makes of the commit."""
    if not bridge_client.is_reachable(os.environ):
        return NewRecords({}, marker_files.no_answer_reason(os.environ))
    timeout_s = bridge_client.response_timeout(os.environ)
    response = request_record(repo, details, timeout_s, **more)
    code, message = marker_files.refusal_in(response)
    if response is None or code in marker_files.RETRY_CODES:
        return NewRecords({}, message or marker_files.no_answer_reason(os.environ))
    note = response.get("note")
    if not isinstance(note, dict):
        if os.environ.get("ACCORD_DEBUG"):
            why = f"{code} {message}" if code else " ".join(sorted(response))
            print_notice(f"The server made no record of this commit: {why}")
        return NewRecords({})
    return NewRecords(dict.fromkeys(decision_ids_of(note), note))


def report_commit(repo: Repository, commit: Commit, branch: str) -> None:
    """Tell the server of a commit; what it answers does not matter."""
    message = parse_message(commit.message)
    details = details_of(commit, message, commit_content.patch_of(repo, commit), branch)
    request_record(repo, details, bridge_client.response_timeout(os.environ))


def request_record(
    repo: Repository, details: CommitDetails, timeout_s: float, **more: Any
) -> dict[str, Any] | None:
    """The server's response to a new commit, which may be a refusal; None if there is none."""
    commit, message = details.commit, details.message
    files = commit_content.with_merge_result(repo, commit, details.changes)
    tree = f"{commit.sha}^{{tree}}"
    objects = repo.read_objects([tree])
    settings = repo.read_config(r"^(accord\.repo|user\.name)$")
    facts = {
        "repo": settings.get("accord.repo"),
        "sha": commit.sha,
        "parents": list(commit.parents),
        "patch_id": details.patch,
        "branch": details.branch,
        "files": details.files,
        "tree": objects[tree].sha if tree in objects else "",
        "root": commit_content.work_tree_root(repo),
        "changes": commit_content.facts_for_server(files),
        "committer": committer_name(settings),
        "session": message.session_id,
        "fork": message.fork_id,
        "decision": next(iter(message.decision_ids), None),
        "type": (message.header.type or "")[:MAX_TYPE_LENGTH],
        "scope": (message.header.scope or "")[:MAX_TYPE_LENGTH],
        "message_trailers": [
            [trailer.key, trailer.value] for trailer in message.trailers[:MAX_TRAILERS]
        ],
        **more,
    }
    return commit_content.request_with_facts(repo, "commit-created", facts, files, timeout_s)


def _record_from_message(details: CommitDetails) -> dict[str, Note]:
    """A record made of the commit message alone, hence without approvals and conversation."""
    commit, message = details.commit, details.message
    named = [id for id in message.decision_ids if is_decision_id(id)]
    id = named[0] if named else _decision_id_of(commit)
    fields: dict[str, Any] = {
        "id": id,
        "pvp_session": message.session_id or "",
        "git_sha": commit.sha,
        "pvp_messages": list(message.message_ids),
        "decision_type": to_record_type(message.decision_type or _default_decision_type(message)),
        "confidence_score": message.confidence,
        "files_changed": details.files,
        "fork": message.fork_id,
        "decided_by": [str(participant) for participant in message.decided_by],
        "decided_at": commit.at,
        "branch": details.branch,
        "parents": list(commit.parents),
        "patch_id": details.patch,
    }
    filled = {name: value for name, value in fields.items() if value or name == "pvp_session"}
    session = {"session": {"id": message.session_id}} if message.session_id else {}
    reviews = reviews_note(
        CommitReview(str(participant), commit.sha, id) for participant in message.reviewed_by
    )
    return {id: {**reviews, **session, "decisions": [filled]}}


def _decision_id_of(commit: Commit) -> str:
    """A decision id derived from the commit, so that making the record twice gives the same id."""
    return f"dec_{ulid(committed_at_ms(commit), bytes.fromhex(commit.sha))}"


def committed_at_ms(commit: Commit) -> int:
    """When the commit was made by its own date; 0 if that is out of range."""
    from datetime import datetime

    with suppress(ValueError, OverflowError):
        return int(1000 * datetime.fromisoformat(commit.at).timestamp())
    return 0


def _default_decision_type(message: CommitMessage) -> str:
    return default_decision_type(message.header.type or "", message.header.scope) or ""
