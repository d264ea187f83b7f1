"""Notes on commits in `refs/notes/pvp`: JSON, merged and never concatenated (OPEN-74)."""

import json
from collections.abc import Collection, Iterator

from accord.core.provenance.note import Note, merged, read, write
from accord.core.provenance.sizing import MOST_BYTES, fitted

from .ledger import look
from .repository import Repository, text


def of(repo: Repository, shas: Collection[str]) -> dict[str, Note]:
    """The notes of these commits, where there are any."""
    return {sha: parsed(text(found)) for sha, found in look(repo, shas=shas).notes.items()}


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
