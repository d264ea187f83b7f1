"""Connect a coding agent of another vendor to a session.

Its prompts, answers and calls appear there, and what is risky waits for people. HOST is
claude-code, codex, gemini, opencode or cursor. Run this in the repository that the agent
works in. You see a diff of every file first; nothing is written into the repository. The agent gets
a key of its own, which renews its short tokens and which `accord disconnect` revokes. --check
changes nothing and finds out whether the host runs our hook and reaches the server.

Examples:
  accord connect claude-code
  accord connect codex --session ses_01JZ0Q6Y5W3V8T2N4M6K8H0F2D --yes
  accord connect gemini --fork try-a-grammar
  accord connect gemini --dry-run
  accord connect codex --check
"""

import argparse
import asyncio
import os
import sys
from typing import TYPE_CHECKING, Any

from accord.core.kernel.refusal import Reason, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accord.api.people import Account
    from accord.client.identity import Token
    from accord.hosts.adapters.host import ConfigFile, HostAdapter
    from accord.hosts.changed_files import Change, FileState
    from accord.hosts.configuration.entry import Entry
    from accord.hosts.connections import Connection
    from accord.hosts.enrolment import ConnectionRequest

DECLINED = "Nothing was changed."
NO_PROFILE = "You are not logged in; `accord login LINK` makes a profile, then connect again"
OPEN_STATUSES = frozenset({"active", "paused"})
CODEX = "codex"
EXIT_NOT_GATED = 5


def arguments(parser: argparse.ArgumentParser) -> None:
    """The host, --session, --fork, --agent, --price, --yes, --dry-run, --check and --json."""
    from accord.cli.parsing import price_type
    from accord.hosts.adapters.table import HOSTS

    add = parser.add_argument
    add("host", metavar="HOST", choices=tuple(HOSTS), help=", ".join(HOSTS))
    add("--session", metavar="ID", help="the session (default: ACCORD_SESSION; else you are asked)")
    add("--fork", metavar="FORK", help="the fork that it works in; main is the session itself")
    add("--agent", metavar="ID", help="the agent's id (default: YOU-HOST)")
    add("--price", type=price_type, metavar="IN,OUT", help="US dollars for a million tokens")
    add("--yes", action="store_true", help="answer yes to every question")
    add("--dry-run", action="store_true", help="show what would be written, and stop")
    add("--check", action="store_true", help="only check whether the connection works")
    add("--url", help="the server (default: ACCORD_URL, or your profile)")
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    from accord.cli.hosts.repository import one_at_a_time
    from accord.hosts.adapters.table import HOSTS

    adapter = HOSTS[args.host]
    if args.check:
        from accord.cli.hosts.checks import print_checks

        return print_checks(adapter, as_json=args.json)
    with one_at_a_time():
        return asyncio.run(connect(adapter, args))


async def connect(adapter: "HostAdapter", args: argparse.Namespace) -> int:
    """Show the changes, ask, make the identity, and write."""
    from accord.cli.hosts.dialogue import confirm, print_changes, say
    from accord.cli.hosts.repository import connection_for, current_repository

    repo = current_repository()
    root = repo.root.resolve()
    url, token = server_and_token(args)
    known = connection_for(adapter.name, root)
    if known is not None and not is_for(known, url, args):
        raise Refused(
            Reason.WRONG_STATE,
            f"{adapter.title} is connected here as {known.agent} at {known.url}; run `accord "
            f"disconnect {adapter.name}` first",
        )
    from accord.hosts.enrolment import account_of

    person = await account_of(url, token)
    id = known.id if known else new_id(adapter)
    changes = plan(adapter, id)
    if not args.json:
        print_changes(changes)
        print_intent(adapter, known, person, args)
    if args.dry_run:
        return finish(args, adapter, known, changes, written=False)
    session = args.session or await choose_session(args, known, url, token)
    needed = known is None or any(change.is_needed for change in changes)
    if needed and not confirm("Write this?", yes=args.yes):
        say(DECLINED)
        return 0
    from accord.hosts.enrolment import ConnectionRequest

    agent = args.agent or (known.agent if known else f"{person.id}-{adapter.name}")
    fork = await fork_of(args, known, session, agent, url, token)
    request = ConnectionRequest(
        host=adapter.name,
        title=adapter.title,
        root=root,
        repository=repository_id(repo),
        url=url,
        session=session or await create_session(args, url, token, root.name),
        agent=agent,
        id=id,
        fork=fork,
        price=args.price or (known.price if known else None),
    )
    connection = await establish(known, request, token, person, changes)
    finish(args, adapter, connection, changes, written=True)
    if adapter.name == CODEX:
        from accord.cli.hosts.codex_trust import offer_trust

        return 0 if offer_trust(adapter, connection, args) else EXIT_NOT_GATED
    return 0


