"""Open sessions, read and export them, steer what happens in them, end them.

Works through the server at ACCORD_URL as whoever ACCORD_TOKEN speaks for. Reading also works on
the files of this machine when no server answers. SESSION may be left out where ACCORD_SESSION
says which and nothing follows it.

Examples:
  accord session create --name "Fix the parser"
  accord session create --quorum "any 2 + label security 1" --max-participants 5
  accord session list
  accord session show ses_01JZ0Q6Y5W3V8T2N4M6K8H0F2D
  accord session log --follow
  accord session log --at 120
  accord session export --html --output review.html
  accord session end --reason "Merged"
  accord session prompt $ACCORD_SESSION claude "What broke the build?" --context notes
  git diff | accord session prompt $ACCORD_SESSION claude -
  accord session stop $ACCORD_SESSION claude --message "Wrong branch"
  accord session stop $ACCORD_SESSION --emergency --message "That is production"
  accord session context $ACCORD_SESSION list
  accord session context $ACCORD_SESSION add notes NOTES.md --visible-to claude
  accord session context $ACCORD_SESSION show notes
  accord session fork $ACCORD_SESSION "Try a grammar" --with claude
  accord session forks
  accord session merge $ACCORD_SESSION try-a-grammar --summary "It is shorter"
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from accord.cli import binding, branches, shelf, steer, where
from accord.cli.parsing import Some, Whole
from accord.cli.quorum import HELP as QUORUM_HELP
from accord.cli.quorum import quorum
from accord.show import paint
from accord.show.text import count, gated, line, listed, moment, span

STATES = ("completed", "aborted", "timeout")
POLICIES = ("wait", "skip", "pause_session")
SECONDS = Whole(1, 31_536_000)
NUMBER = Whole(1, 10**9)


def arguments(parser: argparse.ArgumentParser) -> None:
    """A verb and its flags."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    create = verbs.add_parser("create", help="open a session; its id goes to standard output")
    _create_arguments(create)
    where.arguments(create)
    where.arguments(verbs.add_parser("list", help="your sessions, newest first"), files=True)
    for verb, help_, files in ABOUT:
        made = verbs.add_parser(verb, help=help_)
        # What follows the session could be taken for it where it is left out.
        count, usual = (None, "which") if verb in FOLLOWED else ("?", "default: ACCORD_SESSION")
        made.add_argument("session", nargs=count, metavar="SESSION", help=usual)
        MORE.get(verb, lambda _: None)(made)
        where.arguments(made, files=files)


# Each verb about one session, what it does, and whether the files will do.
ABOUT = (
    ("show", "who is there and what is open", True),
    ("log", "what was said and done, as a conversation", True),
    ("export", "the whole session as Markdown, a web page or JSON", True),
    ("prompt", "ask an agent; the prompt's id goes to standard output", False),
    ("stop", "make an agent stop, or all of them", False),
    ("context", "what the members share: list, show, add, remove", True),
    ("fork", "go a way of one's own; the fork's id goes to standard output", False),
    ("forks", "the forks, as a tree", True),
    ("merge", "bring a fork back", False),
    ("end", "close it for everybody, for good", False),
)
FOLLOWED = frozenset({"prompt", "stop", "context", "fork", "merge"})


def _create_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--name", help="what it is about")
    add("--id", dest="session", metavar="SESSION", help="its id (default: a new one)")
    add("--no-git", action="store_true", help="commits in this repository are not of it")
    rules = parser.add_argument_group("rules, where they differ from the usual")
    add = rules.add_argument
    add(
        "--require-approval-for",
        type=categories,
        metavar="A,B",
        help="categories that need a yes; all, or none",
    )
    add("--quorum", type=quorum, metavar="RULE", help=QUORUM_HELP)
    add("--max-participants", type=Whole(1, 10_000), metavar="N", help="default: 10")
    add("--ordering", choices=("total", "causal"), help="default: total")
    add("--no-forks", action="store_true", help="nobody may fork it")
    add("--on-participant-timeout", choices=POLICIES, help="default: skip")
    add("--heartbeat-interval", type=SECONDS, metavar="SECONDS", help="default: 30")
    add("--idle-timeout", type=SECONDS, metavar="SECONDS", help="default: 120")
    add("--away-timeout", type=SECONDS, metavar="SECONDS", help="default: 300")


