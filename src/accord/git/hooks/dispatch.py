"""Entry point of all git hooks: `python -m accord.git.hooks.dispatch NAME …`.

A failing hook must not block a commit, so every error is swallowed (OPEN-57); `ACCORD_DEBUG=1`
prints it. Only `commit-msg` refuses, a message with malformed PVP context, and `pre-push`, where
the repository is configured to enforce coverage.

Hooks must start fast: this module imports only the standard library, and imports what only
commits with a session need when there is one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from accord.git import bridge_client, repository
from accord.git.hooks import marker_files
from accord.git.records.record_refs import commit_index_path, has_records, read_refs
from accord.git.repository import Commit, Repository, is_object_id

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    from typing import NoReturn

    from accord.git.hooks.post_commit import CommitRecord

REBASE_DIRS = ("rebase-merge", "rebase-apply")
CHERRY_PICK_FILE = "CHERRY_PICK_HEAD"
# Exists while a rebase is stopped, so that the user can amend a commit or add new ones.
REBASE_AMEND_FILE = "rebase-merge/amend"
NEW_COMMIT_PREFIXES = ("commit: ", "commit (merge): ")  # reflog of commits that are not copies
MAX_REWRITTEN = 5000
AMEND_PREFIX = "commit (amend)"
# OPEN-69: no trailers for merges, squashes and amends.
APPROVAL_KEYS = (b"approved-by:", b"pvp-approvers:")
WAITS_HINT = "Once a server answers, the next commit or `accord git heal` writes it"
FORK_BRANCHES = "pvp/"
SOURCES_WITH_TRAILERS = frozenset({"", "message", "template"})


def main(arguments: Sequence[str]) -> int:
    """Run one hook; 1 if it refuses, otherwise 0, also on errors."""
    name, *rest = arguments or [""]
    try:
        with Repository(where=repository.directories_from_env(os.environ)) as repo:
            if name in HOOKS_WITH_SERVER:
                bridge_client.apply_settings_file(repo, os.environ)
                bridge_client.hook_wait.begin(bridge_client.response_timeout(os.environ))
            return HOOK_FUNCTIONS[name](repo, rest) if name in HOOK_FUNCTIONS else 0
    except Exception as error:  # noqa: BLE001 - a hook that fails must not fail the commit
        _print_traceback(error)
        return 0
    finally:
        bridge_client.hook_wait.end()


def _print_traceback(error: Exception) -> None:
    if os.environ.get("ACCORD_DEBUG"):
        import traceback

        traceback.print_exception(error)


def exit_now(code: int) -> NoReturn:
    """Exit immediately, skipping Python's slow interpreter shutdown."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run_prepare_commit_msg(repo: Repository, arguments: Sequence[str]) -> int:
    """Add trailers if the environment, the bridge or the draft knows of a session."""
    marker_files.take_approvers(repo)  # of a commit that was not made
    _prepare_message(repo, arguments)
    draft = _read_file(arguments[0])
    if _names_approvers(draft):
        from accord.git.hooks import message_hooks

        message_hooks.save_approvers(repo, draft)
    return 0


def _names_approvers(draft: bytes) -> bool:
    return any(key in draft.lower() for key in APPROVAL_KEYS)


def _prepare_message(repo: Repository, arguments: Sequence[str]) -> None:
    file, source = arguments[0], arguments[1] if len(arguments) > 1 else ""
    marker_files.save_squashed(repo)
    marker_files.clear_unreached(repo)
    # First, because the server starts this commit's decision after the last recorded commit.
    _recover_pending_record(repo)
    waits_for = _record_pending_commits(repo)
    draft = _read_file(file)
    if _names_approvers(draft):
        from accord.git.hooks import message_hooks

        message_hooks.drop_uncovered(repo, file, draft, arguments[1:])
        draft = _read_file(file)
    if source not in SOURCES_WITH_TRAILERS or _is_copying_commit(repo):
        return
    has_bridge = not waits_for and bridge_client.is_reachable(os.environ)
    if waits_for:
        marker_files.mark_unanswered(repo)
    if waits_for or (not has_bridge and marker_files.is_bound(repo)):
        marker_files.mark_unreached(repo, waits_for or marker_files.no_answer_reason(os.environ))
    has_variables = any(name.startswith("PVP_") for name in os.environ)
    if has_bridge or has_variables or b"pvp" in draft.lower():
        from accord.git.hooks import message_hooks

        message_hooks.add_trailers(repo, file, draft, source, has_bridge=has_bridge)


