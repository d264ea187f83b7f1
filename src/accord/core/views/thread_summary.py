"""The summary of a thread: an extract that is the same for everyone, without a model (OPEN-131)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from accord.core.kernel.records import Record
from accord.core.kernel.redaction import redact
from accord.core.room.threads.state import MessageKind, Thread
from accord.core.room.threads.thread_findings import event_type_of
from accord.core.room.threads.thread_messages import ThreadMessage, author_of, text_of

MAX_QUOTES = 5
MAX_QUOTE_CHARS = 200
MAX_ITEM_CHARS = 500
MAX_COMMITS = 20
_commit_id = re.compile(r"[0-9a-fA-F]{4,64}", re.ASCII).fullmatch
ESCALATED = "It was escalated, and the escalation is unresolved."
CLOSING_EVENTS = ("finding_verified", "finding_rejected")


def summarize(thread: Thread, records: Sequence[Record]) -> str:
    """What these newest messages of a thread say, in a few sentences and quotes."""
    return "\n".join(summary_lines(thread, records))


def summary_lines(thread: Thread, records: Sequence[Record]) -> Iterator[str]:
    authors = Counter(author_of(record) for record in records)
    newest = (
        f", of which these are the last {len(records)}" if len(records) < thread.last_seq else ""
    )
    yield f"The thread is {thread.status} and has {count(thread.last_seq, 'message')}{newest}."
    if authors:
        said = ", ".join(f"{name} ({number})" for name, number in sorted(authors.items()))
        yield f"Authors: {said}."
    yield from finding_lines(thread, records)
    if thread.escalated:
        yield ESCALATED
    yield from quotes(records)


def finding_lines(thread: Thread, records: Sequence[Record]) -> Iterator[str]:
    """Findings, who closed how many, and the commits that were named as fixes."""
    metadata = [event.metadata or {} for event in map(event_of, records) if is_event(event)]
    kinds = Counter(map(event_type_of, metadata))
    closed = sum(kinds[name] for name in CLOSING_EVENTS)
    if kinds["finding_reported"] or thread.findings:
        verdicts = count(closed, "verdict")
        reported = count(kinds["finding_reported"], "finding")
        yield f"{reported} reported, {verdicts} given, {len(thread.findings)} open."
    commits = dict.fromkeys(commit for each in metadata for commit in commits_in(each))
    if commits:
        yield f"Fixes: {', '.join(list(commits)[-MAX_COMMITS:])}."


def quotes(records: Sequence[Record]) -> Iterator[str]:
    """The newest messages, each with its sender."""
    said = [record for record in records if event_of(record).kind is MessageKind.CHAT]
    for record in said[-MAX_QUOTES:]:
        yield f"{author_of(record)} wrote: {excerpt(text_of(event_of(record)), MAX_QUOTE_CHARS)!r}"


def commits_in(metadata: dict[str, Any]) -> Iterator[str]:
    """The commit that a `fix_pushed` names; any other text could pass for a line of ours."""
    commit = metadata.get("commit")
    is_id = isinstance(commit, str) and _commit_id(commit) is not None
    if is_id and event_type_of(metadata) == "fix_pushed":
        yield str(commit)


def event_of(record: Record) -> ThreadMessage:
    """The message in a record of a thread, which has no other records after its first."""
    assert isinstance(record.event, ThreadMessage)  # noqa: S101 - for the type checker
    return record.event


def is_event(event: ThreadMessage) -> bool:
    return event.kind is MessageKind.EVENT


def excerpt(text: str, most: int) -> str:
    """The beginning of a text, without secrets (UNI-29)."""
    clean = redact(text)
    return clean if len(clean) <= most else f"{clean[: most - 1]}…"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
