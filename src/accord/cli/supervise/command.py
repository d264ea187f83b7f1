"""Run an agent's program in its terminal, so that messages can wake it.

You use the program as ever: every key and every byte passes unchanged. When a message for the agent
arrives, its prompt is typed for you, but only if the program waits for input, its line is empty and
you have typed nothing for 20 seconds. No question of the program is ever answered. `accord agents`
shows which programs can be woken.

Log in first, or give the token of a supervisor. The agent is the one that `accord connect` set up
in this repository, unless --agent names another.

Examples:
  accord supervise -- claude
  accord supervise -- codex --model gpt-5.5
  accord supervise --agent reviewer --runtime gemini_cli -- /opt/gemini/bin/gemini
  accord supervise --agent coder --token-file ~/.coder-supervisor -- codex
"""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.core.kernel.refusal import Reason, Refused

if TYPE_CHECKING:
    from accord.hosts.connections import Connection

TOKEN_VARIABLE = "ACCORD_SUPERVISOR_TOKEN"  # noqa: S105 - a name
# By the name of the program, the runtime, and what `accord connect` calls the host.
PROGRAMS = {
    "claude": ("claude_code", "claude-code"),
    "codex": ("codex_cli", "codex"),
    "gemini": ("gemini_cli", "gemini"),
}
HOSTS_OF_RUNTIMES = dict(PROGRAMS.values())


def arguments(parser: argparse.ArgumentParser) -> None:
    """--agent, --runtime, --url, --token-file and the command."""
    add = parser.add_argument
    known = ", ".join(HOSTS_OF_RUNTIMES)
    add("--agent", metavar="ID", help="the agent (default: the one connected here)")
    add("--runtime", metavar="NAME", help=f"which program it is: {known} (default: by its name)")
    add("--url", help="the server (default: ACCORD_URL, or your profile)")
    add(
        "--token-file",
        type=Path,
        metavar="FILE",
        help=f"a token with the capability supervise (default: {TOKEN_VARIABLE}, else your login)",
    )
    add("command", metavar="COMMAND", nargs="+", help="the program and its arguments, after --")


def run(args: argparse.Namespace) -> int:
    """The exit code is the program's."""
    from accord.client.connection.router import new_id
    from accord.core.attention.runtimes import check_runtime_name
    from accord.supervisor.link_process import LinkProcess
    from accord.supervisor.relay import Relay

    if not (os.isatty(0) and os.isatty(1)):
        raise Refused(
            Reason.MALFORMED,
            "accord supervise needs a terminal: run it in one, without redirecting its input or "
            "output",
        )
    runtime = args.runtime or runtime_of(args.command[0])
    check_runtime_name(runtime)
    environment = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
    facts: dict[str, Any] = {
        "runtime": runtime,
        "instance": new_id(),
        "directory": os.getcwd(),  # noqa: PTH109 - as text
        "environment": {
            name: os.environ[name] for name in ("HOME", "CLAUDE_CONFIG_DIR") if name in os.environ
        },
        **credential(args, runtime),
    }
    link = LinkProcess(0, environment)
    try:
        return Relay(args.command, environment, link.start, facts=facts).run()
    finally:
        link.close()


def runtime_of(program: str) -> str:
    """The runtime by the name of its program."""
    name = Path(program).name
    if name not in PROGRAMS:
        raise Refused(
            Reason.MALFORMED,
            f"{name} is not a program that can be woken; say what it is with --runtime: "
            f"{', '.join(HOSTS_OF_RUNTIMES)}",
        )
    return PROGRAMS[name][0]


def credential(args: argparse.Namespace, runtime: str) -> dict[str, Any]:
    """A token that was given, or a device of its own for this run."""
    import msgspec

    from accord.cli.connection import DEFAULT_URL, resolve_settings
    from accord.cli.server_url import check_url

    connected = connection_here(runtime)
    if token := given_token(args.token_file):
        known = resolve_settings(args.url, as_id=args.agent or "supervisor")
        url = check_url(args.url or known.url or DEFAULT_URL)
        check_supervisor(token, args.agent)
        return {"url": url, "token": token}
    agent = args.agent or (connected.agent if connected else "")
    if not agent:
        raise Refused(
            Reason.MALFORMED,
            "Which agent? Name it with --agent, or run `accord connect` in this repository first",
        )
    return {"device": msgspec.to_builtins(enrolled(args.url, agent, runtime, connected))}


def given_token(file: Path | None) -> str:
    """The token in the file or the variable; empty if there is none."""
    if file is None:
        return os.environ.get(TOKEN_VARIABLE, "").strip()
    from accord.settings.profiles import ProfileError, read_private

    try:
        return read_private(os.fspath(file)).decode("ascii", "replace").strip()
    except (OSError, ProfileError) as error:
        raise Refused(Reason.MALFORMED, f"The file {file} cannot be used: {error}") from None


def check_supervisor(token: str, agent: str | None) -> None:
    """Refuse a token that could not supervise, before the program is started."""
    from accord.client.identity import read_claims

    claims = read_claims(token)
    if claims is None:
        raise Refused(
            Reason.UNAUTHENTICATED,
            "The supervisor's token is no Accord token; `accord token issue --capabilities "
            "supervise` makes one",
        )
    if agent is not None and claims.agent_id != agent:
        raise Refused(
            Reason.CLAIM_MISMATCH,
            f"The supervisor's token is for {claims.agent_id}, not for {agent}",
        )


def connection_here(runtime: str) -> "Connection | None":
    """What `accord connect` recorded for this host and this directory, the newest."""
    from accord.hosts.connections import ConnectionRecordError, list_connections

    here = Path.cwd().resolve()
    host = HOSTS_OF_RUNTIMES.get(runtime)
    try:
        found = [
            each
            for each in list_connections(os.environ)
            if each.host == host and here.is_relative_to(each.root)
        ]
    except ConnectionRecordError:
        return None
    return found[-1] if found else None


def enrolled(
    url: str | None, agent: str, runtime: str, connected: "Connection | None"
) -> "Connection":
    """A device for this run alone, whose key stays in memory; raises Refused."""
    import asyncio

    from accord.cli.connection import DEFAULT_URL, resolve_settings, token_of
    from accord.hosts.enrolment import ConnectionRequest, account_of, enrol

    known = resolve_settings(url or (connected.url if connected else None))
    token = token_of(known)
    if token is None:
        raise Refused(
            Reason.UNAUTHENTICATED,
            "You are not logged in; `accord login LINK` makes a profile. Or give the token of a "
            "supervisor with --token-file",
        )
    server = known.url or DEFAULT_URL
    request = ConnectionRequest(
        host=HOSTS_OF_RUNTIMES.get(runtime, runtime.replace("_", "-")),
        title=f"{runtime} in a supervised terminal",
        root=Path.cwd(),
        repository="",
        url=server,
        session="",
        agent=agent,
        supervises=True,
    )

    async def made() -> "Connection":
        return await enrol(request, token, await account_of(server, token))

    return asyncio.run(made())
