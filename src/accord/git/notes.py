"""Notes on commits in `refs/notes/pvp`: JSON, merged and never concatenated (OPEN-74)."""

import json
from collections.abc import Iterable, Iterator

from accord.core.provenance.note import Note, merged, read, write
from accord.core.provenance.sizing import MOST_BYTES, fitted

from .history import History, text
from .ledger import NOTES


def exist(repo: History) -> bool:
    """Whether this repository has notes of ours."""
    return repo.run("rev-parse", "--verify", "--quiet", NOTES).code == 0


def raw(repo: History, shas: Iterable[str]) -> dict[str, bytes]:
    """The notes of these commits as they are stored, where there are any."""
    wanted = set(shas)
    if len(wanted) == 1:
        (sha,) = wanted
        found = repo.run("notes", f"--ref={NOTES}", "show", sha)
        return {} if found.code else {sha: found.out}
    listed = repo.run("notes", f"--ref={NOTES}", "list")
    rows = (row.split(" ") for row in text(listed.out).splitlines())
    blobs = {row[1]: row[0] for row in rows if len(row) == 2 and row[1] in wanted}
    contents = repo.objects(set(blobs.values()))
    return {sha: contents[blob] for sha, blob in blobs.items() if blob in contents}


def of(repo: History, shas: Iterable[str]) -> dict[str, Note]:
    """The notes of these commits, where there are any."""
    return {sha: parsed(text(found)) for sha, found in raw(repo, shas).items()}


def parsed(found: str) -> Note:
    """A note; several that git has put one behind the other are one again."""
    return merged(*(read(part) for part in _parts(found)))


def _parts(found: str) -> Iterator[str]:
    """The JSON values in a text; anything else is one part."""
    decoder, place, rest = json.JSONDecoder(), 0, found.strip()
    ends: list[str] = []
    try:
        while place < len(rest):
            _, end = decoder.raw_decode(rest, place)
            ends.append(rest[place:end])
            place = end + len(rest[end:]) - len(rest[end:].lstrip())
    except (ValueError, RecursionError):
        yield found
        return
    yield from ends


def stored(*notes: Note) -> bytes:
    """The bytes of one note that says what all of them say, within the limit."""
    return write(fitted(merged(*notes), MOST_BYTES)).encode()
