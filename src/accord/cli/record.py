"""A session's history: `accord session log` and `accord session export`."""

import argparse
import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from accord.cli import where
from accord.show.prose import conversation, shown
from accord.show.text import line
from accord.show.timeline import Timeline, turns

POLL_S = 0.5
END = "session.end"


async def log(args: argparse.Namespace) -> None:
    """The conversation, or the envelopes for a program."""
    session = where.session_of(args)
    async with where.reading(args) as source:
        await source.detail(session)  # tells an empty session from none
        said = [each async for each in source.transcript(session) if within(each, args.at)]
        if args.json:
            print_each(said)
        else:
            timeline = Timeline()
            for each in said:
                timeline.add(each)
            for text in conversation(timeline.turns, whole=args.full):
                print(text)
        if args.follow and args.at is None and not over(said):
            sys.stdout.flush()
            await follow(args, source, session, said)


def within(said: dict[str, Any], at: int | None) -> bool:
    """Whether this had been said by then."""
    return at is None or said.get("seq", 0) <= at


def over(said: list[dict[str, Any]]) -> bool:
    """Whether nothing more will come."""
    return bool(said) and said[-1]["type"] == END


async def follow(
    args: argparse.Namespace, source: where.Source, session: str, said: list[dict[str, Any]]
) -> None:
    """What is said from now on, until it ends; a turn is shown once it is whole."""
    timeline = Timeline()
    for each in said:
        timeline.add(each)
    printed = len(timeline.turns)
    async for more in arriving(source, session, said[-1].get("seq", 0) if said else 0):
        if args.json:
            print_each(more)
            continue
        for each in more:
            timeline.add(each)
        while printed < len(timeline.turns) and timeline.is_whole(timeline.turns[printed]):
            print("\n".join(shown(timeline.turns[printed], whole=args.full)))
            printed += 1
        sys.stdout.flush()


async def arriving(
    source: where.Source, session: str, after: int
) -> AsyncIterator[list[dict[str, Any]]]:
    """Envelopes as they come, until the session ends."""
    while True:
        more = [each async for each in source.transcript(session, after)]
        if more:
            after = more[-1].get("seq", after)
            yield more
        if over(more):
            return
        await asyncio.sleep(POLL_S)


def print_each(said: list[dict[str, Any]]) -> None:
    """JSON, one envelope to a line."""
    for each in said:
        print(json.dumps(each, ensure_ascii=False, separators=(",", ":")))
    sys.stdout.flush()


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
        return json.dumps(whole, ensure_ascii=False, indent=2) + "\n"
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
