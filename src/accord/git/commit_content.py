"""What a commit changes: paths by blob and mode, its patch id, and what the coverage rule asks for.

Used by hooks at every commit of a session, so it starts git as seldom as possible.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from accord.core.provenance.coverage.recheck import CommittedFile
from accord.git import bridge_client
from accord.git.process import MAX_OUTPUT_BYTES, GitError, GitResult, OutputTooLargeError
from accord.git.repository import Commit, Repository, decode_git, error_from_result

RAW_OPTIONS = ("-r", "--raw", "-z", "--no-renames", "--no-abbrev", "--no-commit-id")
EMPTY_TREE_TYPE = "tree"
MAX_CHANGES = 500  # of a larger commit no coverage is recorded
MAX_CONTENT_BYTES = 256 << 10
MAX_PROBED_PATHS = 20
LINE_ENDING_PROBE = b"probe\r\n"
DIFF_OPTIONS = ("-p", "-U3", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
MERGE_OPTIONS = ("--diff-merges=first-parent",)
MAX_BATCH_BYTES = 16 << 20
MAX_BATCHES = 40


class Patch(NamedTuple):
    """The patch id and changed paths of a commit.

    The id is empty for a commit that changes nothing, or whose diff exceeds the output limit.
    """

    patch_id: str
    changes: tuple[CommittedFile, ...]

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(change.path for change in self.changes)


def changes_of_commit(repo: Repository, commit: Commit) -> tuple[CommittedFile, ...]:
    """All paths that differ from the first parent."""
    sides = (commit.parents[0], commit.sha) if commit.parents else ("--root", commit.sha)
    return parse_raw(repo.run_bytes("diff-tree", *RAW_OPTIONS, *sides))


def changes_in_index(repo: Repository, parent: str = "HEAD") -> tuple[CommittedFile, ...]:
    """All paths by which the commit that is being made will differ from this parent."""
    if not repo.resolve(parent):
        parent = repo.run_text("hash-object", "-t", EMPTY_TREE_TYPE, "--stdin")
    listed = repo.run("diff-index", "--cached", *RAW_OPTIONS[1:-1], parent, "--", index=True)
    if listed.code:
        raise GitError(listed.err)
    return parse_raw(listed.out)


def tree_of_index(repo: Repository) -> str:
    """The tree of the commit that is being made; empty if git cannot write it."""
    done = repo.run("write-tree", index=True)
    return "" if done.code else decode_git(done.out).strip()


def parse_raw(out: bytes) -> tuple[CommittedFile, ...]:
    """Parse git's raw diff format, separated by NUL."""
    words = decode_git(out).split("\0")
    return tuple(_parse_raw_rows(words))


def _parse_raw_rows(words: Sequence[str]) -> Iterator[CommittedFile]:
    for at in range(0, len(words) - 1, 2):
        yield parse_raw_row(words[at], words[at + 1])


def parse_raw_row(head: str, path: str) -> CommittedFile:
    """One row: `:100644 100644 <before> <after> M`, and the path."""
    old_mode, mode, before, after, _ = head.removeprefix(":").split(" ")
    return CommittedFile(
        path,
        before if before.strip("0") else "",
        after if after.strip("0") else "",
        old_mode if old_mode.strip("0") else "",
        mode if mode.strip("0") else "",
    )


def with_merge_result(
    repo: Repository, commit: Commit, files: Sequence[CommittedFile]
) -> tuple[CommittedFile, ...]:
    """The files of a merge commit, with those marked that an automatic merge would not yield."""
    if len(commit.parents) < 2:
        return tuple(files)
    by_hand = _paths_by_hand(repo, commit) if len(commit.parents) == 2 else None
    return tuple(file._replace(by_hand=by_hand is None or file.path in by_hand) for file in files)


def _paths_by_hand(repo: Repository, commit: Commit) -> frozenset[str] | None:
    """Paths where a merge commit differs from an automatic merge; None if git cannot tell."""
    merged = repo.run("merge-tree", "--write-tree", "--no-messages", *commit.parents)
    tree = decode_git(merged.out).partition("\n")[0]
    if merged.code not in (0, 1) or not tree:
        return None
    done = repo.run("diff-tree", *RAW_OPTIONS, tree, commit.sha)
    return None if done.code else frozenset(file.path for file in parse_raw(done.out))


def facts_for_server(files: Sequence[CommittedFile]) -> list[dict[str, Any]] | None:
    """The changes as the bridge takes them; None if there are too many."""
    if len(files) > MAX_CHANGES:
        return None
    return [_facts(file) for file in files]


def _facts(file: CommittedFile) -> dict[str, Any]:
    """The facts of one file; a path that is not UTF-8 gets no mode, so that nothing covers it."""
    escaped = file.path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    known = file if escaped == file.path else file._replace(path=escaped, mode="", old_mode="")
    return known._asdict()


def request_with_facts(
    repo: Repository,
    action: str,
    facts: Mapping[str, Any],
    files: Sequence[CommittedFile],
    timeout_s: float,
) -> dict[str, Any] | None:
    """The bridge's response to a request about a commit, sent again with what it needs.

    It may be a refusal. Both requests together take no longer than one may.
    """
    deadline = time.monotonic() + timeout_s
    response = bridge_client.request_or_error(action, os.environ, facts, timeout_s)
    needs = response.get("needs") if response else None
    if not isinstance(needs, dict):
        return response
    more = {**facts, **needed_facts(repo, needs, files)}
    left = max(deadline - time.monotonic(), 0.0)
    return bridge_client.request_or_error(action, os.environ, more, left)


