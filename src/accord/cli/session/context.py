"""`accord session context`: the items that the members of a session share."""

import argparse
import sys
from pathlib import Path
from typing import Any

from accord.cli import connection
from accord.core.kernel.refusal import Reason, Refused

STDIN = "-"
ACTIONS = ("list", "show", "add", "remove")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the action, the key, the file and their flags."""
    add = parser.add_argument
    add("action", choices=ACTIONS, metavar="|".join(ACTIONS), help="what to do")
    add("key", nargs="?", metavar="KEY", help="the item's name")
    add("file", nargs="?", metavar="FILE", help="the file to add; - reads standard input")
    add("--fork", metavar="FORK", help="the fork (default: the trunk)")
    add("--visible-to", metavar="A,B", help="only these members may read it")
    add("--reason", default="", help="why the item is removed")


async def run(args: argparse.Namespace) -> None:
    needs_key = args.action != "list"
    if (needs_key and not args.key) or (args.action == "add") != bool(args.file):
        raise Refused(
            Reason.MALFORMED,
            "Use one of: context list, context show KEY, context add KEY FILE, context remove KEY",
        )
    await {"list": _list, "show": _show, "add": _add, "remove": _remove}[args.action](args)


async def _list(args: argparse.Namespace) -> None:
    from accord.show.output import print_json, print_table
    from accord.show.text import join_words, one_line

    async with connection.open_source(args) as source:
        found = (await source.detail(args.session))["context"]
    items = [item for item in found if args.fork is None or item["fork"] == args.fork]
    if args.json:
        print_json({"context": items})
        return
    if not items:
        print("No context items. To add one: accord session context SESSION add KEY FILE")
        return
    rows = [
        (
            one_line(item["key"]),
            item["content_type"],
            one_line(item["author"]),
            item["fork"] or "main",
            join_words(item["visible_to"]) if item["visible_to"] else "everyone",
        )
        for item in items
    ]
    print_table(("KEY", "TYPE", "BY", "IN", "FOR"), rows)


async def _show(args: argparse.Namespace) -> None:
    import json

    from accord.show.output import print_json
    from accord.show.text import escape_controls, escape_json

    async with connection.open_source(args) as source:
        item: dict[str, Any] = await source.context(args.session, args.key, args.fork)
    content = item["content"]
    if args.json:
        print_json(item)
    elif isinstance(content, str):
        screen = sys.stdout.isatty()
        ends = content.endswith("\n") or not screen  # a pipe or file gets exactly what was added
        print(escape_controls(content) if screen else content, end="" if ends else "\n")
    else:
        found = json.dumps(content or item["content_ref"], indent=2, ensure_ascii=False)
        print(escape_json(found))


async def _add(args: argparse.Namespace) -> None:
    from accord.core.room.shared_context.context_items import ContextAdd

    names = [name.strip() for name in (args.visible_to or "").split(",") if name.strip()]
    source = None if args.file == STDIN else args.file
    body = ContextAdd(
        args.key,
        "text" if source is None else "file",
        read_text(args.file),
        visible_to=tuple(names) or None,
        source=source,
    )
    await _post(args, body)


def read_text(file: str) -> str:
    """The text of a file or of standard input; refuses other encodings than UTF-8."""
    try:
        return sys.stdin.read() if file == STDIN else Path(file).read_text("utf-8")
    except UnicodeDecodeError:
        raise Refused(Reason.MALFORMED, f"{file} is not UTF-8 text") from None


async def _remove(args: argparse.Namespace) -> None:
    from accord.core.room.shared_context.context_items import ContextRemove

    await _post(args, ContextRemove(args.key, args.reason))


async def _post(args: argparse.Namespace, body: Any) -> None:
    from accord.show.output import print_json

    client = await connection.member_client(args, args.session)
    receipt = await client.post(args.session, body, fork=args.fork)
    if args.json:
        print_json({"key": args.key, "message": receipt.id, "seq": receipt.seq})
    else:
        print(f"{'Added' if args.action == 'add' else 'Removed'} {args.key}")
