"""Whether a host runs our hook and reaches our server, for `connect --check` and `doctor`."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from accord.cli.doctor.check_result import FAIL, OK, WARN, CheckResult

if TYPE_CHECKING:
    from accord.hosts.adapters.host import HostAdapter
    from accord.hosts.connections import Connection

EXIT_UNHEALTHY = 5
VERSION_TIMEOUT_S = 20.0
HOOK_TIMEOUT_S = 60.0
MCP_TIMEOUT_S = 30.0
# Every agent is refused this, whatever the policy says, so asking for it opens no gate.
REFUSED_COMMAND = "accord approve accord-check"
HANDSHAKE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "accord-check", "version": "1"},
}


def print_checks(adapter: "HostAdapter", *, as_json: bool) -> int:
    """Check the connection of this repository; 5 if something keeps the gate from holding."""
    from accord.cli.doctor.command import print_results
    from accord.cli.hosts.repository import connection_for, current_repository
    from accord.core.kernel.refusal import Reason, Refused

    connection = connection_for(adapter.name, current_repository().root.resolve())
    if connection is None:
        raise Refused(
            Reason.NOT_FOUND,
            f"{adapter.title} is not connected in this repository; run `accord connect "
            f"{adapter.name}`",
        )
    return print_results(list(check_connection(adapter, connection)), as_json=as_json)


def check_connections() -> Iterator[CheckResult]:
    """Every connection of this user, for `accord doctor`."""
    from accord.hosts.adapters.table import HOSTS
    from accord.hosts.connections import ConnectionRecordError, list_connections

    try:
        connections = list_connections(os.environ)
    except ConnectionRecordError as error:
        yield CheckResult(FAIL, "host", str(error), "Repair it, or connect that host again.")
        return
    for connection in connections:
        if connection.host in HOSTS:
            yield from check_connection(HOSTS[connection.host], connection)


def check_connection(adapter: "HostAdapter", connection: "Connection") -> Iterator[CheckResult]:
    """Settings, program, trust, hook, MCP server and identity."""
    where = f"{adapter.title} in {connection.root}"
    if not Path(connection.root).is_dir():
        cure = f"Remove {record_of(connection)} if the repository is gone for good."
        yield CheckResult(WARN, "host", f"{where}: the repository is gone", cure)
        return
    yield check_program(adapter, where)
    yield from check_settings(adapter, connection, where)
    if adapter.name == "codex":
        yield check_codex_trust(adapter, connection, where)
    yield check_identity(connection, where)
    yield check_mcp(adapter, connection, where)
    if has_gate(adapter):
        yield check_hook(adapter, connection, where)
        yield check_last_call(adapter, connection, where)
    else:
        yield CheckResult(WARN, "gate", f"{where}: {adapter.limits[0]}")


def record_of(connection: "Connection") -> Path:
    from accord.hosts.connections import connection_path

    return connection_path(os.environ, connection.id)


def has_gate(adapter: "HostAdapter") -> bool:
    from accord.hosts.hook_events import HOOK_EVENTS

    return adapter.name in HOOK_EVENTS


def check_program(adapter: "HostAdapter", where: str) -> CheckResult:
    """The host is installed, and of which version it is."""
    program = next(filter(None, map(shutil.which, adapter.programs)), None)
    if program is None:
        names = " or ".join(adapter.programs)
        return CheckResult(WARN, "host", f"{where}: there is no {names} in your PATH")
    try:
        done = subprocess.run(
            [program, "--version"],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return CheckResult(WARN, "host", f"{where}: {program} --version failed ({error})")
    version = (done.stdout.strip().splitlines() or ["an unknown version"])[0]
    tested = f"; tested with {adapter.version}" if adapter.version else "; UNTESTED"
    return CheckResult(OK, "host", f"{where}: {version[:60]}{tested}")


def check_settings(
    adapter: "HostAdapter", connection: "Connection", where: str
) -> Iterator[CheckResult]:
    """Our entries are in the host's files, and nothing there switches hooks off."""
    from accord.cli.hosts.connect import plan
    from accord.core.kernel.refusal import Refused

    cure = f"Run: accord connect {adapter.name}"
    try:
        changed = [each.path for each in plan(adapter, connection.id) if each.is_needed]
    except Refused as error:
        yield CheckResult(FAIL, "settings", f"{where}: {error.detail}", cure)
        return
    if changed:
        files = ", ".join(map(str, changed))
        yield CheckResult(FAIL, "settings", f"{where}: our entries are not in {files}", cure)
    else:
        yield CheckResult(OK, "settings", f"{where}: our entries are in place")
    for reason in adapter.disabled_by(os.environ, Path(connection.root)):
        said = f"{where}: {reason}, so our hook does not run and NOTHING IS GATED"
        yield CheckResult(FAIL, "settings", said, "Remove that setting.")


