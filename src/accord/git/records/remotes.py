"""Exchange notes and decisions with a remote; only on explicit request (OPEN-74)."""

import re
from typing import NamedTuple

from accord.core.kernel.refusal import Refused
from accord.git.process import GitError, GitResult
from accord.git.records import decisions_ref
from accord.git.records.record_refs import (
    DECISIONS_REF,
    NOTES_REF,
    RefChange,
    read_tips,
    write_refs,
)
from accord.git.repository import Repository, decode_git, error_from_result

DEFAULT_REMOTE = "origin"
REMOTE_TIMEOUT_S = 120.0
MAX_PUSH_ATTEMPTS = 5
IDENTITY_OPTIONS = ("-c", "user.name=Accord", "-c", "user.email=accord@localhost")
_match_record_path = re.compile(
    r"by-(?:id|patch|commit)/[A-Za-z0-9_-]{2}/[A-Za-z0-9_.-]{8,110}"
).fullmatch


class RemoteSync(NamedTuple):
    """The refs that were fetched and pushed."""

    remote: str
    fetched: tuple[str, ...]
    pushed: tuple[str, ...] = ()


def fetch_records(repo: Repository, remote: str) -> RemoteSync:
    """Fetch the remote's notes and decisions and merge them with the local ones."""
    fetched = []
    for ref in (NOTES_REF, DECISIONS_REF):
        if tip := _fetch_ref(repo, remote, ref):
            MERGE_BY_REF[ref](repo, tip)
            fetched.append(ref)
    return RemoteSync(remote, tuple(fetched))


def fetch_hint(repo: Repository) -> str | None:
    """A hint to fetch records, if there are none here and a remote may have some."""
    if any(read_tips(repo).values()):
        return None
    remotes = repo.run_text("remote").split()
    if not remotes:
        return None
    which = "" if DEFAULT_REMOTE in remotes else f" {remotes[0]}"
    return f"`accord git fetch{which}` fetches the records that others have pushed"


def push_records(repo: Repository, remote: str) -> RemoteSync:
    """Push records after merging the remote's; retried if the remote changes meanwhile."""
    error = ""
    for _ in range(MAX_PUSH_ATTEMPTS):
        result = fetch_records(repo, remote)
        ours = [ref for ref in (NOTES_REF, DECISIONS_REF) if repo.resolve(ref)]
        if not ours:
            return result
        refspecs = (f"{ref}:{ref}" for ref in ours)
        pushed = _run_with_remote(repo, "push", "--quiet", "--", remote, *refspecs)
        if pushed.code == 0:
            return result._replace(pushed=tuple(ours))
        error = pushed.err
        if "rejected" not in error and "cannot lock" not in error:
            break
    raise GitError(error)


def _fetch_ref(repo: Repository, remote: str, ref: str) -> str | None:
    listed = _run_with_remote(repo, "ls-remote", "--", remote, ref)
    if listed.code:
        raise error_from_result(listed)
    if not listed.out.strip():
        return None
    local_ref = f"refs/accord/fetched/{ref.rpartition('/')[2]}"
    words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head")
    done = _run_with_remote(repo, *words, "--", remote, f"+{ref}:{local_ref}")
    if done.code:
        raise error_from_result(done)
    return repo.resolve(local_ref)


def _run_with_remote(repo: Repository, *words: str) -> GitResult:
    """Run a git command that contacts a remote and may prompt for a password."""
    return repo.run(*words, timeout_s=REMOTE_TIMEOUT_S, prompt=True)


def _fast_forward(repo: Repository, ref: str, tip: str) -> bool:
    """Fast-forward if possible; whether the ref now contains the fetched tip."""
    ours = repo.resolve(ref)
    if ours and repo.run("merge-base", "--is-ancestor", tip, ours).code == 0:
        return True
    behind = not ours or repo.run("merge-base", "--is-ancestor", ours, tip).code == 0
    moved = ("update-ref", "-m", "accord git fetch", ref, tip, ours or "0" * len(tip))
    return behind and repo.run(*moved).code == 0


