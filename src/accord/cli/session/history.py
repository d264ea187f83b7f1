"""`accord session log` and `accord session export`."""

import argparse
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from accord.cli import connection
from accord.cli.connection_notice import ConnectionNotice
from accord.cli.export_file import write_export_file
from accord.client.connection.backoff import Backoff, RetryPolicy
from accord.client.errors import ClientError, ServerRefused
from accord.client.http_client import is_transient, retry_after_s
from accord.show.text import escape_json, one_line
from accord.show.timeline.state import Turn
from accord.show.timeline.timeline import Timeline, turns_of
from accord.show.transcript import TranscriptRenderer

POLL_INTERVAL_S = 0.5
# In silence, the session is read again after this many polls.
POLLS_PER_CHECK = 20
# After one of these, the session is read again to learn whether there is more to come.
ENDINGS = frozenset({"session.end", "session.leave", "participant.role_change"})
OPEN_STATES = frozenset({"active", "paused"})


async def log(args: argparse.Namespace) -> None:
    """Print the conversation, or its envelopes as JSON."""
    session = connection.session_of(args)
    async with connection.open_source(args) as source:
        detail = await source.detail(session)  # refuses an unknown session
        after = args.after or 0
        envelopes = [
            envelope
            async for envelope in source.transcript(session, after)
            if is_up_to(envelope, args.at)
        ]
        last = envelopes[-1].get("seq", 0) if envelopes else 0
        if args.at and last < args.at:
            print(f"accord: there is no message {args.at} yet; the last is {last}", file=sys.stderr)
        out = TranscriptPrinter(whole=args.full, raw=args.json, numbers=args.numbers)
        follows = args.follow and args.at is None
        over = why_over(detail) if follows else ""
        out.print_new(envelopes, last=not follows or bool(over))
        if follows and not over:
            last = last if envelopes else after
            notice = ConnectionNotice(
                connection.resolve_settings(args.url).url or connection.DEFAULT_URL
            )
            async for more in follow(source, session, last, RetryPolicy(), notice):
                over = await find_why_over(source, session) if may_be_over(more) else ""
                out.print_new(more, last=bool(over))
                if over:
                    break
        if over:
            print(f"accord: {over}", file=sys.stderr)


class TranscriptPrinter:
    """Prints each turn as soon as it is complete."""

    def __init__(self, *, whole: bool, raw: bool, numbers: bool = False) -> None:
        self._numbers = numbers
        self._raw = raw
        self._renderer = TranscriptRenderer(whole=whole)
        self._timeline = Timeline()
        self._printed = 0

    def print_new(self, envelopes: list[dict[str, Any]], *, last: bool) -> None:
        """Add envelopes; after the last ones, print incomplete turns too."""
        for envelope in envelopes:
            self._timeline.add(envelope)
            if self._raw:
                print(escape_json(json.dumps(envelope, ensure_ascii=False, separators=(",", ":"))))
        turns = self._timeline.turns
        while not self._raw and self._printed < len(turns):
            turn = turns[self._printed]
            if not (last or self._timeline.is_complete(turn)):
                break
            print("\n".join(self._renderer.render(with_seq(turn) if self._numbers else turn)))
            self._printed += 1
        sys.stdout.flush()


def with_seq(turn: Turn) -> Turn:
    """The turn with its number, for --at and --after, in the title."""
    return msgspec.structs.replace(turn, title=f"{turn.title} [{turn.seq}]")


def is_up_to(envelope: dict[str, Any], at: int | None) -> bool:
    """Whether the envelope is not after number `at`."""
    return at is None or envelope.get("seq", 0) <= at


def may_be_over(envelopes: list[dict[str, Any]]) -> bool:
    """Whether the session, or a membership, may have ended with these, or in a long silence."""
    return not envelopes or any(envelope.get("type") in ENDINGS for envelope in envelopes)


async def find_why_over(source: connection.SessionSource, session: str) -> str:
    """Like `why_over`; empty if the server cannot be asked now, because it is asked again later."""
    try:
        return why_over(await source.detail(session))
    except ClientError as error:
        if not is_transient(error):
            raise
        return ""


def why_over(detail: dict[str, Any]) -> str:
    """Why nothing more will be heard of the session; empty while there may be more."""
    if detail["status"] not in OPEN_STATES:
        return f"the session has ended ({one_line(detail['status'])}); nothing more will follow"
    if detail["standing"] == "former":
        return (
            "you are no longer a member, so nothing more will follow; "
            f"`accord session join {one_line(detail['id'])}` makes you one again"
        )
    return ""


async def follow(
    source: connection.SessionSource,
    session: str,
    after: int,
    retry: RetryPolicy,
    notice: ConnectionNotice,
) -> AsyncIterator[list[dict[str, Any]]]:
    """New envelopes as they come, now and then none; retries while the server is unreachable."""
    backoff, quiet_polls = Backoff(retry), 0
    while True:
        try:
            more = [envelope async for envelope in source.transcript(session, after)]
        except ClientError as error:
            if not is_transient(error):
                raise
            notice.lost(error.message if isinstance(error, ServerRefused) else "")
            await backoff.wait(retry_after_s(error))
            continue
        notice.back()
        backoff.on_connected()
        quiet_polls = 0 if more else quiet_polls + 1
        after = more[-1].get("seq", after) if more else after
        if more or quiet_polls % POLLS_PER_CHECK == 0:
            yield more
        await retry.sleep(POLL_INTERVAL_S)


async def export(args: argparse.Namespace) -> None:
    """Write the whole session into one document."""
    session = connection.session_of(args)
    async with connection.open_source(args) as source:
        detail = await source.detail(session)
        envelopes = [envelope async for envelope in source.transcript(session)]
        head = await source.head(session)
    write_export(render_export(args, detail, envelopes, head), export_file(args, session))


def render_export(
    args: argparse.Namespace, detail: dict[str, Any], envelopes: list[dict[str, Any]], head: str
) -> str:
    """The document in the chosen format."""
    from accord.show.html_page import render_page
    from accord.show.markdown import render_markdown

    if args.json:
        whole = {"session": detail, "messages": envelopes, "head": head or None}
        return escape_json(json.dumps(whole, ensure_ascii=False, indent=2)) + "\n"
    if args.html:
        return render_page(detail, turns_of(envelopes), head=head)
    return render_markdown(detail, turns_of(envelopes))


def export_file(args: argparse.Namespace, session: str) -> Path | None:
    """The file to write, None for standard output; a web page never goes to a terminal."""
    if args.output is not None:
        return None if str(args.output) == "-" else Path(args.output)
    return Path(f"{session}.html") if args.html and sys.stdout.isatty() else None


def write_export(text: str, file: Path | None) -> None:
    """Write to the file, or to standard output."""
    if file is None:
        print(text, end="")
        return
    write_export_file(file, text)
    print(f"Wrote {one_line(str(file))}", file=sys.stderr)
