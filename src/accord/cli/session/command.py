"""Open, read and end sessions; prompt and stop agents; share, fork, merge.

Uses the server at ACCORD_URL with the token in ACCORD_TOKEN. Commands that only read also work on
the local store if no server answers. SESSION can be left out if ACCORD_SESSION is set and no other
argument follows it.

Examples:
  accord session create --name "Fix the parser"
  accord session create --quorum "any 2 + label security 1" --max-participants 5
  accord session list
  accord session join ses_01JZ0Q6Y5W3V8T2N4M6K8H0F2D
  accord session show ses_01JZ0Q6Y5W3V8T2N4M6K8H0F2D
  accord session log --follow
  accord session log --at 120
  accord session export --html --output review.html
  accord session leave ses_01JZ0Q6Y5W3V8T2N4M6K8H0F2D
  accord session remove bob --reason "Left the team"
  accord session readmit bob --roles driver,approver
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

from accord.cli import connection
from accord.cli.durations import gate_timeout_type
from accord.cli.git import bind
from accord.cli.parsing import BoundedInt, SubsetOf
from accord.cli.session import agent_control, context, forks, membership
from accord.cli.session.quorum_parser import QUORUM_HELP, quorum_type
from accord.show import style
from accord.show.foreign_json import as_int, as_text
from accord.show.text import (
    describe_gating,
    format_duration,
    join_words,
    local_time,
    one_line,
    plural,
)

FINAL_STATES = ("completed", "aborted", "timeout")
TIMEOUT_POLICIES = ("wait", "skip", "pause_session")
SECONDS_TYPE = BoundedInt(1, 31_536_000)
SEQ_TYPE = BoundedInt(1, 10**9)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verbs and their flags."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    create = verbs.add_parser("create", help="open a session and print its id")
    _create_arguments(create)
    connection.arguments(create)
    connection.arguments(verbs.add_parser("list", help="your sessions, newest first"), files=True)
    for verb, help_, files in SESSION_VERBS:
        inner = verbs.add_parser(verb, help=help_)
        # With more arguments after it, a missing session could not be told from the next one.
        count, session_help = (
            (None, "the session's id")
            if verb in SESSION_REQUIRED
            else ("?", "the session's id (default: ACCORD_SESSION)")
        )
        inner.add_argument("session", nargs=count, metavar="SESSION", help=session_help)
        VERB_ARGUMENTS.get(verb, lambda _: None)(inner)
        connection.arguments(inner, files=files)


# Each verb about one session, its help, and whether it can read the local store.
SESSION_VERBS = (
    ("join", "become a member; you stay one when the shell closes", False),
    ("leave", "end your membership", False),
    ("remove", "end the membership of someone else", False),
    ("readmit", "let someone who was removed join again", False),
    ("show", "members, open gates, forks and context", True),
    ("log", "the conversation, tool calls and votes", True),
    ("export", "the whole session as Markdown, a web page or JSON", True),
    ("prompt", "ask an agent and print the prompt's id", False),
    ("stop", "stop one agent or all of them", False),
    ("context", "shared items: list, show, add, remove", True),
    ("fork", "branch off and print the fork's id", False),
    ("forks", "all forks as a tree", True),
    ("merge", "merge a fork back", False),
    ("end", "end the session for everyone, permanently", False),
)
SESSION_REQUIRED = frozenset({"prompt", "stop", "context", "fork", "merge"})


def _create_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--name", help="what the session is about")
    add("--id", dest="session", metavar="SESSION", help="id for the session (default: generated)")
    add("--no-git", action="store_true", help="do not bind the session to the git repository here")
    rules = parser.add_argument_group("rules")
    add = rules.add_argument
    add(
        "--require-approval-for",
        type=approval_categories,
        metavar="A,B",
        help="categories that need approval; also all, or none",
    )
    add("--quorum", type=quorum_type, metavar="RULE", help=QUORUM_HELP)
    add(
        "--max-participants",
        type=BoundedInt(1, 10_000),
        metavar="N",
        help="most members at a time (default: 10)",
    )
    add("--ordering", choices=("total", "causal"), help="order of messages (default: total)")
    add("--no-forks", action="store_true", help="do not allow forks")
    add(
        "--on-participant-timeout",
        choices=TIMEOUT_POLICIES,
        help="what open gates do when a member is away (default: wait)",
    )
    add(
        "--gate-timeout",
        type=gate_timeout_type,
        metavar="TIME",
        help="how long gates stay open, such as 8h or never (default: the server's, 24h)",
    )
    add(
        "--heartbeat-interval",
        type=SECONDS_TYPE,
        metavar="SECONDS",
        help="between signs of life (default: 30)",
    )
    add(
        "--idle-timeout",
        type=SECONDS_TYPE,
        metavar="SECONDS",
        help="silence until a member is idle (default: 120)",
    )
    add(
        "--away-timeout",
        type=SECONDS_TYPE,
        metavar="SECONDS",
        help="silence until a member is away (default: 300)",
    )


def _log_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--at", type=SEQ_TYPE, metavar="N", help="stop after message number N")
    add("--after", type=SEQ_TYPE, metavar="N", help="start after message number N")
    add("--numbers", action="store_true", help="show the message numbers for --at and --after")
    follow = "keep printing new messages, reconnecting if necessary; Ctrl-C stops"
    add("--follow", action="store_true", help=follow)
    add("--full", action="store_true", help="show long listings uncut")


def _export_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--html", action="store_true", help="write one self-contained web page")
    add(
        "--output", "-o", type=Path, metavar="FILE", help="file to write (default: standard output)"
    )


def _end_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", default="Done", help="why (default: %(default)s)")
    parser.add_argument(
        "--state",
        choices=FINAL_STATES,
        default="completed",
        help="how it ended (default: %(default)s)",
    )


def _show_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--full", action="store_true", help="show long arguments uncut")


VERB_ARGUMENTS = {
    "show": _show_arguments,
    "join": membership.join_arguments,
    "leave": membership.leave_arguments,
    "remove": membership.remove_arguments,
    "readmit": membership.readmit_arguments,
    "log": _log_arguments,
    "export": _export_arguments,
    "end": _end_arguments,
    "prompt": agent_control.prompt_arguments,
    "stop": agent_control.stop_arguments,
    "context": context.arguments,
    "fork": forks.fork_arguments,
    "merge": forks.merge_arguments,
}


def run(args: argparse.Namespace) -> int:
    import asyncio

    from accord.cli.session import history

    verbs = {
        "create": _create,
        "join": membership.join,
        "leave": membership.leave,
        "remove": membership.remove,
        "readmit": membership.readmit,
        "list": _list,
        "show": _show,
        "log": history.log,
        "export": history.export,
        "end": _end,
        "prompt": agent_control.prompt,
        "stop": agent_control.stop,
        "context": context.run,
        "fork": forks.fork,
        "forks": forks.forks,
        "merge": forks.merge,
    }
    asyncio.run(verbs[args.verb](args))
    return 0


# Opening and ending


async def _create(args: argparse.Namespace) -> None:
    from accord.show.output import print_json

    config = config_from_flags(args)
    async with connection.client_for(args) as client:
        session = await client.create(
            config, name=args.name, id=args.session, gate_timeout=args.gate_timeout, listen=False
        )
    bound = None if args.no_git else bind.bind_here(session.id)
    if args.json:
        print_json({"id": session.id, "url": client.url, "repo": bound.repo if bound else None})
        return
    print(session.id)
    if sys.stderr.isatty():
        print(_next_steps(session.id, config, bound), file=sys.stderr)
    elif bound and len(bound.sessions) > 1:
        print(f"accord: {bind.several_sessions_hint(bound.sessions)}", file=sys.stderr)


def config_from_flags(args: argparse.Namespace) -> Any:
    """The session's configuration: defaults, changed by flags."""
    from accord.client import default_config

    chosen = {
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
    return default_config(**{name: value for name, value in chosen.items() if value is not None})


def approval_categories(text: str) -> tuple[str, ...]:
    """Parse the categories that need approval; `none` is an empty list."""
    from accord.core.room.room_settings import Category

    return () if text.strip() == "none" else SubsetOf((*Category, "none"))(text)


def _next_steps(session: str, config: Any, bound: bind.RepositoryBinding | None = None) -> str:
    import msgspec

    lines = [
        "",
        f"  In this session {describe_gating(msgspec.to_builtins(config))}.",
        *(f"  {line}." for line in (bind.binding_lines(bound.sessions) if bound else ())),
        "",
        f"  export ACCORD_SESSION={session}",
        "  accord session log --follow     follow the conversation",
        "  accord gates                    list what waits for approval",
        "",
        "  A token for an agent:",
        "  accord token issue --id claude --type agent --roles driver",
    ]
    return "\n".join(lines)


async def _end(args: argparse.Namespace) -> None:
    from accord.core.room.session_lifecycle import SessionEnd
    from accord.show.output import print_json

    session = connection.session_of(args)
    async with connection.client_for(args) as client:
        gates = len((await client.session(session)).gates)
        await client.post(session, SessionEnd(reason=args.reason, final_state=args.state))
    if args.json:
        print_json({"id": session, "status": args.state, "gates_closed": gates})
    else:
        closed = f", and {plural(gates, 'open gate')} with it" if gates else ""
        print(f"{session} has ended ({args.state}){closed}; it can still be read")


# Reading


async def _list(args: argparse.Namespace) -> None:
    from accord.show.output import print_json, print_table

    async with connection.open_source(args) as source:
        sessions = await source.listing()
    if args.json:
        print_json({"sessions": sessions})
        return
    if not sessions:
        print("No sessions yet. To open one: accord session create --name 'First steps'")
        return
    rows = [
        (
            session["id"],
            one_line(session["name"]) or "–",
            session["status"],
            str(session["participants"]),
            str(session["open_gates"] or ""),
            f"{local_time(session['created_at']):%Y-%m-%d %H:%M}",
        )
        for session in sessions
    ]
    print_table(("SESSION", "NAME", "STATUS", "PEOPLE", "GATES", "OPENED"), rows)


async def _show(args: argparse.Namespace) -> None:
    from accord.show.output import print_json

    async with connection.open_source(args) as source:
        found = await source.detail(connection.session_of(args))
    if args.json:
        print_json(found)
    else:
        print("\n".join(_render_session(found, full=args.full)))


def people_line(session: dict[str, Any]) -> str:
    """The number of members, now or at the end."""
    if session["status"] not in {"active", "paused"}:
        return f"People   none; the session ended with {len(session['members'])}"
    return f"People   {len(session['members'])} of at most {session['config']['max_participants']}"


def absence_policy(config: dict[str, Any]) -> str:
    """What happens to open gates when a member is away."""
    after = format_duration(as_int(config.get("away_timeout_seconds")))
    policy = as_text(config.get("on_participant_timeout"))
    sentences = {
        "wait": f"gates wait for members who are away for {after} or more",
        "skip": f"gates do not wait for members who are away for {after} or more",
        "pause_session": f"the session pauses when a member is away for {after}",
    }
    return sentences.get(policy, f"{one_line(policy)} after {after}")


def _render_session(session: dict[str, Any], *, full: bool = False) -> list[str]:
    from accord.show.gate_card import render_gate

    config, opened = session["config"], local_time(session["created_at"])
    name = style.bold(one_line(session["name"] or session["id"]))
    lines = [
        f"{name}  {style.dim(one_line(session['status']))}",
        style.dim(one_line(session["id"])),
        "",
        f"Opened   {opened:%Y-%m-%d %H:%M} by {one_line(session['created_by'])}",
        f"Rules    {describe_gating(config)}",
        f"Absent   {absence_policy(config)}",
        people_line(session),
    ]
    for member in session["members"]:
        kind = "agent" if member["type"] == "agent" else "human"
        roles = join_words(map(one_line, member["roles"]))
        hidden = session["status"] not in {"active", "paused"} or member["presence"] == "active"
        presence = "" if hidden else style.dim(f" ({one_line(member['presence'])})")
        halted = style.red(" stopped") if member["id"] in session["halted"] else ""
        lines.append(
            f"         {style.bold(one_line(member['id']))} {kind}, {roles}{presence}{halted}"
        )
    running = [tool for tool in session["tools"] if tool["approved"]]
    lines += [
        f"Running  {one_line(tool['tool_name'])} by {one_line(tool['agent'])}" for tool in running
    ]
    lines += _grant_lines(session)
    lines += _held_lines(session)
    lines += _shared_lines(session)
    lines += [
        "",
        f"{plural(len(session['gates']), 'open gate')}" if session["gates"] else "No open gates",
    ]
    for gate in session["gates"]:
        lines += ["", *render_gate(gate, full=full)]
    return lines


def _grant_lines(session: dict[str, Any]) -> list[str]:
    """Votes that were given beforehand, and how many are left of each."""
    from accord.cli.policy.granting import patterns_of

    return [
        f"Granted  {one_line(each['grantor'])} to {one_line(each['agent'])}: {patterns_of(each)}; "
        f"used {each['used']} of {each['count']}, until {local_time(each['expires_at']):%H:%M}"
        for each in session.get("standing_grants", ())
    ]


def _held_lines(session: dict[str, Any]) -> list[str]:
    """Proposals that a decision holds back, so that they have no gate yet."""
    from accord.show.gate_card import held_proposals, render_held

    return [line for tool in held_proposals(session) for line in render_held(tool, "Held     ")]


def _shared_lines(session: dict[str, Any]) -> list[str]:
    """Forks and context items, if there are any."""
    lines: list[str] = []
    if session["forks"]:
        lines += [
            "Forks    main",
            *(f"         {line}" for line in forks.fork_tree(session["forks"])),
        ]
    if items := session["context"]:
        places = {item["fork"]: None for item in items}
        for place in places:
            keys = join_words(one_line(item["key"]) for item in items if item["fork"] == place)
            lines.append(f"Context  {keys}{f' (in {one_line(place)})' if place else ''}")
    return lines
