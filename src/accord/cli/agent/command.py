"""Put an agent into a session.

It answers the prompts addressed to it, until the session ends or you press Ctrl-C. Every call of a
tool is proposed first, and only what is granted runs. Signed in as a person, the agent gets an id
and a key of its own; with the token of an agent in ACCORD_TOKEN it is that agent. A model's key
comes from the environment alone: ANTHROPIC_API_KEY or OPENAI_API_KEY. A host is a program of
another vendor with its own login; every call that it wants to make is proposed here.

Examples:
  accord agent $ACCORD_SESSION --provider anthropic --model MODEL
  accord agent $ACCORD_SESSION --provider openai --model MODEL --price 1.25,10
  accord agent $ACCORD_SESSION --provider openai-compatible --base-url http://127.0.0.1:8080/v1
  accord agent $ACCORD_SESSION --provider scripted --script script.toml --workdir src
  accord agent $ACCORD_SESSION --host claude --worktree
  accord agent $ACCORD_SESSION --acp "opencode acp" --agent opencode
"""

import argparse
import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.cli import connection
from accord.cli.parsing import BoundedInt, price_type
from accord.core.kernel.refusal import Reason, Refused

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from accord.cli.agent.behaviors import BehaviorMaker
    from accord.cli.agent.identity import AgentIdentity
    from accord.client import Client

SCRIPTED = "scripted"
HOST_NAMES = ("claude", "gemini")
PROVIDERS = ("anthropic", "openai", "openai-compatible", SCRIPTED)
MAX_TOKENS_TYPE = BoundedInt(1, 1_000_000)
SECONDS_TYPE = BoundedInt(1, 86_400)
DEFAULT_TIMEOUT_S = 600


def arguments(parser: argparse.ArgumentParser) -> None:
    """The session, what answers, and where it works."""
    add = parser.add_argument
    add("session", nargs="?", metavar="SESSION", help="the session (default: ACCORD_SESSION)")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--provider", choices=PROVIDERS, help=", ".join(PROVIDERS))
    what.add_argument("--host", choices=HOST_NAMES, help="a coding agent that is installed here")
    what.add_argument("--acp", metavar="COMMAND", help="any agent that speaks ACP, by its command")
    add("--model", metavar="NAME", help="the model (default: ACCORD_MODEL)")
    add("--base-url", metavar="URL", help="the provider's address, if not the usual one")
    add("--script", type=Path, metavar="FILE", help="what a scripted agent says and proposes")
    add("--workdir", type=Path, metavar="DIR", help="where it works (default: here)")
    add("--worktree", action="store_true", help="give each fork a git work tree of its own")
    add("--agent", metavar="ID", help="the agent's id (default: YOU-PROVIDER)")
    add("--max-tokens", type=MAX_TOKENS_TYPE, metavar="N", help="the most for one reply")
    add("--price", type=price_type, metavar="IN,OUT", help="US dollars for a million tokens")
    add("--params", type=params_type, metavar="JSON", help="more fields for each model request")
    add(
        "--timeout",
        type=SECONDS_TYPE,
        default=DEFAULT_TIMEOUT_S,
        metavar="SECONDS",
        help="the longest that a command may run (default: 600)",
    )
    add(
        "--url", help=f"the server (default: ACCORD_URL, your profile, or {connection.DEFAULT_URL})"
    )
    add("--as", dest="id", metavar="ID", help="the id, on a server that runs with --auth open")


def params_type(text: str) -> dict[str, object]:
    """The fields that `--params` adds to each request, for argparse."""
    import msgspec

    try:
        return msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.MsgspecError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"this is not a JSON object: {error}") from None


def run(args: argparse.Namespace) -> int:
    """Check everything that can be checked first, then join and work."""
    session = connection.session_of(args)
    workdir = (args.workdir or Path.cwd()).resolve()
    if not workdir.is_dir():
        raise Refused(Reason.NOT_FOUND, f"{workdir} is not a directory; give --workdir another one")
    from accord.cli.agent.behaviors import behavior_maker

    maker = behavior_maker(args)
    asyncio.run(take_part(args, session, workdir, maker))
    return 0


async def take_part(
    args: argparse.Namespace, session: str, workdir: Path, maker: "BehaviorMaker"
) -> None:
    """Join, and answer prompts until the session ends."""
    from accord.agents.conversation import Conversation
    from accord.agents.loop import Agent
    from accord.agents.shell import CommandLimits
    from accord.cli.agent.identity import agent_identity, only_one

    identity = await agent_identity(args, args.provider or args.host or "acp", workdir)
    with only_one(identity, session):
        async with open_client(identity) as client:
            seat = await client.join(session, metadata=maker.metadata or None)
            conversation = Conversation(seat.me)
            behavior = maker.make(client, session, conversation, workdir)
            agent = Agent(
                seat,
                behavior,
                workdir,
                limits=CommandLimits(timeout_s=args.timeout),
                on_message=conversation.receive,
            )
            agent.recorder_of = maker.recorder_of
            print(f"{seat.me} is in {session} and works in {workdir}. Ctrl-C ends it.", flush=True)
            try:
                await until_terminated(agent.run())
            finally:
                await maker.close()


def open_client(identity: "AgentIdentity") -> "Client":
    """A client that speaks for the agent."""
    from accord.cli.connection_notice import ConnectionNotice
    from accord.client import Client

    return Client(
        identity.url,
        token=identity.token,
        id=identity.id if identity.token is None else None,
        kind="agent" if identity.token is None else None,
        watch=ConnectionNotice(identity.url),
    )


async def until_terminated(work: "Coroutine[Any, Any, None]") -> None:
    """Run until the end or SIGTERM; what runs is killed and reported before this returns."""
    import contextlib
    import signal

    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    with contextlib.suppress(asyncio.CancelledError):
        await task
