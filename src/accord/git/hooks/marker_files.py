"""Files in the git directory that carry state from one hook to the next.

`accord-squashed` lists the commits of a `merge --squash`, because git deletes its own list before
`post-commit` runs. `accord-owed` marks a commit whose record is not written yet. `accord-hooks`
lists the hooks that were installed, so that those left notice when another tool replaced one.

Commits made while no server answered, in a repository that is bound to a session, have files in
the git directory that all work trees share: `accord-bound` exists once a server said that the
repository is bound; `accord-pending-commits` lists commits whose record waits for a server;
`accord-told` exists once the person was told so. `accord-unreached`, in the git directory of the
work tree, carries the reason from `prepare-commit-msg` to `post-commit`, and `accord-unanswered`
that no server needs to be asked again for this commit. Nothing is recorded
without an answer: the list only says what to ask for later, and when each commit was made, so that
it gets what was said before it and nothing else.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from accord.git.light_namedtuple import NamedTuple
from accord.git.repository import Repository, is_object_id

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

SQUASH_MSG_FILE, SQUASHED_FILE = "SQUASH_MSG", "accord-squashed"
COMMIT_LINE_PREFIX = "commit "
MAX_SQUASHED = 1000
BLOCK_BEGIN = "# >>> accord: records why; `accord git uninstall` removes these lines >>>"
BLOCK_WITHIN_BYTES = 4096
HOOKS_DIR = "ACCORD_HOOKS_DIR"  # the variable in which our scripts say where they are
PENDING_RECORD_FILE = "accord-owed"
INSTALLED_FILE = "accord-hooks"
LEGACY_SUFFIX = ".legacy"  # pre-commit renames a hook so, and runs it


def save_squashed(repo: Repository) -> None:
    """Copy the list of squashed commits out of git's SQUASH_MSG for `post-commit`."""
    path = repo.git_file(SQUASHED_FILE)
    try:  # noqa: SIM105 - `contextlib` is too slow to import in hooks
        os.unlink(path)  # noqa: PTH108 - so is `pathlib`
    except OSError:
        pass
    try:
        with open(repo.git_file(SQUASH_MSG_FILE), encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            content = file.read()
    except OSError:
        return
    rows = (
        line.removeprefix(COMMIT_LINE_PREFIX)
        for line in content.split("\n")
        if line.startswith(COMMIT_LINE_PREFIX)
    )
    shas = [sha for sha in rows if is_object_id(sha)]
    try:
        with open(path, "x", encoding="ascii") as file:  # noqa: PTH123 - the same
            file.write("\n".join(shas[:MAX_SQUASHED]))
    except OSError:  # such as a directory in its place; the rest of the record is still made
        pass


def take_squashed(repo: Repository) -> list[str]:
    """Read and delete the list, so that it applies to one commit only."""
    path = repo.git_file(SQUASHED_FILE)
    if not os.path.isfile(path):  # noqa: PTH113 - a named pipe in its place would block
        return []
    try:
        with open(path, encoding="ascii") as file:  # noqa: PTH123 - the same
            shas = file.read().split()
        os.unlink(path)  # noqa: PTH108 - the same
    except (OSError, ValueError):
        return []
    return shas


def mark_pending_record(repo: Repository) -> None:
    """Note that a commit with PVP context is about to be made."""
    try:
        with open(repo.git_file(PENDING_RECORD_FILE), "xb"):  # noqa: PTH123 - hooks have no `pathlib`
            pass
    except OSError:  # exists already, or not writable: `accord git heal` finds the commit anyway
        pass


def take_pending_record(repo: Repository) -> bool:
    """Whether a pending record was marked; clears the mark."""
    try:
        os.unlink(repo.git_file(PENDING_RECORD_FILE))  # noqa: PTH108 - the same
    except OSError:
        return False
    return True


def save_installed(repo: Repository, names: Sequence[str]) -> None:
    """Remember which hooks were installed."""
    try:
        with open(_installed_path(repo), "w", encoding="ascii") as file:  # noqa: PTH123 - the same
            file.write("\n".join(names))
    except OSError:
        pass  # then a replaced hook is not noticed


def take_replaced(repo: Repository, folder: str) -> list[str]:
    """The installed hooks that are no longer ours; each is returned once."""
    try:
        with open(_installed_path(repo), encoding="ascii") as file:  # noqa: PTH123 - the same
            installed = file.read(1000).split()
    except (OSError, ValueError):
        return []
    lost = [name for name in installed if not _is_ours(f"{folder}/{name}")]
    if lost:
        save_installed(repo, [name for name in installed if name not in lost])
    return lost


def _is_ours(path: str) -> bool:
    return any(BLOCK_BEGIN.encode() in _head(each) for each in (path, path + LEGACY_SUFFIX))


def _head(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - the same
            return file.read(BLOCK_WITHIN_BYTES)
    except OSError:
        return b""


def _installed_path(repo: Repository) -> str:
    return os.path.join(repo.directories.common_git_dir, INSTALLED_FILE)  # noqa: PTH118 - the same


# Commits that no server answered for

BOUND_FILE, TOLD_FILE = "accord-bound", "accord-told"
PENDING_FILE, UNREACHED_FILE = "accord-pending-commits", "accord-unreached"
UNANSWERED_FILE = "accord-unanswered"
APPROVERS_FILE = "accord-approvers"
SESSION_VARIABLE = "PVP_SESSION_ID"  # names the session without any binding
MAX_PENDING = 200
MAX_FILE_BYTES = 256 << 10
MAX_REASON_LENGTH = 300
NONE = "-"  # an empty field of a line
# Refusals after which asking again may help: the caller is not signed in, or the server is busy.
RETRY_CODES = frozenset({"UNAUTHORIZED", "INTERNAL_ERROR", "RATE_LIMITED", "PROFILE"})
NOT_FOUND = "NOT_FOUND"


class PendingCommit(NamedTuple):
    """A commit whose record waits: made when (in milliseconds), in which session and branch."""

    sha: str
    made_at: int
    session: str
    branch: str


class Unreached(NamedTuple):
    """That no server answered for the commit being made: since when, and why."""

    made_at: int
    reason: str


def refusal_in(response: Mapping[str, Any] | None) -> tuple[str, str]:
    """Code and message of a refusal; both empty if there is none."""
    error = response.get("error") if response else None
    if not isinstance(error, dict):
        return ("", "") if not error else ("ERROR", str(error))
    return str(error.get("code") or "ERROR"), str(error.get("message") or "")


def no_answer_reason(env: Mapping[str, str]) -> str:
    """Why no server answered, as far as the environment tells."""
    from accord.git import remote_server

    if env.get("ACCORD_URL"):
        return "the server that ACCORD_URL names did not answer, or you are not signed in there"
    if remote_server.may_exist(env):
        return "the server that you are signed in to did not answer"
    return "no server of yours runs on this machine, and you are signed in to none"


def note_answer(
    repo: Repository,
    env: Mapping[str, str],
    facts: Mapping[str, Any],
    response: Mapping[str, Any] | None,
) -> None:
    """Keep from a response to `commit-context` what a later commit without a server needs."""
    code, message = refusal_in(response)
    if response is None:
        mark_unanswered(repo)
    if response is None or code in RETRY_CODES:
        if expects_server(repo, env):
            mark_unreached(repo, message or no_answer_reason(env))
        return
    _remove(_shared(repo, TOLD_FILE))
    if code == NOT_FOUND and not facts.get("session") and not facts.get("fork"):
        _remove(_shared(repo, BOUND_FILE))
    elif response.get("session"):
        set_bound(repo, is_bound=True)


def expects_server(repo: Repository, env: Mapping[str, str]) -> bool:
    """Whether a server should answer: the repository is bound, or a variable names a session."""
    return is_bound(repo) or bool(env.get(SESSION_VARIABLE))


def is_bound(repo: Repository) -> bool:
    """Whether a server said so."""
    return os.path.exists(_shared(repo, BOUND_FILE))  # noqa: PTH110 - hooks have no `pathlib`


def set_bound(repo: Repository, *, is_bound: bool) -> None:
    """Remember whether the repository is bound."""
    path = _shared(repo, BOUND_FILE)
    if is_bound:
        _create(path)
    else:
        _remove(path)


def mark_unreached(repo: Repository, reason: str) -> None:
    """Remember, until `post-commit`, that no server answered."""
    plain = " ".join(reason.split())[:MAX_REASON_LENGTH]
    _write(repo.git_file(UNREACHED_FILE), f"{now_ms()} {plain}")


def now_ms() -> int:
    """Milliseconds since the epoch, as records are dated."""
    return time.time_ns() // 1_000_000


def clear_unreached(repo: Repository) -> None:
    """Forget the marks that an aborted commit left."""
    _remove(repo.git_file(UNREACHED_FILE))
    _remove(repo.git_file(UNANSWERED_FILE))


def mark_unanswered(repo: Repository) -> None:
    """Let `post-commit` ask no server, so that a silent one costs a commit its second only once."""
    _create(repo.git_file(UNANSWERED_FILE))


def take_unanswered(repo: Repository) -> bool:
    """Whether no server is to be asked for this commit; clears the mark."""
    if not repo.has_git_file(UNANSWERED_FILE):
        return False
    _remove(repo.git_file(UNANSWERED_FILE))
    return True


def is_marked(repo: Repository) -> bool:
    """Whether no server answered for this commit."""
    return repo.has_git_file(UNREACHED_FILE)


def take_unreached(repo: Repository) -> Unreached | None:
    """Read and clear the mark."""
    path = repo.git_file(UNREACHED_FILE)
    content = _read(path)
    if not content:
        return None
    _remove(path)
    made_at, _, reason = content.partition(" ")
    return Unreached(int(made_at), reason) if made_at.isdigit() else None


def save_approvers(repo: Repository, names: Iterable[str]) -> None:
    """Remember, until `commit-msg`, whom the draft may name as approvers."""
    _write(repo.git_file(APPROVERS_FILE), "\n".join(names))


def take_approvers(repo: Repository) -> frozenset[str] | None:
    """Read and clear that; None if `prepare-commit-msg` left nothing."""
    if not repo.has_git_file(APPROVERS_FILE):
        return None
    path = repo.git_file(APPROVERS_FILE)
    names = frozenset(_read(path).split("\n")) - {""}
    _remove(path)
    return names


def tell_once(repo: Repository) -> bool:
    """Whether the person has not been told since a server last answered."""
    return _create(_shared(repo, TOLD_FILE))


def has_pending(repo: Repository) -> bool:
    """Whether records of commits wait for a server."""
    return os.path.isfile(_shared(repo, PENDING_FILE))  # noqa: PTH113 - the same


def pending_commits(repo: Repository) -> list[PendingCommit]:
    """The commits that wait, oldest first; lines that are damaged are left out."""
    path = _shared(repo, PENDING_FILE)
    return list(_parse(_read(path).split("\n"))) if has_pending(repo) else []


def add_pending(repo: Repository, commit: PendingCommit) -> None:
    """Let a commit wait; when too many do, the oldest is given up."""
    others = [each for each in pending_commits(repo) if each.sha != commit.sha]
    _save(repo, [*others, commit][-MAX_PENDING:])


def remove_pending(repo: Repository, shas: Iterable[str]) -> None:
    """These commits no longer wait."""
    gone = set(shas)
    _save(repo, [each for each in pending_commits(repo) if each.sha not in gone])


def replace_pending(repo: Repository, pairs: Sequence[tuple[str, str]]) -> None:
    """A rewritten commit waits under its new id."""
    if has_pending(repo):
        new = dict(pairs)
        known = [each._replace(sha=new.get(each.sha, each.sha)) for each in pending_commits(repo)]
        _save(repo, list({each.sha: each for each in known}.values()))


def _parse(lines: Iterable[str]) -> Iterator[PendingCommit]:
    for line in lines:
        sha, _, rest = line.partition(" ")
        made_at, _, rest = rest.partition(" ")
        session, _, branch = rest.partition(" ")
        if is_object_id(sha) and made_at.isdigit():
            yield PendingCommit(sha, int(made_at), _field(session), _field(branch))


def _field(text: str) -> str:
    return "" if text == NONE else text


def _save(repo: Repository, commits: Sequence[PendingCommit]) -> None:
    path = _shared(repo, PENDING_FILE)
    if not commits:
        _remove(path)
        return
    lines = (f"{c.sha} {c.made_at} {c.session or NONE} {c.branch or NONE}\n" for c in commits)
    _write(path, "".join(lines))


def _shared(repo: Repository, name: str) -> str:
    return os.path.join(repo.directories.common_git_dir, name)  # noqa: PTH118 - the same


def _create(path: str) -> bool:
    """Create an empty file; False if it exists or cannot be created."""
    try:
        with open(path, "xb"):  # noqa: PTH123 - the same
            return True
    except OSError:
        return False


def _remove(path: str) -> None:
    try:  # noqa: SIM105 - `contextlib` is too slow to import in hooks
        os.unlink(path)  # noqa: PTH108 - the same
    except OSError:
        pass


def _read(path: str) -> str:
    if not os.path.isfile(path):  # noqa: PTH113 - a named pipe in its place would block
        return ""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 - the same
            return file.read(MAX_FILE_BYTES)
    except OSError:
        return ""


def _write(path: str, content: str) -> None:
    """Replace a file whole, so that a reader never sees half of it."""
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "x", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
            file.write(content)
        os.replace(temporary, path)  # noqa: PTH105 - the same
    except OSError:  # such as a full disk: the commit is made all the same
        _remove(temporary)
