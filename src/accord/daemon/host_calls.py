"""A host's event about a tool becomes a call that the rules can read.

The arguments stay as the host gave them, except that the working directory is added and a caption
for people is taken out: they are what people approve, and what a later try is compared with.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from accord.core.policy.reported_call import CallKind, Place, ReportedCall
from accord.daemon.host_tools import (
    CAPTIONS,
    DIRECTORIES,
    KIND_BY_TOOL,
    MCP_PREFIXES,
    OWN_NAMES,
    OWN_SERVER,
    OWN_TOOLS,
)
from accord.hosts.connections import Connection

CWD, HOST_CWD = "cwd", "hook_cwd"
MAX_CAPTION = 500
MAX_NAME = 256


class InvalidEventError(ValueError):
    """The host's event cannot be read; the message says what is wrong with it."""


class HookRequest(msgspec.Struct, frozen=True):
    """What a hook sends; `cwd` and `home` are those of the hook's process."""

    record: str
    host: str
    event: str
    payload: dict[str, Any]
    version: str = ""
    cwd: str = ""
    home: str = ""


class Subagent(NamedTuple):
    """A subagent as its host names it."""

    id: str
    type: str


class HostCall(NamedTuple):
    """One call of a tool; `use_id` is the host's own id of it, empty if it has none."""

    tool: str
    arguments: dict[str, Any]
    kind: CallKind
    caption: str
    host_session: str
    use_id: str
    subagent: Subagent | None
    cwd: str
    home: str
    mcp_server: str = ""
    is_own_tool: bool = False
    model: str = ""
    transcript: str = ""

    def reported(self, place: Place) -> ReportedCall:
        """The call for the rules."""
        return ReportedCall(self.kind, self.tool, self.arguments, place)


def call_of(request: HookRequest, connection: Connection) -> HostCall:
    """The call of a tool event; raises InvalidEventError."""
    payload = request.payload
    tool = payload.get("tool_name")
    if not isinstance(tool, str) or not tool or len(tool) > MAX_NAME or not tool.isprintable():
        raise InvalidEventError("the host named no tool")
    arguments = arguments_of(payload)
    own_kind = KIND_BY_TOOL[connection.host].get(tool)
    server, name = ("", "") if own_kind else mcp_tool_of(tool, payload)
    kind = own_kind or (CallKind.MCP if server else CallKind.OTHER)
    caption_key = CAPTIONS.get(connection.host, {}).get(tool, "")
    caption = arguments.pop(caption_key, "") if caption_key else ""
    keys = DIRECTORIES.get(connection.host, {}).get(tool, ())
    base = text_of(payload, "cwd") or workspace_of(payload) or request.cwd
    cwd = absolute(chosen_directory(arguments, keys, base))
    arguments[HOST_CWD if CWD in arguments else CWD] = cwd
    return HostCall(
        tool=tool,
        arguments=arguments,
        kind=kind,
        caption=caption[:MAX_CAPTION] if isinstance(caption, str) else "",
        host_session=host_session_of(payload),
        use_id=text_of(payload, "tool_use_id"),
        subagent=subagent_of(payload),
        cwd=cwd,
        home=absolute(request.home) if request.home else "",
        mcp_server=server,
        is_own_tool=server == OWN_SERVER and tool in OWN_NAMES and name in OWN_TOOLS,
        model=text_of(payload, "model")[:MAX_NAME],
        transcript=text_of(payload, "transcript_path"),
    )


def workspace_of(payload: Mapping[str, Any]) -> str:
    """The only directory that Cursor has open; empty if there are several, or none."""
    match payload.get("workspace_roots"):
        case [str() as root]:
            return root
        case _:
            return ""


def chosen_directory(arguments: Mapping[str, Any], keys: tuple[str, ...], base: str) -> str:
    """Where the call runs: in the directory of the event, or in the one that its arguments name.

    Hosts take `..` out of the text before they look at links, and so does this.
    """
    chosen = [arguments[key] for key in keys if arguments.get(key) not in (None, "")]
    if not chosen:
        return base
    if len(chosen) > 1 or not isinstance(chosen[0], str):
        raise InvalidEventError("the call names no single directory to run in")
    return os.path.normpath(os.path.join(base, chosen[0]))  # noqa: PTH118 - text, links unresolved


def arguments_of(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments; Cursor sends those of MCP tools as text."""
    arguments = payload.get("tool_input", {})
    if isinstance(arguments, str):
        try:
            arguments = msgspec.json.decode(arguments)
        except msgspec.DecodeError:
            raise InvalidEventError("the arguments of the call are not JSON") from None
    if not isinstance(arguments, dict):
        raise InvalidEventError("the arguments of the call are not an object")
    return dict(arguments)


def mcp_tool_of(tool: str, payload: Mapping[str, Any]) -> tuple[str, str]:
    """The MCP server and its tool; empty for a tool of the host itself."""
    context = payload.get("mcp_context") or payload.get("mcp_server")
    if isinstance(context, dict):
        server = text_of(context, "server_name") or text_of(context, "name")
        return server or "unknown", text_of(context, "tool_name") or tool.rpartition("__")[2]
    if not tool.startswith(MCP_PREFIXES):
        return "", ""
    prefix = next(each for each in MCP_PREFIXES if tool.startswith(each))
    server, _, name = tool.removeprefix(prefix).partition("__")
    return (server, name) if name else ("unknown", server)


def subagent_of(payload: Mapping[str, Any]) -> Subagent | None:
    """The subagent that makes the call; None for the agent itself."""
    id = text_of(payload, "agent_id") or text_of(payload, "subagent_id")
    return Subagent(id[:128], text_of(payload, "agent_type")[:128]) if id else None


def host_session_of(payload: Mapping[str, Any]) -> str:
    """The host's own id of its session."""
    return (text_of(payload, "session_id") or text_of(payload, "conversation_id"))[:128]


def text_of(fields: Mapping[str, Any], key: str) -> str:
    """A text of the event; empty if there is none."""
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def absolute(path: str) -> str:
    """The path without symbolic links; raises InvalidEventError if it is not absolute."""
    if not path.startswith("/") or "\0" in path:
        raise InvalidEventError("the host did not say in which directory the call would run")
    return str(Path(path).resolve())
