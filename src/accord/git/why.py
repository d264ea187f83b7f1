"""`accord why`: from a line, file or commit to its decisions, approvals and conversation."""

import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from accord.core.kernel.refusal import Reason, Refused
from accord.core.provenance.commit_message.parser import CommitMessage, parse_message
from accord.core.provenance.coverage.coverage_extent import Coverage
from accord.core.provenance.coverage.recheck import CommittedFile, recheck_coverage
from accord.core.provenance.decision_commit import decisions_of
from accord.core.provenance.notes.note import (
    NOTE_VERSION,
    CommitReview,
    Note,
    merge_notes,
    reviews_of,
)
from accord.git import bridge_client, commit_content, user_arguments
from accord.git.records import decisions_ref, missing_records, relink
from accord.git.records.decisions_ref import decision_ids_of, escape_invalid_utf8

from .blame import BlameLine, blame, filter_of
from .process import GitError
from .repository import Commit, Repository

_match_location = re.compile(
    r"(?P<path>.+?):(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?", re.DOTALL
).fullmatch
_match_line_count = re.compile(r"has only (\d+ lines?)").search
MAX_SERVER_REQUESTS = 50
LINK_LABELS = {
    "note": "its note",
    "commit": "its record",
    "name": "the decisions named in its message",
    "patch": "an identical change",
    "branch": "a branch it squashed",
    "trailers": "its own trailers",
}


class CommitExplanation(NamedTuple):
    """A commit and why it was made; `by` is the kind of link that led to the record."""

    commit: Commit
    message: CommitMessage
    record: Note
    by: str
    lines: tuple[BlameLine, ...] = ()
    vouched: Mapping[str, str] = {}  # decisions on the server's log, with the commit asked for
    # Reviews recorded in git, of this commit or of one that it replaced.
    reviews: tuple[CommitReview, ...] = ()
    files: tuple[CommittedFile, ...] = ()
    coverage: Coverage = Coverage()

    @property
    def path(self) -> str:
        """The file of the lines in question; empty if a commit was asked about."""
        return escape_invalid_utf8(self.lines[0].path) if self.lines else ""

    @property
    def has_decision(self) -> bool:
        """Whether there is a decision on record."""
        return bool(decisions_of(self.record))


class Target(NamedTuple):
    """What to explain: lines of a file, a whole file, or a commit."""

    path: str = ""
    lines: tuple[int, int] | None = None
    commit: str = ""


def parse_target(repo: Repository, argument: str) -> Target:
    """Parse the argument as a path, then as `path:line`, then as a commit name."""
    if _is_file(repo, argument):
        return Target(argument)
    match = _match_location(argument)
    if match and _is_file(repo, match["path"]):
        first = int(match["first"])
        last = int(match["last"] or first)
        if not 0 < first <= last:
            detail = (
                f"{escape_invalid_utf8(argument)}: line numbers start at 1, and the first must not "
                "exceed the last"
            )
            raise Refused(Reason.MALFORMED, detail)
        return Target(match["path"], (first, last))
    if argument and (sha := repo.resolve(argument)):
        return Target(commit=sha)
    raise _unknown_target(repo, argument, match["path"] if match else argument)


def _is_file(repo: Repository, path: str) -> bool:
    if not path:
        return False
    if repo.is_bare:
        return bool(repo.try_text("ls-tree", "HEAD", "--", path)) and not _is_folder(repo, path)
    here = Path(os.path.normpath(Path(repo.path or "") / path))
    return here.is_file() and bool(repo.try_text("ls-files", "--", path))


def _is_folder(repo: Repository, path: str) -> bool:
    if repo.is_bare:
        return repo.try_text("cat-file", "-t", f"HEAD:{path}") == "tree"
    return (Path(repo.path or "") / path).is_dir()


def _unknown_target(repo: Repository, argument: str, path: str) -> Refused:
    """A refusal that explains why the argument names nothing."""
    name = escape_invalid_utf8(path)
    if not argument:
        return Refused(Reason.MALFORMED, "Name a file, a line as FILE:LINE, or a commit")
    if argument == user_arguments.HEAD:
        return Refused(Reason.NOT_FOUND, user_arguments.NO_COMMIT_NOTICE)
    if _is_folder(repo, path):
        return Refused(Reason.MALFORMED, f"{name} is a directory; name a file in it")
    if _is_outside(repo, path):
        return Refused(Reason.NOT_FOUND, f"{name} is not in this repository")
    gone = repo.try_text("log", "-1", "--diff-filter=D", "--format=%h", "--", path)
    if gone:
        detail = f"{name} was deleted in {gone}; `accord why {gone}` explains why"
        return Refused(Reason.NOT_FOUND, detail)
    if not repo.is_bare and (Path(repo.path or "") / path).is_file():
        detail = f"{name} is not committed yet, so no decision is on record"
        return Refused(Reason.NOT_FOUND, detail)
    detail = f"{escape_invalid_utf8(argument)} is neither a tracked file here nor a commit"
    return Refused(Reason.NOT_FOUND, detail)