def _log_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--at", type=NUMBER, metavar="N", help="as it was when number N had been said")
    add("--after", type=NUMBER, metavar="N", help="only what was said behind number N")
    add("--numbers", action="store_true", help="show the numbers that --at and --after take")
    follow = "go on as more is said, also after the server was away; Ctrl-C stops"
    add("--follow", action="store_true", help=follow)
    add("--full", action="store_true", help="cut nothing")


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--html", action="store_true", help="one web page that needs nothing else")
    add("--output", "-o", type=Path, metavar="FILE", help="default: standard output")


def _end_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", default="Done", help="why (default: %(default)s)")
    parser.add_argument("--state", choices=STATES, default="completed", help="how it ended")


MORE = {
    "log": _log_arguments,
    "export": _export_arguments,
    "end": _end_arguments,
    "prompt": steer.prompt_arguments,
    "stop": steer.stop_arguments,
    "context": shelf.arguments,
    "fork": branches.fork_arguments,
    "merge": branches.merge_arguments,
}


def run(args: argparse.Namespace) -> int:
    """What the chosen verb does."""
    import asyncio

    from accord.cli import record

    verbs = {
        "create": _create,
        "list": _list,
        "show": _show,
        "log": record.log,
        "export": record.export,
        "end": _end,
        "prompt": steer.prompt,
        "stop": steer.stop,
        "context": shelf.run,
        "fork": branches.fork,
        "forks": branches.forks,
        "merge": branches.merge,
    }
    asyncio.run(verbs[args.verb](args))
    return 0


# Opening and ending


async def _create(args: argparse.Namespace) -> None:
    from accord.show.output import tell

    config = rules(args)
    async with where.client(args) as client:
        session = await client.create(config, name=args.name, id=args.session, listen=False)
    bound = None if args.no_git else binding.here(session.id)
    if args.json:
        tell({"id": session.id, "url": client.url, "repo": bound.repo if bound else None})
        return
    print(session.id)
    if sys.stderr.isatty():
        print(_next_steps(session.id, config, bound), file=sys.stderr)
    elif bound and len(bound.sessions) > 1:
        print(f"accord: {binding.several(bound.sessions)}", file=sys.stderr)


def rules(args: argparse.Namespace) -> Any:
    """The session's configuration: the usual one, but for what was said."""
    from accord.client import usual_config

    said = {
        "require_approval_for": args.require_approval_for,
        "default_gate_quorum": args.quorum,
        "max_participants": args.max_participants,
        "ordering_mode": args.ordering,
        "on_participant_timeout": args.on_participant_timeout,
        "heartbeat_interval_seconds": args.heartbeat_interval,
        "idle_timeout_seconds": args.idle_timeout,
        "away_timeout_seconds": args.away_timeout,
        "allow_forks": False if args.no_forks else None,
    }
    return usual_config(**{name: value for name, value in said.items() if value is not None})


def categories(text: str) -> tuple[str, ...]:
    """What needs a yes; nothing where it says none."""
    from accord.core.room.state import Category

    return () if text.strip() == "none" else Some((*Category, "none"))(text)


def _next_steps(session: str, config: Any, bound: binding.Bound | None = None) -> str:
    import msgspec

    lines = [
        "",
        f"  In this session {gated(msgspec.to_builtins(config))}.",
        *(f"  {each}." for each in (binding.shown(bound.sessions) if bound else ())),
        "",
        f"  export ACCORD_SESSION={session}",
        "  accord session log --follow     what is said and done",
        "  accord gates                    what waits for an approval",
        "",
        "  A way in for an agent:",
        "  accord token issue --id claude --type agent --roles driver",
    ]
    return "\n".join(lines)


