"""A session's history: `accord session log` and `accord session export`."""

import argparse
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

from accord.cli import where
from accord.cli.absence import Absence
from accord.client.backoff import Backoff, Retry
from accord.client.errors import ClientError, ServerRefused
from accord.client.web import asked_to_wait, passes
from accord.show.prose import Teller
from accord.show.text import inert, line
from accord.show.timeline import Timeline, Turn, turns

POLL_S = 0.5
END = "session.end"


async def log(args: argparse.Namespace) -> None:
    """The conversation, or the envelopes for a program."""
    session = where.session_of(args)
    async with where.reading(args) as source:
        await source.detail(session)  # tells an empty session from none
        after = args.after or 0
        said = [each async for each in source.transcript(session, after) if within(each, args.at)]
        if args.at and (not said or said[-1].get("seq", 0) < args.at):
            last = said[-1].get("seq", 0) if said else 0
            print(f"accord: number {args.at} is not said yet; the last is {last}", file=sys.stderr)
        out = Printer(whole=args.full, raw=args.json, numbers=args.numbers)
        goes_on = args.follow and args.at is None and not over(said)
        out.take(said, last=not goes_on)
        if goes_on:
            last = said[-1].get("seq", 0) if said else after
            absence = Absence(where.settings(args.url).url or where.DEFAULT_URL)
            async for more in arriving(source, session, last, Retry(), absence):
                out.take(more, last=over(more))


class Printer:
    """Prints what was said, each turn once it is whole."""

    def __init__(self, *, whole: bool, raw: bool, numbers: bool = False) -> None:
        self._numbers = numbers
        self._raw = raw
        self._teller = Teller(whole=whole)
        self._timeline = Timeline()
        self._printed = 0

    def take(self, said: list[dict[str, Any]], *, last: bool) -> None:
        """More envelopes; after the last of them nothing is held back."""
        for each in said:
            self._timeline.add(each)
            if self._raw:
                print(inert(json.dumps(each, ensure_ascii=False, separators=(",", ":"))))
        told = self._timeline.turns
        while not self._raw and self._printed < len(told):
            turn = told[self._printed]
            if not (last or self._timeline.is_whole(turn)):
                break
            print("\n".join(self._teller.tell(numbered(turn) if self._numbers else turn)))
            self._printed += 1
        sys.stdout.flush()


def numbered(turn: Turn) -> Turn:
    """The turn with its number, as `--at` takes it."""
    return msgspec.structs.replace(turn, title=f"{turn.title} [{turn.seq}]")


def within(said: dict[str, Any], at: int | None) -> bool:
    """Whether this had been said by then."""
    return at is None or said.get("seq", 0) <= at


def over(said: list[dict[str, Any]]) -> bool:
    """Whether nothing more will come."""
    return bool(said) and said[-1]["type"] == END


async def arriving(
    source: where.Source, session: str, after: int, retry: Retry, absence: Absence
) -> AsyncIterator[list[dict[str, Any]]]:
    """Envelopes as they come, until the session ends; a server that is away is waited for."""
    backoff = Backoff(retry)
    while True:
        try:
            more = [each async for each in source.transcript(session, after)]
        except ClientError as no:
            if not passes(no):
                raise
            absence.lost(no.message if isinstance(no, ServerRefused) else "")
            await backoff.wait(asked_to_wait(no))
            continue
        absence.back()
        backoff.opened()
        if more:
            after = more[-1].get("seq", after)
            yield more
        if over(more):
            return
        await retry.sleep(POLL_S)


async def export(args: argparse.Namespace) -> None:
    """The whole session, in one document."""
    session = where.session_of(args)
    async with where.reading(args) as source:
        detail = await source.detail(session)
        said = [each async for each in source.transcript(session)]
        head = await source.head(session)
    deliver(document(args, detail, said, head), destination(args, session))


def document(
    args: argparse.Namespace, detail: dict[str, Any], said: list[dict[str, Any]], head: str
) -> str:
    """As it was asked for."""
    from accord.show.markdown import markdown
    from accord.show.page import page

    if args.json:
        whole = {"session": detail, "messages": said, "head": head or None}
        return inert(json.dumps(whole, ensure_ascii=False, indent=2)) + "\n"
    if args.html:
        return page(detail, turns(said), head=head)
    return markdown(detail, turns(said))


def destination(args: argparse.Namespace, session: str) -> Path | None:
    """The file to write; a page is of no use on a terminal."""
    if args.output is not None:
        return None if str(args.output) == "-" else Path(args.output)
    return Path(f"{session}.html") if args.html and sys.stdout.isatty() else None


def deliver(text: str, file: Path | None) -> None:
    """Write it there."""
    if file is None:
        print(text, end="")
        return
    file.write_text(text, "utf-8")
    print(f"Wrote {line(str(file))}", file=sys.stderr)
