"""`accord inbox --watch`: prints messages of the caller's threads as they arrive."""

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from accord.api.threads import ThreadDetail
from accord.cli.follow_stream import keep_following
from accord.cli.threads import rendering
from accord.show import style
from accord.show.output import print_json

if TYPE_CHECKING:
    from accord.client import Client

NOTHING_YET = "Nothing unread; new messages appear here. Ctrl-C stops."


async def watch(client: "Client", args: argparse.Namespace) -> None:
    """Print what is unread, then each message once; reconnects after each loss."""
    # A file or a program that collects messages is not a person who has seen them.
    inbox = InboxPrinter(client, raw=args.json, peek=not (args.seen or sys.stdout.isatty()))

    async def follow_threads(on_heard: Callable[[], None]) -> None:
        async for changed in client.threads.changes():
            on_heard()
            if not changed:
                inbox.say_nothing_yet()
            for thread in changed:
                await inbox.print_new(thread)

    await keep_following(client.url, follow_threads)


class InboxPrinter:
    """Prints each message once, under the title of its thread."""

    def __init__(self, client: "Client", *, raw: bool, peek: bool) -> None:
        self._client = client
        self._peek = peek
        self._raw = raw
        self._printed: dict[str, int] = {}
        self._title_shown = ""

    def say_nothing_yet(self) -> None:
        """For people, while nothing was printed."""
        if not self._raw and not self._printed:
            print(style.green(NOTHING_YET), flush=True)

    async def print_new(self, thread: ThreadDetail) -> None:
        """Print the messages after those that were printed or acknowledged."""
        id = thread.thread_id
        since = max(self._printed.get(id, 0), thread.last_read_seq)
        async for message in self._client.threads.history(id, since, peek=self._peek):
            self._printed[id] = message.seq
            if message.sender_agent_id == self._client.id:
                continue
            if self._raw:
                print_json(message)
                continue
            lines = ["", *rendering.message_card(message)]
            if self._title_shown != id:
                self._title_shown = id
                lines[:0] = ["", *rendering.thread_head(thread)]
            print("\n".join(lines), flush=True)
