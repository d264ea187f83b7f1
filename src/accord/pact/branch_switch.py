"""Carry ledger events across switches, merges and commits without losing any in a crash.

The ledger is a tracked file, so each branch has its own version. Before git switches or merges, all
lines are backed up in the git directory; afterwards those that the new version lacks are appended
to it. An event that belongs into a commit is staged first and appended to the file only after the
commit, so that a commit that fails leaves no event. If a backup exists at the next command, the
last one was interrupted: a switch or commit is then finished, and a merge that was not committed
is aborted.
"""

from collections.abc import Callable
from typing import NamedTuple

from accord.core.kernel.limits import LIMITS
from accord.core.kernel.refusal import Reason, Refused
from accord.core.work.fold import fold
from accord.core.work.format import log_lines, state_and_task_files
from accord.git.process import GitError
from accord.git.repository import Repository
from accord.pact.ledger import FileLedger, read_plain_file, replace_file
from accord.pact.location import PactLocation

SWITCH_BACKUP_FILE = "pact-carry.jsonl"
COMMIT_BACKUP_FILE = "pact-commit.jsonl"
MERGE_MARKER_FILE = "pact-merge"  # names the commit that is being merged
# The largest log that the limit pact_log can be set to allow.
MAX_LEDGER_BYTES = LIMITS["pact_log"].spec.maximum


class BranchMerge(NamedTuple):
    """What to merge: a commit of a branch, and the message of the merge commit."""

    tip: str
    branch: str
    message: str


