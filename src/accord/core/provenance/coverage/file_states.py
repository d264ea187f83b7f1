"""The contents that a changed file of a commit had or could have had."""

from collections.abc import Sequence
from hashlib import sha1, sha256
from typing import NamedTuple

from accord.core.provenance.coverage.recorded_run import Version
from accord.core.provenance.coverage.text_changes import with_line_feeds

REGULAR, EXECUTABLE = "100644", "100755"
FILE_MODES = (REGULAR, EXECUTABLE)
SHA1_LENGTH = 40
MAX_STATES = 16  # versions of one file that are followed at once


class ChangedFile(NamedTuple):
    """One changed path of a commit, by the ids and modes of its blobs; empty where there is none.

    `content` is that of the blob before, where it is known; `converts` is whether git stores line
    feeds for the line endings of the work tree; `by_hand` is whether a merge did not yield it.
    """

    path: str
    before: str = ""
    after: str = ""
    old_mode: str = ""
    mode: str = ""
    content: str | None = None
    converts: bool = False
    by_hand: bool = True


class ContentState(NamedTuple):
    """Content that a file had or could have had, and the runs that led to it.

    `version` is its blob and mode, where that does not follow from the content, which may be
    unknown then.
    """

    content: str | None
    runs: tuple[str, ...]
    version: Version | None = None
    is_known: bool = True


def first_states(file: ChangedFile) -> list[ContentState]:
    """The content before the commit."""
    if not file.before:
        return [ContentState(None, ())]
    is_known = (
        file.content is not None and blob_id(file.content.encode(), file.before) == file.before
    )
    content = file.content if is_known else None
    return [ContentState(content, (), (file.before, file.old_mode), is_known)]


def limited_states(states: list[ContentState]) -> list[ContentState]:
    """Without duplicates, and of too many the first and the newest."""
    unique = list({state._replace(runs=()): state for state in states}.values())
    return unique if len(unique) <= MAX_STATES else [unique[0], *unique[1 - MAX_STATES :]]


def committed_state(file: ChangedFile, states: Sequence[ContentState]) -> ContentState | None:
    """The state that was committed, if runs led to it and the mode is what they leave."""
    for state in states:
        if state.runs and version_of(state, file) == (file.after, file.mode):
            return state
    return None


def version_of(state: ContentState, file: ChangedFile) -> Version | None:
    """The blob and mode of a state; None if calls on files leave no such mode.

    They make no links and nothing executable.
    """
    if state.version is not None:
        return state.version
    if file.before and file.old_mode not in FILE_MODES:
        return None
    if state.content is None:
        return ("", "")
    return (_stored_id(state.content, file), file.old_mode if file.before else REGULAR)


def _stored_id(content: str, file: ChangedFile) -> str:
    stored = with_line_feeds(content) if file.converts else content
    return blob_id(stored.encode(), file.after or file.before)


def blob_id(content: bytes, like: str = "") -> str:
    """The id that git gives a blob, by the hash function of an id that is known."""
    data = b"blob %d\0%b" % (len(content), content)
    if len(like) <= SHA1_LENGTH:
        return sha1(data, usedforsecurity=False).hexdigest()
    return sha256(data).hexdigest()
