"""The fast path: exact, common shapes of `tools/call`, answered without the SDK.

Whatever it does not recognise in every detail it leaves to the SDK's application, which answers the
same requests in the same way at a hundred times the cost. Tests compare the two.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import Raw, Struct, field

from accord.transports.mcp.sessions import McpSessions
from accord.transports.mcp.tool import Tool, ToolAnswer, encode
from accord.transports.mcp.tool_calls import ToolBox

MODERN_REVISION = "2026-07-28"
MODERN_REVISION_HEADER = MODERN_REVISION.encode()
# Revisions with sessions; a request may also leave the header out.
SESSION_REVISIONS = frozenset({b"2024-11-05", b"2025-03-26", b"2025-06-18", b"2025-11-25"})
CONTENT_TYPES = frozenset({b"application/json", b"application/json; charset=utf-8"})
ACCEPTED_TYPES = frozenset(
    {
        b"application/json, text/event-stream",
        b"text/event-stream, application/json",
        b"application/json,text/event-stream",
        b"text/event-stream,application/json",
        b"application/json",
        b"*/*",
    }
)
HOST, AUTHORIZATION, COOKIE = b"host", b"authorization", b"cookie"
# Headers that we or the SDK read; a request in which one appears twice is left to the SDK.
READ_HEADERS = frozenset(
    {
        HOST,
        AUTHORIZATION,
        COOKIE,
        b"accept",
        b"content-type",
        b"mcp-method",
        b"mcp-name",
        b"mcp-protocol-version",
        b"mcp-session-id",
    }
)
COMMON_HEADERS = READ_HEADERS | {
    b"accept-encoding",
    b"accept-language",
    b"connection",
    b"content-length",
    b"user-agent",
}
PARAMETER_HEADER_PREFIX = b"mcp-param-"
RESERVED_META_PREFIX = "io.modelcontextprotocol/"
REVISION_KEY = f"{RESERVED_META_PREFIX}protocolVersion"
CAPABILITIES_KEY = f"{RESERVED_META_PREFIX}clientCapabilities"
CLIENT_KEY = f"{RESERVED_META_PREFIX}clientInfo"
SERVER_KEY = f"{RESERVED_META_PREFIX}serverInfo"
MODERN_META_KEYS = frozenset({REVISION_KEY, CAPABILITIES_KEY, CLIENT_KEY})
# Read by the SDK for tracing.
TRACE_KEYS = frozenset({"traceparent", "tracestate", "baggage"})
MAX_SAFE_INTEGER = 1 << 53
# `_meta` is the same in most requests of a client, so what was found about it is kept.
MAX_KEPT_META_BYTES = 1024
NO_META = Raw(b"null")

RequestHeaders = Mapping[bytes, bytes]


class CallParams(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """What a call names; `meta` is looked at later."""

    name: str
    arguments: dict[str, Any] | None = None
    meta: Raw = field(name="_meta", default=NO_META)


class CallRequest(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A request that calls a tool; libraries differ in which ids they take for an integer."""

    jsonrpc: Literal["2.0"]
    id: Any
    method: Literal["tools/call"]
    params: CallParams


decode_request = msgspec.json.Decoder(CallRequest).decode


class Empty(Struct, frozen=True, forbid_unknown_fields=True):
    """An object without content."""


class Elicitation(Struct, frozen=True, forbid_unknown_fields=True):
    """The modes of elicitation that a client has."""

    form: Empty = Empty()
    url: Empty = Empty()


class Roots(Struct, frozen=True, forbid_unknown_fields=True):
    """Whether a client reports changes of its roots."""

    listChanged: bool = False  # noqa: N815 - the protocol's name


class Capabilities(Struct, frozen=True, forbid_unknown_fields=True):
    """The capabilities that common clients declare."""

    elicitation: Elicitation = Elicitation()
    roots: Roots = Roots()
    sampling: Empty = Empty()


class ClientInfo(Struct, frozen=True, forbid_unknown_fields=True):
    """How a client describes itself."""

    name: str
    version: str
    title: str = ""
    description: str = ""
    websiteUrl: str = ""  # noqa: N815 - the protocol's name


class FastCall(NamedTuple):
    """A recognised call, and how its response begins and ends."""

    id: int | str
    tool: Tool
    arguments: dict[str, Any]
    session: bytes = b""


Era = Literal["modern", "session"]


def read_headers(raw: list[tuple[bytes, bytes]]) -> tuple[RequestHeaders, bool]:
    """The headers by name; False if one that matters appears twice or names a parameter."""
    found = dict(raw)
    are_single = True
    for name in found.keys() - COMMON_HEADERS:
        if name.startswith(PARAMETER_HEADER_PREFIX):
            are_single = False
    if len(found) < len(raw):
        names = [name for name, _ in raw]
        are_single = are_single and all(names.count(name) <= 1 for name in READ_HEADERS)
    return found, are_single