def _is_outside(repo: Repository, path: str) -> bool:
    if repo.is_bare:
        return False
    there = Path(os.path.abspath(Path(repo.path or "") / path))  # noqa: PTH100 - symlinks must not be resolved
    roots = {repo.root, repo.root.resolve()}
    return not any(each.is_relative_to(root) for each in (there, there.resolve()) for root in roots)


def explain(repo: Repository, target: Target, *, max_commits: int = 20) -> list[CommitExplanation]:
    """Explain the commits behind the target, those with the most lines first."""
    if target.commit:
        return [explain_commit(repo, target.commit)]
    try:
        lines = blame(repo, target.path, target.lines, "HEAD" if repo.is_bare else "")
    except GitError as error:
        raise _blame_refusal(target.path, str(error)) from None
    count = Counter(line.sha for line in lines)
    shas = [sha for sha, _ in count.most_common(max_commits)]
    if not lines and (last := repo.try_text("log", "-1", "--format=%H", "--", target.path)):
        shas = [last]  # for an empty file, its last commit
    return [
        explain_commit(repo, sha, [line for line in lines if line.sha == sha])
        for sha in shas
        if set(sha) != {"0"}
    ]


def _blame_refusal(path: str, error: str) -> Refused:
    """Git's blame error as a sentence about the file."""
    summary = error.removeprefix("fatal: ").partition("\n")[0]
    if match := _match_line_count(summary):
        rest = "is empty" if match[1] == "0 lines" else f"has only {match[1]}"
        return Refused(Reason.NOT_FOUND, f"{escape_invalid_utf8(path)} {rest}")
    return Refused(Reason.NOT_FOUND, f"{escape_invalid_utf8(path)}: {escape_invalid_utf8(summary)}")


def explain_commit(
    repo: Repository, sha: str, lines: Iterable[BlameLine] = ()
) -> CommitExplanation:
    commit = repo.commit(sha)
    record, by = _record_of(repo, commit)
    reviews = reviews_of(record)
    return CommitExplanation(
        commit, parse_message(commit.message), record, by, tuple(lines), reviews=reviews
    )


def _record_of(repo: Repository, commit: Commit) -> tuple[Note, str]:
    """The commit's note merged with its decisions on record, and how they were found."""
    noted, unreadable = None, None
    try:
        noted = decisions_ref.notes_of(repo, [commit.sha]).get(commit.sha)
    except Refused as later:  # unreadable note; the decisions ref may still have the record
        unreadable = later
    if noted and decision_ids_of(noted):
        whole = decisions_ref.read_records(repo, decision_ids_of(noted))
        return merge_notes(noted, *whole.values()), "note"
    ids, by = relink.find_ids_of_commit(repo, commit)
    records = decisions_ref.read_records(repo, ids)
    if unreadable and not records:
        raise unreadable
    parts = [note for note in (noted, *records.values()) if note]
    return (merge_notes(*parts) if parts else {"version": NOTE_VERSION}), by if records else ""


def with_recovered_records(
    repo: Repository, explanations: Iterable[CommitExplanation]
) -> list[CommitExplanation]:
    """Explanations with records that killed hooks left out, created now if possible."""
    result = list(explanations)
    if not any(
        missing_records.mentions_session(each.commit) for each in result if not each.has_decision
    ):
        return result
    with suppress(GitError, OSError):  # reading must work without write permission
        if missing_records.recover_records(repo):
            return [each if each.has_decision else _explain_again(repo, each) for each in result]
    return result


def _explain_again(repo: Repository, before: CommitExplanation) -> CommitExplanation:
    return explain_commit(repo, before.commit.sha, before.lines)


def shallow_commits(repo: Repository, explanations: Iterable[CommitExplanation]) -> list[str]:
    """Commits at a shallow clone's boundary; lines blamed on them may be older than they are."""
    try:
        boundary = set(repo.common_git_directory.joinpath("shallow").read_text("ascii").split())
    except OSError:
        return []
    return [
        explanation.commit.sha
        for explanation in explanations
        if explanation.lines and explanation.commit.sha in boundary
    ]


