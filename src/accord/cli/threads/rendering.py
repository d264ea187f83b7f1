"""Threads and their messages on the terminal; a body is always behind the margin of a card."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from msgspec import UNSET

from accord.api.home import Question
from accord.api.threads import MessageItem, OpenItem, ThreadDetail, ThreadSummary, TriggerResult
from accord.core.room.threads.state import MessageKind
from accord.show import style
from accord.show.card import Card
from accord.show.output import print_table
from accord.show.text import join_words, local_time, one_line, plural, wrap

NO_THREADS = (
    "You are not in any thread yet. To start one:\n"
    '  accord thread create "What it is about" --with WHO'
)
QUESTIONS = {
    "addressed": "{by} waits for your answer",
    "finding_open": "{by} reported a finding that has no fix",
    "finding_fixed": "a fix of {by}'s finding waits for your verdict",
}
WAKE_RESULTS = {
    "delivered": "was woken",
    "deferred": "will be woken later",
    "fallback_used": "was woken by the fallback",
    "skipped": "was not woken",
    "failed": "could not be woken",
}


def question_line(question: Question) -> str:
    """One line for what waits for the reader."""
    what = QUESTIONS[question.kind].format(by=one_line(question.by))
    task = f" ({one_line(question.task_id)})" if question.task_id else ""
    where = f"{question.thread}, message {question.seq}"
    return f"{where}: {what}{task}, in “{one_line(question.title)}”"


def print_threads(threads: Iterable[ThreadDetail]) -> None:
    """One line for each thread."""
    rows = (
        (
            *(each.thread_id, str(each.unread or ""), each.status, each.title),
            *(", ".join(each.participants), moment(each.updated_at)),
        )
        for each in threads
    )
    print_table(("THREAD", "UNREAD", "STATUS", "TITLE", "WITH", "CHANGED"), rows)


def thread_head(thread: ThreadDetail) -> Iterator[str]:
    """Title, status and participants."""
    yield from map(style.bold, wrap(one_line(thread.title)))
    who = join_words(map(one_line, thread.participants))
    begun = f"begun by {one_line(thread.created_by)}"
    yield from wrap(f"{thread.thread_id}, {thread.status}; {begun}, with {who}", "  ")


def nothing_after(thread: ThreadDetail, since: int) -> str:
    """Why no message was printed."""
    if not thread.last_seq:
        return "No message yet."
    if since and since == thread.last_read_seq:
        return f"Nothing new since message {since}; --all shows the thread from its beginning."
    return f"There is no message after {since}; the newest is {thread.last_seq}."


def message_card(message: MessageItem) -> Iterator[str]:
    """Who said it, by which kind of identity, and the words behind a margin."""
    system = message.kind is MessageKind.SYSTEM
    card = Card(style.dim if system else style.cyan)
    yield from card.line(
        f"Message {message.seq} from {sender_of(message)}, {moment(message.created_at)}"
    )
    if addressed := addressees(message):
        yield from card.line(f"to {addressed}")
    if event := event_of(message):
        yield from card.line(event)
    yield from card.prose(message.body)
    if isinstance(message.delivery, dict) and message.delivery:
        reached = (f"{one_line(who)} {state}" for who, state in sorted(message.delivery.items()))
        yield from card.line(", ".join(reached), style.dim)
    yield from card.line(message.message_id, style.dim)


def sender_of(message: MessageItem) -> str:
    """The sender's id and kind; the server vouches for both unless it says otherwise."""
    doubt = "" if message.sender_verified else ", not verified"
    return f"{one_line(message.sender_agent_id)} ({message.sender_kind}{doubt})"


def addressees(message: MessageItem) -> str:
    """Those whom the message addresses; empty if it is for all."""
    to = None if message.metadata is UNSET else message.metadata.get("to")
    names = [each for each in to if isinstance(each, str)] if isinstance(to, list) else []
    return join_words(map(one_line, names)) if names else ""


def event_of(message: MessageItem) -> str:
    """The type of an event and what it is about."""
    if message.kind is not MessageKind.EVENT or message.metadata is UNSET:
        return ""
    parts = (message.metadata.get(name) for name in ("event_type", "severity", "task_id"))
    return ", ".join(one_line(part) for part in parts if isinstance(part, str) and part)


def summary_lines(found: ThreadSummary) -> Iterator[str]:
    """The summary, then the findings that are open."""
    card = Card(style.dim)
    yield from ("", *card.prose(found.summary), "")
    if not found.open_items:
        yield style.green("No finding is open.")
        return
    yield f"{plural(len(found.open_items), 'open finding')}:"
    for item in found.open_items:
        yield from ("", *finding_card(item))


def finding_card(item: OpenItem) -> Iterator[str]:
    """A finding, with the words of its reporter behind a margin."""
    card = Card(style.yellow)
    parts = [part for part in (item.severity, item.task_id) if isinstance(part, str)]
    about = ", ".join(["finding", *parts])
    yield from card.line(f"Message {item.seq}: {about}, reported by {item.reported_by}")
    yield from card.prose(item.text)


def wake_lines(done: TriggerResult) -> Iterator[str]:
    """What a wake did, and why not more."""
    sentence = f"{one_line(done.target_agent_id)} {WAKE_RESULTS[done.result]}"
    reason = f": {one_line(done.defer_reason)}" if done.defer_reason else ""
    until = f", at {moment(done.deferred_until)} at the latest" if done.deferred_until else ""
    yield from wrap(f"{sentence}{reason}{until}.")


def moment(ts: str) -> str:
    """The time of day, with the date if that is another day."""
    when = local_time(ts)
    today = when.date() == datetime.now().astimezone().date()
    return f"{when:%H:%M}" if today else f"{when:%Y-%m-%d %H:%M}"