def server_and_token(args: argparse.Namespace) -> tuple[str, "Token"]:
    """The server and the person's token for it; raises Refused."""
    from accord.cli.connection import DEFAULT_URL, resolve_settings, token_of
    from accord.cli.server_url import check_url

    known = resolve_settings(args.url)
    token = token_of(known)
    if token is None:
        raise Refused(Reason.UNAUTHENTICATED, NO_PROFILE)
    return check_url(known.url or DEFAULT_URL), token


def is_for(known: "Connection", url: str, args: argparse.Namespace) -> bool:
    """Whether a connection is the one that is asked for, its session aside."""
    from accord.settings.profiles import server_address

    return known.url == server_address(url) and args.agent in {None, known.agent}


def new_id(adapter: "HostAdapter") -> str:
    from accord.hosts.connections import new_connection_id

    return new_connection_id(adapter.name)


def plan(
    adapter: "HostAdapter",
    connection: str,
    *,
    remove: bool = False,
    trusted: "tuple[Entry, ...] | None" = None,
) -> list["Change"]:
    """What happens to each file of the host; raises Refused.

    `trusted` is the trust that the person gave to hooks, None for that which they gave before.
    """
    from accord.hosts.changed_files import ensure_writable, plan_change, read_states
    from accord.hosts.configuration.entry import ConfigurationError
    from accord.hosts.connections import connection_path

    record = connection_path(os.environ, connection)
    try:
        states = read_states(os.environ)
        changes = [
            plan_change(with_trust(file, states, connection, trusted), states, connection, remove)
            for file in adapter.files(os.environ, record)
        ]
        for change in changes:
            if change.is_needed:
                ensure_writable(change)
    except ConfigurationError as error:
        raise Refused(Reason.WRONG_STATE, f"{error}. Nothing was changed") from None
    return changes


def with_trust(
    file: "ConfigFile",
    states: "Mapping[str, FileState]",
    connection: str,
    trusted: "tuple[Entry, ...] | None",
) -> "ConfigFile":
    """The file with the trust in our hooks, where the host keeps it beside them."""
    from accord.hosts.codex_hooks import TRUST_PATH

    state = states.get(os.fspath(file.path))
    if trusted is None:
        known = state.entries.get(connection, ()) if state else ()
        trusted = tuple(entry for entry in known if entry.path == TRUST_PATH)
    return file._replace(entries=(*file.entries, *trusted))


def print_intent(
    adapter: "HostAdapter", known: "Connection | None", person: "Account", args: argparse.Namespace
) -> None:
    """What the agent becomes, and what the gate does not hold."""
    from accord.cli.hosts.dialogue import say

    agent = args.agent or f"{person.id}-{adapter.name}"
    if known is None:
        say(
            f"{adapter.title} gets the id {agent} and a key of its own in your configuration "
            "directory, and becomes a member of the session."
        )
    else:
        say(f"{adapter.title} is connected here as {known.agent}, {place_of(known)}.")
    for limit in adapter.limits:
        say(f"Note: {limit}")


def place_of(connection: "Connection") -> str:
    """The session, and the fork if there is one."""
    fork = f", fork {connection.fork}" if connection.fork else ""
    return f"session {connection.session}{fork}"


def repository_id(repo: Any) -> str:
    """The id of the repository, which it gets if it has none."""
    from accord.git.hooks.installer import ensure_repository_id

    return ensure_repository_id(repo)


async def choose_session(
    args: argparse.Namespace,
    known: "Connection | None",
    url: str,
    token: "Token",
) -> str:
    """The session of the settings, or the one that the person chooses; empty for a new one."""
    from accord.client import Client
    from accord.settings.client import Settings

    if known is not None:
        return known.session
    if chosen := Settings.for_process().session:
        return chosen
    if args.yes or not sys.stdin.isatty():
        return ""
    mine = [
        each
        for each in await Client(url, token=token).sessions()
        if each.standing == "member" and each.status in OPEN_STATUSES
    ]
    return pick(mine) if mine else ""