def filter_hiding_lines(
    repo: Repository, target: Target, explanations: Iterable[CommitExplanation]
) -> str:
    """The filter that may explain why lines appear uncommitted; empty if there is none."""
    blamed = sum(len(explanation.lines) for explanation in explanations)
    first, last = target.lines or (1, 0)
    return filter_of(repo, target.path) if blamed <= last - first and not repo.is_bare else ""


def with_coverage(
    repo: Repository, explanations: Iterable[CommitExplanation]
) -> list[CommitExplanation]:
    """Explanations with what approvals cover of each commit, checked against its content."""
    return [_with_coverage(repo, each) for each in explanations]


def _with_coverage(repo: Repository, explanation: CommitExplanation) -> CommitExplanation:
    made = decisions_ref.decisions_in(explanation.record)
    if not made:
        return explanation
    commit = explanation.commit
    files = commit_content.with_merge_result(
        repo, commit, commit_content.changes_of_commit(repo, commit)
    )
    known = tuple(file._replace(path=escape_invalid_utf8(file.path)) for file in files)
    return explanation._replace(files=known, coverage=recheck_coverage(made, known))


def with_decisions_of_lines(
    explanations: Iterable[CommitExplanation],
) -> list[CommitExplanation]:
    """Explanations of lines without the decisions that were about other files only."""
    return [_with_decisions_of_lines(each) if each.lines else each for each in explanations]


def _with_decisions_of_lines(explanation: CommitExplanation) -> CommitExplanation:
    path = explanation.path
    made = decisions_ref.decisions_in(explanation.record)
    own = [decision for decision in made if _concerns(decision, path)]
    is_quoted = path.startswith('"')  # by git, so it is not what the record has
    if is_quoted or len(own) == len(made):
        return explanation
    return explanation._replace(record={**explanation.record, "decisions": own})


def _concerns(decision: Mapping[str, Any], path: str) -> bool:
    """Whether the decision's commit changed the file; one that names no files may have."""
    files = decision.get("files_changed")
    return (
        not isinstance(files, list) or not files or bool(decision.get("truncated")) or path in files
    )


def with_server_records(
    repo: Repository, explanations: Iterable[CommitExplanation]
) -> list[CommitExplanation]:
    """Explanations with the local server's records, fetched within one timeout overall."""
    deadline = time.monotonic() + bridge_client.response_timeout(os.environ)
    id = repo.try_text("config", "accord.repo")
    return [_with_server_record(id, explanation, deadline) for explanation in explanations]


def _with_server_record(
    repo_id: str | None, explanation: CommitExplanation, deadline: float
) -> CommitExplanation:
    """Replace decisions from git with the server's version where the server has one.

    Anyone can write a note, so the two are never mixed within a decision: a name added in git
    would look as if the server had vouched for it. Reviews happen after the decision and are
    recorded in git alone, so they are kept in a separate field.
    """
    decisions_in_git = decisions_of(explanation.record)
    shas = dict.fromkeys([explanation.commit.sha, *(each.git_sha for each in decisions_in_git)])
    wanted = {each.id for each in decisions_in_git}
    notes_by_id: dict[str, Note] = {}
    vouched: dict[str, str] = {}
    for sha in [sha for sha in shas if sha][:MAX_SERVER_REQUESTS]:
        left = deadline - time.monotonic()
        response = left > 0 and bridge_client.request(
            "extended-metadata", os.environ, _request_facts(repo_id, sha), left
        )
        note = response.get("note") if response else None
        if not isinstance(note, dict):
            continue
        for each in decision_ids_of(note):
            if each not in vouched and (each in wanted or sha == explanation.commit.sha):
                notes_by_id[each], vouched[each] = note, sha
    if not notes_by_id:
        return explanation
    record = merge_notes(*notes_by_id.values(), *_other_decisions(explanation.record, notes_by_id))
    by = explanation.by or "commit"
    return explanation._replace(record=record, by=by, vouched=vouched)


def _request_facts(repo_id: str | None, sha: str) -> dict[str, str | None]:
    return {"repo": repo_id, "sha": sha}


def _other_decisions(record: Note, server_ids: Mapping[str, Note]) -> list[Note]:
    """Decisions that only git has."""
    others = [
        decision
        for decision in decisions_ref.decisions_in(record)
        if decision.get("id") not in server_ids
    ]
    return [{**record, "decisions": others}] if others else []