def _merge_notes(repo: Repository, tip: str) -> None:
    """Merge fetched notes; where both sides have one, the JSON is merged."""
    if _fast_forward(repo, NOTES_REF, tip):
        return
    ours, theirs = _note_blobs(repo, NOTES_REF), _note_blobs(repo, tip)
    conflicting = {sha for sha, blob in ours.items() if theirs.get(sha, blob) != blob}
    repo.run_bytes(
        *IDENTITY_OPTIONS,
        "notes",
        f"--ref={NOTES_REF}",
        "merge",
        "--quiet",
        "--strategy=union",
        tip,
    )
    resolvable = {sha for sha in conflicting if repo.resolve(sha)}
    if resolvable:
        objects = repo.read_objects(
            {*(ours[sha] for sha in resolvable), *(theirs[sha] for sha in resolvable)}
        )
        sides = {
            sha: (objects[ours[sha]].content, objects[theirs[sha]].content) for sha in resolvable
        }
        merged = {sha: _merge_note_bytes(*contents) for sha, contents in sides.items()}
        write_refs(repo, lambda: RefChange(read_tips(repo), merged, {}))


def _merge_note_bytes(ours: bytes, theirs: bytes) -> bytes:
    """Merge two notes; one from a later version wins, and the decisions ref keeps the other."""
    newer = next((content for content in (ours, theirs) if _is_newer_version(content)), None)
    return newer or decisions_ref.encode_note(
        *(decisions_ref.parse_notes(decode_git(content)) for content in (ours, theirs))
    )


def _is_newer_version(content: bytes) -> bool:
    try:
        decisions_ref.parse_notes(decode_git(content))
    except Refused:
        return True
    return False


def _note_blobs(repo: Repository, ref: str) -> dict[str, str]:
    return {path.replace("/", ""): blob for path, blob in _list_tree(repo, ref).items()}


def _merge_decisions(repo: Repository, tip: str) -> None:
    if not _fast_forward(repo, DECISIONS_REF, tip):
        write_refs(repo, lambda: _merge_decision_trees(repo, tip))


def _merge_decision_trees(repo: Repository, tip: str) -> RefChange:
    """A change that adds the fetched files; a file on both sides is merged."""
    before = read_tips(repo)
    ours, theirs = _list_tree(repo, DECISIONS_REF), _list_tree(repo, tip)
    new = {
        path: blob
        for path, blob in theirs.items()
        if _match_record_path(path) and ours.get(path) != blob
    }
    objects = repo.read_objects({*new.values(), *(ours[path] for path in new if path in ours)})
    contents = {name: object_.content for name, object_ in objects.items()}
    files = {
        path: _merge_file(path, contents.get(ours.get(path, ""), b""), contents.get(blob, b""))
        for path, blob in new.items()
    }
    return RefChange(before, {}, files, merged_tip=tip)


def _merge_file(path: str, ours: bytes, theirs: bytes) -> bytes:
    if path.startswith("by-id/"):
        # A fetched record that cannot be read must not replace one of ours.
        if _is_newer_version(ours) or _is_newer_version(theirs):
            return ours or theirs
        return decisions_ref.encode_note(
            *(
                decisions_ref.parse_notes(decode_git(content))
                for content in (ours, theirs)
                if content
            )
        )
    return decisions_ref.encode_ids(decisions_ref.parse_ids(ours) | decisions_ref.parse_ids(theirs))


def _list_tree(repo: Repository, ref: str) -> dict[str, str]:
    listed = repo.try_text("ls-tree", "-r", "-z", ref) or ""
    rows = (entry.partition("\t") for entry in listed.split("\0") if entry)
    return {path: head.split()[2] for head, _, path in rows}


MERGE_BY_REF = {NOTES_REF: _merge_notes, DECISIONS_REF: _merge_decisions}
