"""Talk with people and agents in threads.

A thread is a list of messages with verified senders. What you have read is kept by your cursor,
which `ack` moves; `read` alone moves nothing. The id of a thread may be cut to the beginning
that no other thread of yours has.

Examples:
  accord thread create "Review the parser" --with codex --with bob
  accord thread list --unread
  accord thread read th_01JZ0Q6Y5W3V8T2N4M6K8H0F2D --ack
  accord thread post th_01JZ0Q6Y5W3V8T2N4M6K8H0F2D "Please look at the tests" --to codex
  git diff | accord thread post th_01JZ0Q6Y5W3V8T2N4M6K8H0F2D -
  accord thread ack th_01JZ0Q6Y5W3V8T2N4M6K8H0F2D
  accord thread status th_01JZ0Q6Y5W3V8T2N4M6K8H0F2D resolved --reason "merged"
  accord thread summary th_01JZ0Q6Y5W3V8T2N4M6K8H0F2D
  accord thread add th_01JZ0Q6Y5W3V8T2N4M6K8H0F2D gemini
  accord thread wake th_01JZ0Q6Y5W3V8T2N4M6K8H0F2D codex --reason "tests are red"
"""

import argparse
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from accord.cli import connection
from accord.cli.parsing import BoundedInt, non_empty

if TYPE_CHECKING:
    from accord.client import Client

TYPES = ("conversation", "workflow", "incident")
STATUSES = ("active", "blocked", "resolved", "closed")
MAX_SINCE = 1 << 53