async def fork_of(
    args: argparse.Namespace,
    known: "Connection | None",
    session: str,
    agent: str,
    url: str,
    token: "Token",
) -> str:
    """The fork that the agent works in, empty for the session itself; raises Refused."""
    from accord.client import Client
    from accord.core.kernel.ids import TRUNK_NAMES

    stays = args.fork is None and known is not None and known.session == session
    name: str = known.fork if stays and known else args.fork or ""
    if stays or name in TRUNK_NAMES:
        return name if stays else ""
    forks = (await Client(url, token=token).session(session)).forks if session else ()
    fork = next((each for each in forks if each.id == name), None)
    if fork is None:
        raise Refused(
            Reason.NOT_FOUND, f"There is no fork {name}; `accord session forks` lists them"
        )
    if fork.merged:
        raise Refused(Reason.WRONG_STATE, f"The fork {name} was merged and can only be read")
    if agent not in fork.members:
        raise Refused(
            Reason.NO_MEMBER,
            f"{agent} is not in the fork {name}; connect it without --fork, then make a fork with "
            f'it: `accord session fork {session} "NAME" --with {agent}`',
        )
    return name


async def create_session(args: argparse.Namespace, url: str, token: "Token", name: str) -> str:
    """A new session with the usual rules, named after the repository."""
    from accord.client import Client

    async with Client(url, token=token) as client:
        created = await client.create(name=name, listen=False)
    if not args.json:
        print(f"Created the session {created.id} ({name}).")
    return created.id


def pick(sessions: list[Any]) -> str:
    """The id of the session that the person chooses; empty for a new one."""
    from accord.cli.hosts.dialogue import ask
    from accord.show.text import one_line

    print("Which session?")
    for number, each in enumerate(sessions, 1):
        print(f"  {number}  {one_line(each.name or each.id)}  {each.id}")
    print("  n  a new one")
    answer = ask("Number: ")
    if answer.isdigit() and 1 <= int(answer) <= len(sessions):
        return str(sessions[int(answer) - 1].id)
    if answer.lower() in {"n", "new"}:
        return ""
    raise Refused(Reason.MALFORMED, "That is not one of the choices; run the command again")


async def establish(
    known: "Connection | None",
    request: "ConnectionRequest",
    token: "Token",
    person: "Account",
    changes: list["Change"],
) -> "Connection":
    """Make the identity, join, and write; what was made is undone if a later step fails."""
    from msgspec.structs import replace

    from accord.hosts.changed_files import apply_changes
    from accord.hosts.configuration.entry import ConfigurationError
    from accord.hosts.connections import delete_connection, save_connection
    from accord.hosts.enrolment import enrol, join_session, revoke

    if known is None:
        connection = await enrol(request, token, person)
    else:
        connection = replace(
            known,
            repository=request.repository,
            session=request.session,
            fork=request.fork,
            price=request.price,
        )
    try:
        await join_session(connection)
        save_connection(os.environ, connection)
        apply_changes(os.environ, changes)
    except BaseException as error:
        if known is None:
            delete_connection(os.environ, connection.id)
            await revoke(connection)
        if isinstance(error, ConfigurationError):
            raise Refused(Reason.WRONG_STATE, f"{error}. Nothing was changed") from None
        raise
    return connection


def finish(
    args: argparse.Namespace,
    adapter: "HostAdapter",
    connection: "Connection | None",
    changes: list["Change"],
    *,
    written: bool,
) -> int:
    """Say what is different now."""
    from accord.cli.hosts.dialogue import say
    from accord.show.output import print_json

    if args.json:
        print_json(
            {
                "host": adapter.name,
                "connection": connection.id if connection else None,
                "agent": connection.agent if connection else None,
                "session": connection.session if connection else None,
                "fork": connection.fork or None if connection else None,
                "files": [str(each.path) for each in changes if each.is_needed],
                "limits": list(adapter.limits),
                "written": written,
            }
        )
    elif not written:
        say("This was a dry run: nothing was changed.")
    elif connection is not None:
        say(f"{adapter.title} is connected as {connection.agent}, {place_of(connection)}.")
        say(f"{adapter.next_step}. `accord connect {adapter.name} --check` tests the connection.")
    return 0
