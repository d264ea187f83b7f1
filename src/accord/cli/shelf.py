"""What a session's members share: `accord session context`."""

import argparse
import sys
from pathlib import Path
from typing import Any

from accord.cli import where
from accord.core.kernel.refusal import Refused, Why

STDIN = "-"
ACTIONS = ("list", "show", "add", "remove")


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to do, with which item, and where."""
    add = parser.add_argument
    add("action", choices=ACTIONS, metavar="|".join(ACTIONS), help="what to do")
    add("key", nargs="?", metavar="KEY", help="which item")
    add("file", nargs="?", metavar="FILE", help="what to add; - reads standard input")
    add("--fork", metavar="FORK", help="in this fork (default: the trunk)")
    add("--visible-to", metavar="A,B", help="add it for these alone")
    add("--reason", default="", help="why it is removed")


async def run(args: argparse.Namespace) -> None:
    """The chosen action."""
    needs_key = args.action != "list"
    if (needs_key and not args.key) or (args.action == "add") != bool(args.file):
        raise Refused(Why.MALFORMED, "context list, show KEY, add KEY FILE, or remove KEY")
    await {"list": _list, "show": _show, "add": _add, "remove": _remove}[args.action](args)


async def _list(args: argparse.Namespace) -> None:
    from accord.show.output import table, tell
    from accord.show.text import line, listed

    async with where.reading(args) as source:
        found = (await source.detail(args.session))["context"]
    items = [item for item in found if args.fork is None or item["fork"] == args.fork]
    if args.json:
        tell({"context": items})
        return
    if not items:
        print("Nothing is shared here. To add something: accord session context SESSION add")
        return
    rows = [
        (
            line(item["key"]),
            item["content_type"],
            line(item["author"]),
            item["fork"] or "main",
            listed(item["visible_to"]) if item["visible_to"] else "everybody",
        )
        for item in items
    ]
    table(("KEY", "TYPE", "BY", "IN", "FOR"), rows)


async def _show(args: argparse.Namespace) -> None:
    import json

    from accord.show.output import tell
    from accord.show.text import inert, safe

    async with where.reading(args) as source:
        item: dict[str, Any] = await source.context(args.session, args.key, args.fork)
    content = item["content"]
    if args.json:
        tell(item)
    elif isinstance(content, str):
        screen = sys.stdout.isatty()
        ends = content.endswith("\n") or not screen  # in a file it is what was added, to the byte
        print(safe(content) if screen else content, end="" if ends else "\n")
    else:
        found = json.dumps(content or item["content_ref"], indent=2, ensure_ascii=False)
        print(inert(found))


async def _add(args: argparse.Namespace) -> None:
    from accord.core.room.shelf import ContextAdd

    names = [name.strip() for name in (args.visible_to or "").split(",") if name.strip()]
    source = None if args.file == STDIN else args.file
    body = ContextAdd(
        args.key,
        "text" if source is None else "file",
        text_of(args.file),
        visible_to=tuple(names) or None,
        source=source,
    )
    await _post(args, body)


def text_of(file: str) -> str:
    """What stands in it."""
    try:
        return sys.stdin.read() if file == STDIN else Path(file).read_text("utf-8")
    except UnicodeDecodeError:
        raise Refused(Why.MALFORMED, f"{file} is not text") from None


async def _remove(args: argparse.Namespace) -> None:
    from accord.core.room.shelf import ContextRemove

    await _post(args, ContextRemove(args.key, args.reason))


async def _post(args: argparse.Namespace, body: Any) -> None:
    from accord.cli.steer import inside
    from accord.show.output import tell

    async with where.client(args) as client:
        await inside(client, args.session)
        said = await client.post(args.session, body, fork=args.fork)
    if args.json:
        tell({"id": said.id, "key": args.key, "seq": said.seq})
    else:
        print(f"{'Added' if args.action == 'add' else 'Removed'} {args.key}")