def check_codex_trust(adapter: "HostAdapter", connection: "Connection", where: str) -> CheckResult:
    """Codex lists our hooks as trusted."""
    from accord.cli.hosts.codex_trust import listed_hooks
    from accord.hosts.codex_hooks import CodexError

    cure = "Run `accord connect codex`, or review the hooks in codex."
    try:
        skipped = [each.event for each in listed_hooks(adapter, connection) if not each.will_run]
    except CodexError as error:
        return CheckResult(WARN, "trust", f"{where}: not known, {error}", cure)
    if skipped:
        said = f"{where}: Codex skips our hooks for {', '.join(skipped)}; NOTHING IS GATED"
        return CheckResult(FAIL, "trust", said, cure)
    return CheckResult(OK, "trust", f"{where}: Codex trusts our hooks")


def check_identity(connection: "Connection", where: str) -> CheckResult:
    """The agent's key is valid, and the agent is a member of its session."""
    import asyncio

    from accord.client import Client
    from accord.client.errors import ClientError
    from accord.hosts.connection_token import ConnectionToken

    cure = f"Run: accord disconnect {connection.host}, then accord connect {connection.host}"
    try:
        client = Client(connection.url, token=ConnectionToken(connection))
        detail = asyncio.run(client.session(connection.session))
    except ClientError as error:
        return CheckResult(FAIL, "identity", f"{where}: {error}", cure)
    if detail.standing != "member":  # a former member is shown, as the only one
        said = f"{where}: {connection.agent} is not a member of {connection.session} any more"
        return CheckResult(FAIL, "identity", said, f"Run: accord connect {connection.host}")
    name = detail.name or connection.session
    return CheckResult(OK, "identity", f"{where}: {connection.agent} is a member of {name}")


def check_mcp(adapter: "HostAdapter", connection: "Connection", where: str) -> CheckResult:
    """The MCP server that the host starts offers our tools."""
    from accord.hosts.adapters.host import mcp_words

    requests = (
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HANDSHAKE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    )
    sent = "".join(json.dumps(each) + "\n" for each in requests)
    try:
        done = subprocess.run(
            mcp_words(record_of(connection), adapter.name),
            input=sent,
            capture_output=True,
            text=True,
            cwd=connection.root,
            timeout=MCP_TIMEOUT_S,
            check=False,
        )
        answers = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
        tools = next(each["result"]["tools"] for each in answers if each.get("id") == 2)
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, StopIteration):
        return CheckResult(
            FAIL, "mcp", f"{where}: the MCP server gives no tools", "See that the server runs."
        )
    if not tools:
        return CheckResult(FAIL, "mcp", f"{where}: the MCP server has no tools", "Connect again.")
    return CheckResult(OK, "mcp", f"{where}: the MCP server offers {len(tools)} tools")


def check_hook(adapter: "HostAdapter", connection: "Connection", where: str) -> CheckResult:
    """The command in the host's settings refuses a call, by the rule and not by a failure."""
    from accord.hosts.connections import hook_command
    from accord.hosts.hook_events import HOOK_EVENTS, REFUSED_OUTRIGHT

    event = next(each for each in HOOK_EVENTS[adapter.name] if each.is_gate)
    command = hook_command(record_of(connection), adapter.name, event)
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            input=json.dumps(refused_call(adapter.name, connection, event.name)),
            capture_output=True,
            text=True,
            cwd=connection.root,
            timeout=HOOK_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return CheckResult(FAIL, "gate", f"{where}: the hook failed ({error})", "Connect again.")
    said = done.stdout + done.stderr
    if REFUSED_OUTRIGHT in said:
        return CheckResult(OK, "gate", f"{where}: the hook answers, and refuses what it must")
    shown = said.strip()[:300] or "nothing, which lets the call run"
    cure = "Run `accord daemon status`; daemon.log in the configuration directory says more."
    return CheckResult(FAIL, "gate", f"{where}: the hook does not hold; it said: {shown}", cure)


def refused_call(host: str, connection: "Connection", event: str) -> dict[str, object]:
    """A shell call in the host's form."""
    from accord.hosts.hook_events import SHELL_TOOLS
    from accord.hosts.last_hook_call import CHECK_SESSION

    return {
        "hook_event_name": event,
        "session_id": CHECK_SESSION,
        "cwd": connection.root,
        "tool_name": SHELL_TOOLS[host],
        "tool_input": {"command": REFUSED_COMMAND},
        "tool_use_id": CHECK_SESSION,
    }


def check_last_call(adapter: "HostAdapter", connection: "Connection", where: str) -> CheckResult:
    """The host itself has run the hook since it was connected; only a call of its own shows it."""
    from accord.hosts.last_hook_call import last_hook_call

    at = last_hook_call(record_of(connection))
    if at is None:
        said = f"{where}: {adapter.title} itself has not asked the hook since it was connected"
        cure = "Start it in the repository and let it read a file; then check again."
        return CheckResult(WARN, "calls", said, cure)
    return CheckResult(OK, "calls", f"{where}: {adapter.title} asked the hook {local_time(at)}")


def local_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).astimezone().strftime("on %Y-%m-%d at %H:%M")