class BranchSwitch:
    """Moves a ledger's events between branches; the caller holds the ledger's lock."""

    def __init__(self, place: PactLocation, ledger: FileLedger) -> None:
        self._location = place
        self._ledger = ledger
        self._switch_backup = place.private_path(SWITCH_BACKUP_FILE)
        self._commit_backup = place.private_path(COMMIT_BACKUP_FILE)
        self._merge_marker = place.private_path(MERGE_MARKER_FILE)

    def is_pending(self) -> bool:
        """Whether a switch, merge or commit was interrupted."""
        files = (self._switch_backup, self._commit_backup, self._merge_marker)
        return any(path is not None and path.exists() for path in files)

    def recover(self) -> None:
        """Finish an interrupted switch or commit; abort an interrupted merge."""
        repository = self._location.repository
        if repository and self._merge_marker and self._merge_marker.exists():
            tip = read_plain_file(self._merge_marker, MAX_LEDGER_BYTES).decode("utf-8", "replace")
            if repository.resolve("MERGE_HEAD") == tip.strip():
                self._abort_merge(repository)
            self._merge_marker.unlink()
        if repository and self._commit_backup and self._commit_backup.exists():
            # The event counts only if it was committed; a commit that failed leaves no event.
            head = (
                repository.read_file_at(
                    "HEAD", self._location.relative_path(self._location.log_path)
                )
                or b""
            )
            backup = read_plain_file(self._commit_backup, MAX_LEDGER_BYTES)
            uncommitted = log_lines.missing_lines(head, backup)
            self._append_missing(log_lines.missing_lines(uncommitted, backup))
            self._commit_backup.unlink()
        if self._switch_backup and self._switch_backup.exists():
            self._restore_events(read_plain_file(self._switch_backup, MAX_LEDGER_BYTES))

    def switch(self, repository: Repository, branch: str) -> None:
        """Check out the branch and keep all events; a refusal leaves everything unchanged."""
        if repository.current_branch() == branch:
            return
        check_clean(repository, self._location)
        self._check_no_conflict(repository, branch)
        theirs = (
            repository.read_file_at(
                f"refs/heads/{branch}", self._location.relative_path(self._location.log_path)
            )
            or b""
        )
        if faults := log_lines.parse_log(theirs).faults:
            detail = f"Line {faults[0].line} of the ledger on branch {branch} is not a valid event"
            raise Refused(Reason.DAMAGED, detail)
        data, state = self._back_up()
        try:
            self._restore_committed_files(repository, branch)
            repository.run_with_hooks("switch", "--quiet", "--no-guess", branch)
        except GitError as error:
            self._roll_back(data, state)
            raise Refused(Reason.WRONG_STATE, f"git could not switch: {error}") from None
        self._restore_events(data)

    def merge_with_events(
        self, repository: Repository, merge: "BranchMerge", write: Callable[[], bytes]
    ) -> None:
        """Merge a commit, with new lines of the ledger in the merge commit.

        `write` makes the lines once the ledger has the events of both sides. If anything fails, the
        previous state is restored.
        """
        assert self._merge_marker is not None  # noqa: S101 - there is a repository
        data, state = self._back_up()
        try:
            replace_file(self._merge_marker, merge.tip.encode(), durable=True)
            self._restore_committed_files(repository, merge.branch)
            words = ("--quiet", "--no-ff", "--no-commit", "-m", merge.message, merge.tip)
            repository.run_with_hooks("merge", *words)
            self._append_missing(data)
            lines = write()
            self._commit_lines(repository, lines, "--no-edit")
        except (GitError, Refused) as error:
            self._abort_merge(repository)
            self._roll_back(data, state)
            self._merge_marker.unlink()
            if isinstance(error, Refused):
                raise
            raise Refused(Reason.WRONG_STATE, f"git could not merge: {error}") from None
        self._append_committed(lines)
        self._restore_events(data)
        self._merge_marker.unlink()

    def commit_with_events(
        self, repository: Repository, write: Callable[[str], bytes], message: str
    ) -> None:
        """Commit tracked files and the ledger with new lines.

        `write` makes the lines, given the tree to be committed. If git fails, nothing is recorded.
        """
        index = repository.git_directory / "index"
        old_index = index.read_bytes() if index.exists() else None
        try:
            repository.run_with_hooks("add", "--update")
            lines = write(repository.run_with_hooks("write-tree"))
            self._commit_lines(repository, lines, "--message", message)
        except GitError as error:
            if old_index is not None:
                replace_file(index, old_index)
            raise Refused(Reason.WRONG_STATE, f"git could not commit: {error}") from None
        self._append_committed(lines)

    def _commit_lines(self, repository: Repository, lines: bytes, *words: str) -> None:
        """Commit the index and the ledger with these lines; the ledger's file is left as it is."""
        assert self._commit_backup is not None  # noqa: S101 - there is a repository
        replace_file(self._commit_backup, lines, durable=True)
        try:
            self._stage_ledger(repository, lines)
            is_merge = repository.has_git_file("MERGE_HEAD")
            if is_merge or not repository.succeeds("diff", "--cached", "--quiet"):
                repository.run_with_hooks("commit", "--quiet", *words)
        except GitError:
            self._commit_backup.unlink()
            raise

    def _append_committed(self, lines: bytes) -> None:
        self._append_missing(lines)
        if self._commit_backup:
            self._commit_backup.unlink()

    def _abort_merge(self, repository: Repository) -> None:
        """Abort the merge in progress, if any."""
        if not repository.has_git_file("MERGE_HEAD"):
            return
        for path in (self._location.log_path, self._location.state_path):
            # Git aborts no merge while a file differs from the index.
            name = self._location.relative_path(path)
            repository.run("checkout", "--quiet", "--", name, hooks=True)
        repository.run("merge", "--abort", hooks=True)

    def _back_up(self) -> tuple[bytes, bytes | None]:
        """Back up the ledger; the content of the ledger and of STATE.yml."""
        data, _ = self._ledger.read()
        state = (
            read_plain_file(self._location.state_path, MAX_LEDGER_BYTES)
            if self._location.state_path.is_file()
            else None
        )
        assert self._switch_backup is not None  # noqa: S101 - there is a repository
        replace_file(self._switch_backup, data, durable=True)
        return data, state

    def _stage_ledger(self, repository: Repository, lines: bytes) -> None:
        data = log_lines.append_lines(self._ledger.read()[0], lines)
        state = state_and_task_files.render_state_yml(
            fold(log_lines.parse_log(data).entries)
        ).encode()
        for path, content in ((self._location.log_path, data), (self._location.state_path, state)):
            name = self._location.relative_path(path)
            if repository.is_ignored(name):
                continue
            blob = repository.run_with_hooks("hash-object", "-w", "--stdin", data=content)
            repository.run_with_hooks(
                "update-index", "--add", "--cacheinfo", f"100644,{blob},{name}"
            )

    def _check_no_conflict(self, repository: Repository, branch: str) -> None:
        """Refuse if a changed pact file other than the ledger differs on the branch."""
        ledger = {
            self._location.relative_path(path)
            for path in (self._location.log_path, self._location.state_path)
        }
        touched = set(repository.changed_paths()) - ledger
        if clash := sorted(touched & repository.differing_paths("HEAD", f"refs/heads/{branch}")):
            detail = f"{clash[0]} has uncommitted changes and differs on {branch}; commit it first"
            raise Refused(Reason.WRONG_STATE, detail)

    def _restore_committed_files(self, repository: Repository, other: str) -> None:
        """Reset the ledger's files to HEAD so that git can switch; the backup has all lines."""
        for path in (self._location.log_path, self._location.state_path):
            name = self._location.relative_path(path)
            if repository.read_file_at("HEAD", name) is not None:
                repository.run_with_hooks("checkout", "--quiet", "HEAD", "--", name)
                continue
            if repository.is_tracked(name):
                repository.run_with_hooks("rm", "--quiet", "--cached", "--force", "--", name)
            if repository.read_file_at(f"refs/heads/{other}", name) is not None:
                path.unlink(missing_ok=True)

    def _roll_back(self, data: bytes, state: bytes | None) -> None:
        if self._ledger.read()[0] != data:
            replace_file(self._location.log_path, data, durable=True)
        if state is not None:
            replace_file(self._location.state_path, state)
        if self._switch_backup:
            self._switch_backup.unlink(missing_ok=True)

    def _restore_events(self, data: bytes) -> None:
        self._append_missing(log_lines.missing_lines(self._ledger.read()[0], data))
        if self._switch_backup:
            self._switch_backup.unlink(missing_ok=True)

    def _append_missing(self, lines: bytes) -> None:
        current, mark = self._ledger.read()
        missing = log_lines.missing_lines(current, lines)
        if log_lines.is_torn(current):
            detail = (
                "The last line of log.jsonl is incomplete; repair it, so that the events of an "
                "interrupted branch switch can be restored"
            )
            raise Refused(Reason.DAMAGED, detail)
        if missing:
            self._ledger.append(mark, missing)
        work = fold(log_lines.parse_log(log_lines.append_lines(current, missing)).entries)
        replace_file(
            self._location.state_path, state_and_task_files.render_state_yml(work).encode()
        )


def check_clean(repository: Repository, place: PactLocation) -> None:
    """Refuse if tracked files outside the pact have uncommitted changes."""
    ours = f"{place.relative_path(place.directory)}/"
    if dirty := [path for path in repository.changed_paths() if not path.startswith(ours)]:
        more = f" and {len(dirty) - 1} more" if len(dirty) > 1 else ""
        detail = f"Uncommitted changes in {dirty[0]}{more}; commit or stash them, or use --no-git"
        raise Refused(Reason.WRONG_STATE, detail)