def needed_facts(
    repo: Repository, needs: Mapping[str, Any], files: Sequence[CommittedFile]
) -> dict[str, Any]:
    """What the server asked for: contents before the commit, and what git converts."""
    by_path = {file.path: file for file in files}
    wanted = {
        path: by_path[path].before for path in _paths(needs.get("contents")) if path in by_path
    }
    probed = [path for path in _paths(needs.get("line_endings")) if path in by_path]
    return {
        "contents": dict(_contents(repo, wanted)),
        "line_endings": [
            path for path in probed[:MAX_PROBED_PATHS] if _converts_line_endings(repo, path)
        ],
        "final": True,
    }


def _contents(repo: Repository, blobs: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The texts of these blobs, as far as they fit into a request."""
    objects = repo.read_objects(set(blobs.values()))
    left = MAX_CONTENT_BYTES
    for path, blob in blobs.items():
        content = objects[blob].content if blob in objects else None
        left -= len(content or b"")
        if content is not None and left >= 0:
            with suppress(UnicodeDecodeError):  # no call can edit it
                yield path, content.decode()


def _converts_line_endings(repo: Repository, path: str) -> bool:
    """Whether git stores line feeds only, asked of git itself."""
    words = ("hash-object", "--stdin", f"--path={path}")
    stored = repo.run(*words, data=LINE_ENDING_PROBE)
    plain = repo.run(*words[:2], data=LINE_ENDING_PROBE.replace(b"\r\n", b"\n"))
    return stored.code == 0 and stored.out == plain.out


def _paths(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def work_tree_root(repo: Repository) -> str:
    """The directory of the work tree, which calls may name; empty in a bare repository."""
    return os.path.abspath(repo.directories.root) if repo.directories.root else ""  # noqa: PTH100 - hooks have no `pathlib`


def patch_of(repo: Repository, commit: Commit) -> Patch:
    """The patch of a commit; a merge is compared with its first parent."""
    sides = (commit.parents[0], commit.sha) if commit.parents else ("--root", commit.sha)
    try:
        diff = repo.run("diff-tree", "-r", "--no-commit-id", "--raw", *DIFF_OPTIONS, *sides)
    except OutputTooLargeError:
        return Patch("", changes_of_commit(repo, commit))
    rows, _, patch = diff.out.partition(b"\n\n")
    changes = tuple(
        parse_raw_row(*row.split("\t", 1)) for row in decode_git(rows).split("\n") if row
    )
    quoted = any(change.path.startswith('"') for change in changes)
    name = _patch_id(repo, diff._replace(out=patch))
    return Patch(name, changes_of_commit(repo, commit) if quoted else changes)


def _patch_id(repo: Repository, diff: GitResult) -> str:
    if diff.code or not diff.out:
        return ""
    return _run_patch_id(repo, diff.out).partition(" ")[0]


def _run_patch_id(repo: Repository, diff: bytes) -> str:
    """Run `git patch-id`; a git without `--verbatim` ignores whitespace."""
    done = repo.run("patch-id", "--verbatim", data=diff)
    return (
        repo.run_text("patch-id", "--stable", data=diff)
        if done.code
        else decode_git(done.out).rstrip("\n")
    )


def patch_ids_of(repo: Repository, shas: Iterable[str], *, merges: bool = False) -> dict[str, str]:
    """Patch ids of these commits; `merges` includes merges, compared with their first parent."""
    return _patch_ids_in_batches(repo, list(shas), *(MERGE_OPTIONS if merges else ()))


def patch_ids_since(repo: Repository, bases: Mapping[str, str]) -> dict[str, str]:
    """Patch ids of the whole difference between each commit and its base."""
    return _patch_ids_in_batches(repo, [f"{tip} {base}" for tip, base in bases.items()])


def _patch_ids_in_batches(repo: Repository, revisions: list[str], *options: str) -> dict[str, str]:
    """Compute patch ids in batches, halved if a diff is too large; only huge commits go without."""
    ids: dict[str, str] = {}
    batches = [revisions] if revisions else []
    for _ in range(MAX_BATCHES):
        if not batches:
            break
        batch = batches.pop()
        half = len(batch) // 2
        try:
            ids |= _patch_ids_of_batch(
                repo, batch, MAX_BATCH_BYTES if half else MAX_OUTPUT_BYTES, *options
            )
        except OutputTooLargeError:
            batches += [batch[half:], batch[:half]] if half else []
    return ids


def _patch_ids_of_batch(
    repo: Repository, revisions: list[str], max_bytes: int, *options: str
) -> dict[str, str]:
    done = _run_diff_tree(repo, revisions, max_bytes, *options)
    if options and done.code:  # git before 2.31 lacks `--diff-merges`
        done = _run_diff_tree(repo, revisions, max_bytes)
    if done.code:
        raise error_from_result(done)
    lines = _run_patch_id(repo, done.out).splitlines() if done.out else []
    return {sha: patch for patch, _, sha in (line.partition(" ") for line in lines)}


def _run_diff_tree(
    repo: Repository, revisions: Iterable[str], max_bytes: int, *options: str
) -> GitResult:
    lines = "".join(f"{revision}\n" for revision in revisions).encode()
    command = ("diff-tree", "-r", "--stdin", *DIFF_OPTIONS, "--root", *options)
    return repo.run(*command, data=lines, max_bytes=max_bytes)