def _recover_pending_record(repo: Repository) -> None:
    """Create the record that a killed hook left out; attempted once, even if it fails."""
    if not marker_files.take_pending_record(repo):
        return
    from accord.git.records import missing_records

    try:
        missing_records.recover_records(repo)
    except Exception as error:  # noqa: BLE001 - must not affect the current commit
        _print_traceback(error)


def _record_pending_commits(repo: Repository) -> str:
    """Record commits made while no server answered; why they still wait, if they do."""
    if not marker_files.has_pending(repo):
        return ""
    from accord.git.records import pending_commits

    try:
        return pending_commits.record_pending(repo).reason
    except Exception as error:  # noqa: BLE001 - must not affect the current commit
        _print_traceback(error)
        return ""


def _is_copying_commit(repo: Repository) -> bool:
    """Whether git is copying an existing commit: a cherry-pick, or a rebase that is not stopped."""
    is_rebase_action = os.environ.get("GIT_REFLOG_ACTION", "").startswith("rebase")
    is_stopped = repo.has_git_file(REBASE_AMEND_FILE) and not is_rebase_action
    return repo.has_git_file(CHERRY_PICK_FILE) or (
        repo.has_git_file(*REBASE_DIRS) and not is_stopped
    )


def run_commit_msg(repo: Repository, arguments: Sequence[str]) -> int:
    """Check a message with PVP context; 1 if it is malformed."""
    draft = _read_file(arguments[0])
    if _names_approvers(draft):
        from accord.git.hooks import message_hooks

        message_hooks.drop_typed(repo, arguments[0], draft)
        draft = _read_file(arguments[0])
    if b"pvp" not in draft.lower():
        return 0
    from accord.git.hooks import message_hooks

    refused = message_hooks.check_message(repo, draft)
    if not refused:
        marker_files.mark_pending_record(repo)
    return refused


def run_post_commit(repo: Repository, words: Sequence[str]) -> int:
    """Record the commit if it has PVP context or squashed other commits."""
    del words
    _ask_nobody_again(repo)
    commit = repo.head_commit()
    record = _record_commit(repo, commit)
    if not marker_files.is_marked(repo):
        _report_to_session(repo, commit)
    _let_commit_wait(repo, commit, record)
    _report_replaced_hooks(repo)
    return 0


def _ask_nobody_again(repo: Repository) -> None:
    """If no server answered while the message was made, record the commit without one."""
    if marker_files.take_unanswered(repo):
        bridge_client.hook_wait.begin(0.0)


def _report_to_session(repo: Repository, commit: Commit) -> None:
    """Let the session know of a commit on a fork's branch, whether or not it has a record.

    An approved merge of the fork was to bring back another one, and is void. An amended commit is
    reported on any branch, because it may contain more of the approved work than before, or less.
    """
    branch = repo.current_branch()
    is_amended = commit.reflog.startswith(AMEND_PREFIX) and "pvp-decision" in commit.message.lower()
    if not (is_amended or branch.startswith(FORK_BRANCHES)):
        return
    if not bridge_client.is_reachable(os.environ):
        return
    from accord.git.hooks import post_commit

    post_commit.report_commit(repo, commit, branch)


def _let_commit_wait(repo: Repository, commit: Commit, record: CommitRecord | None) -> None:
    """If no server answered, list the commit for later, and say so once.

    One that has a record does not wait, unless that was made of its message alone because no
    server answered. The server may have answered while the message was made, and not since.
    """
    missed = marker_files.take_unreached(repo)
    has_record = bool(record and record.ids)
    reason = missed.reason if missed else ""
    message = commit.message.lower()
    is_from_environment = "pvp-session:" in message and "pvp-decision:" not in message
    if record and record.no_answer:
        # A session that only the environment names may have no server at all.
        expects_server = missed or marker_files.is_bound(repo)
        reason = (reason or record.no_answer) if expects_server else ""
    elif (has_record or "pvp" in message) and not is_from_environment:
        reason = ""
    if not reason:
        return
    session = os.environ.get("PVP_SESSION_ID") or os.environ.get("ACCORD_SESSION") or ""
    branch = repo.current_branch()
    made_at = missed.made_at if missed else marker_files.now_ms()
    marker_files.add_pending(
        repo, marker_files.PendingCommit(commit.sha, made_at, session.strip(), branch)
    )
    if marker_files.tell_once(repo):
        from accord.git.hooks.message_hooks import print_notice

        what = "only a record of its message" if has_record else "no record yet"
        print_notice(f"This commit has {what}: {reason}. {WAITS_HINT}")