async def _end(args: argparse.Namespace) -> None:
    from accord.core.room.lifecycle import SessionEnd
    from accord.show.output import tell

    session = where.session_of(args)
    async with where.client(args) as client:
        gates = len((await client.session(session)).gates)
        await client.post(session, SessionEnd(reason=args.reason, final_state=args.state))
    if args.json:
        tell({"id": session, "state": args.state, "gates_closed": gates})
    else:
        closed = f", and {count(gates, 'open gate')} with it" if gates else ""
        print(f"{session} has ended ({args.state}){closed}; it can still be read")


# Looking


async def _list(args: argparse.Namespace) -> None:
    from accord.show.output import table, tell

    async with where.reading(args) as source:
        found = await source.listing()
    if args.json:
        tell({"sessions": found})
        return
    if not found:
        print("No sessions yet. To open one: accord session create --name 'First steps'")
        return
    rows = [
        (
            each["id"],
            line(each["name"]) or "–",
            each["status"],
            str(each["participants"]),
            str(each["open_gates"] or ""),
            f"{moment(each['created_at']):%Y-%m-%d %H:%M}",
        )
        for each in found
    ]
    table(("SESSION", "NAME", "STATUS", "PEOPLE", "GATES", "OPENED"), rows)


async def _show(args: argparse.Namespace) -> None:
    from accord.show.output import tell

    async with where.reading(args) as source:
        found = await source.detail(where.session_of(args))
    if args.json:
        tell(found)
    else:
        print("\n".join(_portrait(found)))


def people(found: dict[str, Any]) -> str:
    """How many are there, or were at the end."""
    if found["status"] not in {"active", "paused"}:
        return f"People   nobody any more; at the end {len(found['members'])}"
    return f"People   {len(found['members'])} of at most {found['config']['max_participants']}"


def absent(config: dict[str, Any]) -> str:
    """What becomes of gates when somebody is not there."""
    after = span(config["away_timeout_seconds"])
    return {
        "wait": f"gates wait for whoever is away {after} or more",
        "skip": f"gates go on without whoever is away {after} or more",
        "pause_session": f"the session pauses when somebody is away {after}",
    }[config["on_participant_timeout"]]


def _portrait(found: dict[str, Any]) -> list[str]:
    from accord.show.cards import card

    config = found["config"]
    lines = [
        f"{paint.bold(line(found['name'] or found['id']))}  {paint.dim(line(found['status']))}",
        paint.dim(line(found["id"])),
        "",
        f"Opened   {moment(found['created_at']):%Y-%m-%d %H:%M} by {line(found['created_by'])}",
        f"Rules    {gated(config)}",
        f"Absent   {absent(config)}",
        people(found),
    ]
    for each in found["members"]:
        kind = "agent" if each["type"] == "agent" else "human"
        roles = listed(map(line, each["roles"]))
        gone = found["status"] not in {"active", "paused"} or each["presence"] == "active"
        here = "" if gone else paint.dim(f" ({line(each['presence'])})")
        halted = paint.red(" stopped") if each["id"] in found["halted"] else ""
        lines.append(f"         {paint.bold(line(each['id']))} {kind}, {roles}{here}{halted}")
    running = [each for each in found["tools"] if each["approved"]]
    lines += [f"Running  {line(each['tool_name'])} by {line(each['agent'])}" for each in running]
    lines += _held(found)
    lines += _shared(found)
    lines += [
        "",
        f"{count(len(found['gates']), 'open gate')}" if found["gates"] else "No open gates",
    ]
    for gate in found["gates"]:
        lines += ["", *card(gate)]
    return lines


def _held(found: dict[str, Any]) -> list[str]:
    """Proposals that a decision holds back, so that nobody is asked about them yet."""
    from accord.show.cards import held, waits

    return [each for tool in held(found) for each in waits(tool, "Held     ")]


def _shared(found: dict[str, Any]) -> list[str]:
    """Forks and context, where there are any."""
    lines: list[str] = []
    if found["forks"]:
        lines += ["Forks    main", *(f"         {each}" for each in branches.tree(found["forks"]))]
    if items := found["context"]:
        places = {item["fork"]: None for item in items}
        for place in places:
            keys = listed(line(item["key"]) for item in items if item["fork"] == place)
            lines.append(f"Context  {keys}{f' (in {line(place)})' if place else ''}")
    return lines
