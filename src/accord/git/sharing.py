"""Notes and decisions to a remote and back; only when somebody asks for it (OPEN-74)."""

import re
from typing import NamedTuple

from accord.core.kernel.refusal import Refused

from . import decisions, notes
from .ledger import DECISIONS, NOTES, Change, save, tips
from .process import Done, GitError
from .repository import Repository, refusal, text

DEFAULT = "origin"
PATIENCE_S = 120.0
TRIES = 5
WHO = ("-c", "user.name=Accord", "-c", "user.email=accord@localhost")
_path = re.compile(r"by-(?:id|patch|commit)/[A-Za-z0-9_-]{2}/[A-Za-z0-9_.-]{8,110}").fullmatch


class Shared(NamedTuple):
    """What came and what went, by ref."""

    remote: str
    came: tuple[str, ...]
    went: tuple[str, ...] = ()


def fetch(repo: Repository, remote: str) -> Shared:
    """Bring the remote's notes and decisions here; both sides' words stay."""
    came = []
    for ref in (NOTES, DECISIONS):
        if tip := _fetched(repo, remote, ref):
            MERGES[ref](repo, tip)
            came.append(ref)
    return Shared(remote, tuple(came))


def unfetched(repo: Repository) -> str | None:
    """What brings records here, where there are none and a remote may have some."""
    if any(tips(repo).values()):
        return None
    remotes = repo.ask("remote").split()
    if not remotes:
        return None
    which = "" if DEFAULT in remotes else f" {remotes[0]}"
    return f"`accord git fetch{which}` brings what others have shared"


def share(repo: Repository, remote: str) -> Shared:
    """Send ours, merged with what the remote has by then."""
    said = ""
    for _ in range(TRIES):
        got = fetch(repo, remote)
        ours = [ref for ref in (NOTES, DECISIONS) if repo.resolve(ref)]
        if not ours:
            return got
        moves = (f"{ref}:{ref}" for ref in ours)
        done = _away(repo, "push", "--quiet", "--", remote, *moves)
        if done.code == 0:
            return got._replace(went=tuple(ours))
        said = done.err
        if "rejected" not in said and "cannot lock" not in said:
            break
    raise GitError(said)


def _fetched(repo: Repository, remote: str, ref: str) -> str | None:
    listed = _away(repo, "ls-remote", "--", remote, ref)
    if listed.code:
        raise refusal(listed)
    if not listed.out.strip():
        return None
    here = f"refs/accord/fetched/{ref.rpartition('/')[2]}"
    words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head")
    done = _away(repo, *words, "--", remote, f"+{ref}:{here}")
    if done.code:
        raise refusal(done)
    return repo.resolve(here)


def _away(repo: Repository, *words: str) -> Done:
    """With the remote, which may ask somebody for a password."""
    return repo.run(*words, patience=PATIENCE_S, prompt=True)


def _forward(repo: Repository, ref: str, tip: str) -> bool:
    """Whether one side already has all of the other."""
    ours = repo.resolve(ref)
    if ours and repo.run("merge-base", "--is-ancestor", tip, ours).code == 0:
        return True
    behind = not ours or repo.run("merge-base", "--is-ancestor", ours, tip).code == 0
    moved = ("update-ref", "-m", "accord git fetch", ref, tip, ours or "0" * len(tip))
    return behind and repo.run(*moved).code == 0


def _merge_notes(repo: Repository, tip: str) -> None:
    """Git joins the two trees; where both have a note, JSON is merged, not put in a row."""
    if _forward(repo, NOTES, tip):
        return
    ours, theirs = _noted(repo, NOTES), _noted(repo, tip)
    both = {sha for sha, blob in ours.items() if theirs.get(sha, blob) != blob}
    repo.raw(*WHO, "notes", f"--ref={NOTES}", "merge", "--quiet", "--strategy=union", tip)
    there = {sha for sha in both if repo.resolve(sha)}
    if there:
        found = repo.objects({*(ours[sha] for sha in there), *(theirs[sha] for sha in there)})
        sides = {sha: (found[ours[sha]].content, found[theirs[sha]].content) for sha in there}
        told = {sha: _joint(*each) for sha, each in sides.items()}
        save(repo, lambda: Change(tips(repo), told, {}))


def _joint(ours: bytes, theirs: bytes) -> bytes:
    """Both notes as one; one of a later version is left alone, and our own ref has the rest."""
    later = next((each for each in (ours, theirs) if _later(each)), None)
    return later or notes.stored(*(notes.parsed(text(each)) for each in (ours, theirs)))


def _later(content: bytes) -> bool:
    try:
        notes.parsed(text(content))
    except Refused:
        return True
    return False


def _noted(repo: Repository, ref: str) -> dict[str, str]:
    return {path.replace("/", ""): blob for path, blob in _tree(repo, ref).items()}


def _merge_decisions(repo: Repository, tip: str) -> None:
    if not _forward(repo, DECISIONS, tip):
        save(repo, lambda: _union(repo, tip))


def _union(repo: Repository, tip: str) -> Change:
    """Paths of both; the same path on both sides holds what either says."""
    before = tips(repo)
    ours, theirs = _tree(repo, DECISIONS), _tree(repo, tip)
    new = {path: blob for path, blob in theirs.items() if _path(path) and ours.get(path) != blob}
    found = repo.objects({*new.values(), *(ours[path] for path in new if path in ours)})
    contents = {name: each.content for name, each in found.items()}
    files = {
        path: _both(path, contents.get(ours.get(path, ""), b""), contents.get(blob, b""))
        for path, blob in new.items()
    }
    return Change(before, {}, files, merged=tip)


def _both(path: str, one: bytes, other: bytes) -> bytes:
    if path.startswith("by-id/"):
        if _later(one) or _later(other):  # what a stranger sends takes no record's place
            return one or other
        return notes.stored(*(notes.parsed(text(each)) for each in (one, other) if each))
    return decisions.listed(decisions.ids_in(one) | decisions.ids_in(other))


def _tree(repo: Repository, ref: str) -> dict[str, str]:
    listed = repo.maybe("ls-tree", "-r", "-z", ref) or ""
    rows = (entry.partition("\t") for entry in listed.split("\0") if entry)
    return {path: head.split()[2] for head, _, path in rows}


MERGES = {NOTES: _merge_notes, DECISIONS: _merge_decisions}