def _report_replaced_hooks(repo: Repository) -> None:
    """Say once that another tool replaced some of our hooks."""
    folder = os.environ.get(marker_files.HOOKS_DIR)
    replaced = marker_files.take_replaced(repo, folder) if folder else ()
    if replaced:
        from accord.git.hooks.message_hooks import print_notice

        verb = "was" if len(replaced) == 1 else "were"
        names = ", ".join(replaced)
        print_notice(f"{names} {verb} replaced by another tool; run `accord git install`")


def run_post_merge(repo: Repository, arguments: Sequence[str]) -> int:
    """Record the merge commit, for which git does not run `post-commit`."""
    _ask_nobody_again(repo)
    commit = repo.head_commit()
    is_squash = arguments[:1] == ["1"]
    is_fast_forward = (
        f"GITHEAD_{commit.sha}" in os.environ
    )  # git sets GITHEAD_<sha> for each merged commit
    is_new_merge = len(commit.parents) > 1 and not is_squash and not is_fast_forward
    if is_new_merge:
        _let_commit_wait(repo, commit, _record_commit(repo, commit))
    return 0


def _record_commit(repo: Repository, commit: Commit) -> CommitRecord | None:
    """Record the commit if there is something to record; its record."""
    record = None
    squashed = marker_files.take_squashed(repo)
    mentions_pvp = "pvp" in commit.message.lower()
    if (mentions_pvp or squashed or _may_merge_fork(repo, commit)) and not _is_made_by_rebase(
        repo, commit
    ):
        from accord.git.hooks import post_commit

        record = post_commit.record_new_commit(repo, commit, squashed)
    marker_files.take_pending_record(repo)
    return record


def _is_made_by_rebase(repo: Repository, commit: Commit) -> bool:
    """Whether a rebase copied it; `post-rewrite` then carries the records over."""
    return repo.has_git_file(*REBASE_DIRS) and not commit.reflog.startswith(NEW_COMMIT_PREFIXES)


def _may_merge_fork(repo: Repository, commit: Commit) -> bool:
    """Whether it is a merge that may contain a fork's recorded commits."""
    return len(commit.parents) > 1 and has_records(repo)


def run_post_rewrite(repo: Repository, arguments: Sequence[str]) -> int:
    """Carry records over to the rewritten commits."""
    rows = [line.split()[:2] for line in _read_stdin().split("\n")[:MAX_REWRITTEN]]
    pairs = [(row[0], row[1]) for row in rows if len(row) == 2 and all(map(is_object_id, row))]
    shas = {sha for pair in pairs for sha in pair}
    marker_files.replace_pending(repo, pairs)
    contents = read_refs(repo, map(commit_index_path, shas), shas)
    is_amend = arguments[:1] == ["amend"]
    if contents.files or contents.notes:
        from accord.git.hooks import post_rewrite

        post_rewrite.carry_records(repo, pairs, contents, is_amend=is_amend)
    if not is_amend:  # of which `post-commit` has told
        _report_to_session(repo, repo.head_commit())
    return 0


def run_pre_push(repo: Repository, arguments: Sequence[str]) -> int:
    """Relink records of pushed commits and check coverage."""
    from accord.git.hooks import pre_push

    _recover_pending_record(repo)
    _record_pending_commits(repo)
    return pre_push.check_push(repo, arguments[0], _read_stdin())


def _read_stdin() -> str:
    """The hook's input from git; ref names in it may be arbitrary bytes."""
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape")


def _read_file(file: str) -> bytes:
    with open(file, "rb") as draft:  # noqa: PTH123 - `pathlib` is too slow for hooks
        return draft.read()


HOOK_FUNCTIONS: dict[str, Callable[[Repository, Sequence[str]], int]] = {
    "prepare-commit-msg": run_prepare_commit_msg,
    "commit-msg": run_commit_msg,
    "post-commit": run_post_commit,
    "post-merge": run_post_merge,
    "post-rewrite": run_post_rewrite,
    "pre-push": run_pre_push,
}
HOOK_NAMES = tuple(HOOK_FUNCTIONS)
HOOKS_WITH_SERVER = frozenset(
    {"prepare-commit-msg", "post-commit", "post-merge", "post-rewrite", "pre-push"}
)


if __name__ == "__main__":
    exit_now(main(sys.argv[1:]))