class ToolCallFastPath:
    """Recognises and answers calls."""

    def __init__(self, box: ToolBox, sessions: McpSessions, server_info: Mapping[str, str]) -> None:
        self.box = box
        self.sessions = sessions
        self._tool_by_header = {name.encode(): tool for name, tool in box.tools.items()}
        stamp = encode({SERVER_KEY: server_info})
        self._modern_end = b',"resultType":"complete","_meta":%b}}' % stamp

    def recognise(
        self, headers: RequestHeaders, body: bytes, principal: tuple[str, str]
    ) -> FastCall | None:
        """The call in a request with single headers; None if the SDK has to look at it."""
        if (
            headers.get(b"content-type") not in CONTENT_TYPES
            or headers.get(b"accept") not in ACCEPTED_TYPES
        ):
            return None
        revision = headers.get(b"mcp-protocol-version")
        if revision is not None and revision not in SESSION_REVISIONS:
            return self._modern_call(headers, body)
        session = headers.get(b"mcp-session-id", b"")
        if not self.sessions.is_usable(session, principal):
            return None
        return self._session_call(session, body)

    def _modern_call(self, headers: RequestHeaders, body: bytes) -> FastCall | None:
        if headers[b"mcp-protocol-version"] != MODERN_REVISION_HEADER:
            return None
        if headers.get(b"mcp-method") != b"tools/call":
            return None
        tool = self._tool_by_header.get(headers.get(b"mcp-name", b""))
        call = self._decode(body, is_modern_meta)
        return call if call is not None and call.tool is tool else None

    def _session_call(self, session: bytes, body: bytes) -> FastCall | None:
        call = self._decode(body, is_session_meta)
        return None if call is None else call._replace(session=session)

    def _decode(self, body: bytes, accepts_meta: Callable[[bytes], bool]) -> FastCall | None:
        try:
            request = decode_request(body)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            return None
        id, params = request.id, request.params
        tool = self.box.tools.get(params.name)
        if tool is None or not tool.fast or not is_plain_id(id):
            return None
        if not accepts_meta(bytes(params.meta)):
            return None
        return FastCall(id, tool, params.arguments or {})

    def render(self, fast: FastCall, answer: ToolAnswer) -> bytes:
        """The JSON-RPC response, with the same object as text and as structured content."""
        return b'{"jsonrpc":"2.0","id":%b,"result":{"content":[{"type":"text","text":%b}],%b' % (
            encode(fast.id),
            encode(answer.body.decode()),
            b'"structuredContent":%b,"isError":%b%b'
            % (
                answer.body,
                b"true" if answer.is_error else b"false",
                b"}}" if fast.session else self._modern_end,
            ),
        )


def is_plain_id(id: Any) -> bool:
    """Whether this is an id that every JSON library reads and writes alike."""
    if isinstance(id, str):
        return True
    return type(id) is int and -MAX_SAFE_INTEGER < id < MAX_SAFE_INTEGER


def kept_if_short(judge: Callable[[bytes], bool]) -> Callable[[bytes], bool]:
    """The same function, with a cache for arguments that are short."""
    kept = lru_cache(256)(judge)

    def judge_kept(meta: bytes) -> bool:
        return kept(meta) if len(meta) <= MAX_KEPT_META_BYTES else judge(meta)

    return judge_kept


def decoded_meta(meta: bytes) -> Any:
    """What `_meta` says; False if it cannot be read."""
    try:
        return msgspec.json.decode(meta)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return False


@kept_if_short
def is_session_meta(raw: bytes) -> bool:
    """Whether `_meta` of a request in a session has nothing that the SDK acts on."""
    meta = decoded_meta(raw)
    if meta is None:
        return True
    if not isinstance(meta, dict) or not TRACE_KEYS.isdisjoint(meta):
        return False
    return has_plain_token(meta) and not any(key.startswith(RESERVED_META_PREFIX) for key in meta)


@kept_if_short
def is_modern_meta(raw: bytes) -> bool:
    """Whether `_meta` of a request without session has the known fields in their known shapes."""
    meta = decoded_meta(raw)
    if not isinstance(meta, dict) or meta.get(REVISION_KEY) != MODERN_REVISION:
        return False
    if not TRACE_KEYS.isdisjoint(meta) or not has_plain_token(meta):
        return False
    if any(key.startswith(RESERVED_META_PREFIX) and key not in MODERN_META_KEYS for key in meta):
        return False
    try:
        msgspec.convert(meta.get(CAPABILITIES_KEY), Capabilities)
        if CLIENT_KEY in meta:
            msgspec.convert(meta[CLIENT_KEY], ClientInfo)
    except msgspec.ValidationError:
        return False
    return True


def has_plain_token(meta: Mapping[str, Any]) -> bool:
    """Whether the progress token, if there is one, is of a type that the protocol allows."""
    return "progressToken" not in meta or is_plain_id(meta["progressToken"])