def arguments(parser: argparse.ArgumentParser) -> None:
    """One parser for each verb."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="|".join(VERBS))
    create = verbs.add_parser("create", help="create a thread, and print its id")
    create.add_argument("title", type=non_empty, help="what it is about")
    create.add_argument(
        "--with",
        dest="participants",
        metavar="WHO",
        action="append",
        default=[],
        help="a person or agent who takes part; repeat it for more",
    )
    create.add_argument("--type", choices=TYPES, default=TYPES[0], help="default: %(default)s")
    listing = verbs.add_parser("list", help="your threads, most recently changed first")
    listing.add_argument("--status", choices=STATUSES, help="only those with this status")
    listing.add_argument("--unread", action="store_true", help="only those you have not read")
    read = _on_thread(verbs, "read", "print messages; by default those you have not acknowledged")
    read.add_argument(
        "--since", type=BoundedInt(0, MAX_SINCE), metavar="SEQ", help="those after this number"
    )
    read.add_argument("--all", action="store_true", help="from the first message on")
    read.add_argument("--ack", action="store_true", help="acknowledge what was printed")
    post = _on_thread(verbs, "post", "post a message")
    post.add_argument("body", type=non_empty, help="the text; - reads standard input")
    post.add_argument(
        "--to", metavar="WHO", action="append", default=[], help="addressee; may be repeated"
    )
    post.add_argument("--reply-to", metavar="MESSAGE", help="the id of the message it answers")
    post.add_argument("--event", metavar="TYPE", help="post an event of this type")
    post.add_argument("--task", metavar="ID", help="the task or finding that an event is about")
    post.add_argument("--severity", help="severity of a reported finding")
    ack = _on_thread(verbs, "ack", "acknowledge what you have read")
    ack.add_argument(
        "--seq", type=BoundedInt(0, MAX_SINCE), help="up to this number (default: the newest)"
    )
    status = _on_thread(verbs, "status", "change the status of a thread")
    status.add_argument("status", choices=STATUSES, help="the new status")
    status.add_argument("--reason", default="", help="why, for the record")
    status.add_argument("--force", action="store_true", help="as an operator, against the rules")
    _on_thread(verbs, "summary", "what happened lately, and which findings are open")
    add = _on_thread(verbs, "add", "add participants")
    add.add_argument("who", metavar="WHO", nargs="+", help="a person or an agent")
    wake = _on_thread(verbs, "wake", "wake a participant that has unread messages")
    wake.add_argument("who", metavar="WHO", help="the agent")
    wake.add_argument("--reason", default="", help="why, for the record")
    wake.add_argument("--prompt", default="", help="text for the agent, which gets it quoted")
    wake.add_argument("--force", action="store_true", help="as an operator, despite the cool-down")
    for verb in (create, listing, read, post, ack, status, add, wake, verbs.choices["summary"]):
        connection.arguments(verb)


def _on_thread(verbs: Any, name: str, summary: str) -> argparse.ArgumentParser:
    verb: argparse.ArgumentParser = verbs.add_parser(name, help=summary)
    verb.add_argument("thread", metavar="THREAD", help="its id, or the beginning of it")
    return verb


def run(args: argparse.Namespace) -> int:
    import asyncio

    asyncio.run(VERBS[args.verb](connection.client_for(args), args))
    return 0


async def create_thread(client: "Client", args: argparse.Namespace) -> None:
    """Print the id, which scripts use."""
    from accord.show.output import print_json

    made = await client.threads.create(args.title, args.participants or [client.id], type=args.type)
    if args.json:
        print_json(made)
    else:
        print(made.thread_id)


async def list_threads(client: "Client", args: argparse.Namespace) -> None:
    """A table, or how to make the first thread."""
    from accord.cli.threads import rendering
    from accord.show.output import print_json

    found = await client.threads.list(status=args.status, unread_only=args.unread)
    if args.json:
        print_json({"threads": found})
    elif found:
        rendering.print_threads(found)
    else:
        filtered = args.unread or args.status
        print("No such thread." if filtered else rendering.NO_THREADS)


async def read_thread(client: "Client", args: argparse.Namespace) -> None:
    """Print messages page by page, so that the first appear before the last are read."""
    from accord.cli.threads import rendering
    from accord.cli.threads.lookup import find_thread
    from accord.show.output import print_json

    thread = await find_thread(client, args.thread)
    since = 0 if args.all else thread.last_read_seq if args.since is None else args.since
    printed = since
    if not args.json:
        print("\n".join(rendering.thread_head(thread)))
    async for message in client.threads.history(thread.thread_id, since):
        printed = message.seq
        if args.json:
            print_json(message)
        else:
            print("\n".join(("", *rendering.message_card(message))))
    if not args.json and printed == since:
        print(rendering.nothing_after(thread, since))
    # Acknowledge only what was shown and no gap below it.
    if args.ack and printed > thread.last_read_seq >= since:
        await client.threads.acknowledge(thread.thread_id, printed)


async def post_message(client: "Client", args: argparse.Namespace) -> None:
    """Print what was stored."""
    from accord.cli.threads.lookup import find_thread
    from accord.show.output import print_json

    thread = await find_thread(client, args.thread)
    metadata: dict[str, Any] = {
        name: value
        for name, value in (
            ("to", args.to),
            ("event_type", args.event),
            ("task_id", args.task),
            ("severity", args.severity),
        )
        if value
    }
    posted = await client.threads.post(
        thread.thread_id,
        read_body(args.body),
        kind="event" if args.event else "chat",
        metadata=metadata or None,
        reply_to=args.reply_to,
    )
    if args.json:
        print_json(posted)
    else:
        print(f"Posted as message {posted.seq} ({posted.message_id})")


def read_body(text: str) -> str:
    """The text itself, or standard input for `-`; refuses more than a message may hold."""
    if text != "-":
        return text
    import sys

    from accord.api.threads import MAX_BODY_CHARS
    from accord.core.kernel.refusal import Reason, Refused

    body = sys.stdin.read(MAX_BODY_CHARS + 1)
    if not body.strip():
        raise Refused(Reason.MALFORMED, "Standard input is empty; a message needs a text")
    if len(body) > MAX_BODY_CHARS:
        raise Refused(
            Reason.MALFORMED,
            f"The text is longer than {MAX_BODY_CHARS} characters; post a part, or a link to it",
        )
    return body


async def acknowledge(client: "Client", args: argparse.Namespace) -> None:
    """Say where the cursor is now."""
    from accord.cli.threads.lookup import find_thread
    from accord.show.output import print_json

    thread = await find_thread(client, args.thread)
    seq = thread.last_seq if args.seq is None else args.seq
    done = await client.threads.acknowledge(thread.thread_id, seq)
    if args.json:
        print_json({"thread_id": thread.thread_id, "last_read_seq": seq, **_builtins(done)})
    else:
        print(f"Acknowledged up to message {max(seq, thread.last_read_seq)}")


async def set_status(client: "Client", args: argparse.Namespace) -> None:
    """Say what the status is now."""
    from accord.cli.threads.lookup import find_thread
    from accord.show.output import print_json

    thread = await find_thread(client, args.thread)
    done = await client.threads.set_status(
        thread.thread_id, args.status, reason=args.reason, force=args.force
    )
    if args.json:
        print_json(done)
    else:
        print(f"The thread was {thread.status} and is {done.status} now")


async def summarize(client: "Client", args: argparse.Namespace) -> None:
    """Print the summary and the open findings."""
    from accord.cli.threads import rendering
    from accord.cli.threads.lookup import find_thread
    from accord.show.output import print_json

    thread = await find_thread(client, args.thread)
    found = await client.threads.summary(thread.thread_id)
    if args.json:
        print_json(found)
    else:
        print("\n".join((*rendering.thread_head(thread), *rendering.summary_lines(found))))


async def add_participants(client: "Client", args: argparse.Namespace) -> None:
    """Say who takes part now."""
    from accord.cli.threads.lookup import find_thread
    from accord.show.output import print_json
    from accord.show.text import join_words, one_line

    thread = await find_thread(client, args.thread)
    done = await client.threads.add(thread.thread_id, args.who)
    if args.json:
        print_json(done)
    else:
        print(f"Taking part now: {join_words(map(one_line, done.participants))}")


async def wake(client: "Client", args: argparse.Namespace) -> None:
    """Say what the wake did."""
    from accord.cli.threads import rendering
    from accord.cli.threads.lookup import find_thread
    from accord.show.output import print_json

    thread = await find_thread(client, args.thread)
    done = await client.threads.wake(
        thread.thread_id, args.who, reason=args.reason, prompt=args.prompt, force=args.force
    )
    if args.json:
        print_json(done)
    else:
        print("\n".join(rendering.wake_lines(done)))


def _builtins(value: Any) -> dict[str, Any]:
    import msgspec

    found: dict[str, Any] = msgspec.to_builtins(value)
    return found


VERBS: dict[str, Callable[["Client", argparse.Namespace], Coroutine[Any, Any, None]]] = {
    "create": create_thread,
    "list": list_threads,
    "read": read_thread,
    "post": post_message,
    "ack": acknowledge,
    "status": set_status,
    "summary": summarize,
    "add": add_participants,
    "wake": wake,
}
