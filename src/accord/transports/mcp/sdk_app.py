"""The official SDK's server with our tools; imported at the first request that needs it.

Importing the SDK takes most of a second of CPU and tens of megabytes.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import mcp_types as types
import msgspec
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from starlette.types import Message, Receive, Scope, Send

from accord.core.kernel.refusal import Reason, Refused
from accord.transports.http.auth import Caller
from accord.transports.mcp import gate_form
from accord.transports.mcp.errors import error_answer
from accord.transports.mcp.resources import ResourceChanges
from accord.transports.mcp.sdk_resources import (
    CALLER_KEY,
    REQUEST_ID_KEY,
    Context,
    SdkResources,
    call_of,
)
from accord.transports.mcp.sessions import MAX_SESSIONS
from accord.transports.mcp.tool import ToolAnswer, ToolCall
from accord.transports.mcp.tool_call_fast_path import MODERN_REVISION
from accord.transports.mcp.tool_calls import INSTRUCTIONS, ToolBox, describe

GATED_TOOL, WAITING_TOOL, VOTING_TOOL = "propose_and_wait", "whats_waiting", "pvp_send"
GATE_MESSAGE = "{} asks for approval. Decide at this address; closing this decides nothing."
UNDECIDED = "The person decided nothing, so the gate stays open"
NO_JSON = "send finite numbers and whole characters, as JSON has them"


class SdkApp:
    """The SDK's ASGI application for this server's tools."""

    def __init__(
        self,
        box: ToolBox,
        changes: ResourceChanges,
        server_info: Mapping[str, str],
        max_body: int,
    ) -> None:
        self.box = box
        self.resources = SdkResources(changes)
        self.tool_list = types.ListToolsResult.model_validate(
            {"tools": [describe(tool) for tool in box.tools.values()]}
        )
        self.schemas = {tool.name: tool.input_schema for tool in self.tool_list.tools}
        self.server: Server[Any] = Server(
            server_info["name"],
            version=server_info["version"],
            title=server_info["title"],
            instructions=INSTRUCTIONS,
            get_tool_input_schema=self.schemas.get,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self.resources.list_resources,
            on_list_resource_templates=self.resources.list_templates,
            on_read_resource=self.resources.read,
            on_subscribe_resource=self.resources.subscribe,
            on_unsubscribe_resource=self.resources.unsubscribe,
            on_subscriptions_listen=self.resources.listen,
        )
        self.manager = StreamableHTTPSessionManager(
            self.server,
            json_response=True,
            # Idle sessions are ended by us: those that the fast path uses look idle to the SDK.
            session_idle_timeout=None,
            max_sessions=MAX_SESSIONS,
            max_request_body_size=max_body,
        )
        self._ready = asyncio.Event()
        self._stop = asyncio.Event()

    async def run(self) -> None:
        """Serve until `stop`; the SDK's task group has to start and end in one task."""
        async with self.manager.run():
            self._ready.set()
            await self._stop.wait()

    def stop(self) -> None:
        self.resources.stop()
        self._stop.set()

    async def handle(
        self, scope: Scope, receive: Receive, send: Send, caller: Caller, new_id: Callable[[], str]
    ) -> None:
        """Serve one request of this caller."""
        await self._ready.wait()
        about = {CALLER_KEY: caller, REQUEST_ID_KEY: new_id, "user": sdk_user(caller.principal)}
        await self.manager.handle_request({**scope, **about}, receive, send)

    async def delete_session(self, id: bytes, principal: tuple[str, str]) -> None:
        """End a session as its owner would."""
        scope: Scope = {
            "type": "http",
            "method": "DELETE",
            "path": "/mcp",
            "query_string": b"",
            "headers": [(b"mcp-session-id", id), (b"accept", b"*/*")],
            "user": sdk_user(principal),
        }

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(_: Message) -> None: ...

        await self.manager.handle_request(scope, receive, send)

    async def _list_tools(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return self.tool_list

    async def _call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        if params.name not in self.box.tools:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name[:128]}")
        arguments, call = params.arguments or {}, call_of(context)
        if not is_json([arguments, params.request_state]):
            refusal = Refused(Reason.MALFORMED, f"Wrong arguments for {params.name}: {NO_JSON}")
            return result_of(error_answer(refusal, call.new_request_id()))
        if params.name == GATED_TOOL and can_show_address(context):
            return await self._propose(call, arguments, params.request_state)
        may_vote = gate_form.is_own_connection(call.caller) and can_show_form(context)
        asks = arguments.get("decide") and not arguments.get("envelope")
        if params.name == VOTING_TOOL and asks and may_vote:
            return await self._decide(call, arguments["decide"], params)
        return result_of(await self.box.call(params.name, arguments, call))

    async def _decide(
        self, call: ToolCall, id: object, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Show the person a gate as a form, and cast their answer as their vote."""
        waiting = await self.box.call(WAITING_TOOL, {}, call)
        gates = msgspec.json.decode(waiting.body).get("gates", ())
        gate = next((each for each in gates if each["id"] == id), None)
        message = gate_form.form_message(gate) if gate is not None else None
        if gate is None or message is None:
            return result_of(await self.box.call(VOTING_TOOL, {"decide": id}, call))
        answer = (params.input_responses or {}).get("gate")
        if not isinstance(answer, types.ElicitResult) or params.request_state != gate["id"]:
            form = types.ElicitRequestFormParams(message=message, requested_schema=gate_form.SCHEMA)
            return types.InputRequiredResult(
                input_requests={"gate": types.ElicitRequest(params=form)},
                request_state=gate["id"],
            )
        content = answer.content if answer.action == "accept" else None
        ballot = gate_form.vote(gate, call.caller.actor.principal, content or {})
        if ballot is None:
            refusal = Refused(Reason.WRONG_STATE, UNDECIDED)
            return result_of(error_answer(refusal, call.new_request_id()))
        answered = call._replace(by_form=True)
        return result_of(await self.box.call(VOTING_TOOL, {"envelope": ballot}, answered))

    async def _propose(
        self, call: ToolCall, arguments: dict[str, Any], state: str | None
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Propose, show the person at the host where the gate is decided, then wait.

        Whatever they answer is no vote: votes are cast at that address, with their own credential.
        The state is the proposal's id. It need not be secret, because only its proposer can use it.
        """
        if state is not None:
            again = {**arguments, "proposal": state}
            return result_of(await self.box.call(GATED_TOOL, again, call))
        is_new = not arguments.get("proposal")
        first = {**arguments, "wait_seconds": 0} if is_new else arguments
        answer = await self.box.call(GATED_TOOL, first, call)
        shown = msgspec.json.decode(answer.body)
        if not is_new or arguments.get("wait_seconds") == 0 or shown.get("status") != "waiting":
            return result_of(answer)
        about = types.ElicitRequestURLParams(
            message=GATE_MESSAGE.format(call.caller.actor.principal), url=shown["gate"]["url"]
        )
        return types.InputRequiredResult(
            input_requests={"gate": types.ElicitRequest(params=about)},
            request_state=shown["proposal"],
        )


def sdk_user(principal: tuple[str, str]) -> AuthenticatedUser:
    """The principal in the SDK's terms, by which it binds sessions; never the token itself."""
    workspace, id = principal
    token = AccessToken(token="", client_id=id, scopes=[], claims={"iss": workspace})
    return AuthenticatedUser(token)


def can_show_address(context: Context) -> bool:
    """Whether the client can show its user an address within a call."""
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    has_url = elicitation is not None and elicitation.url is not None
    return has_url and context.protocol_version == MODERN_REVISION


def can_show_form(context: Context) -> bool:
    """Whether the client can show its user a form within a call."""
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    has_form = elicitation is not None and elicitation.form is not None
    return has_form and context.protocol_version == MODERN_REVISION


def is_json(sent: object) -> bool:
    """Whether this is JSON: the SDK also takes NaN, Infinity and halves of a surrogate pair."""
    try:
        json.dumps(sent, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return False
    return True


def result_of(answer: ToolAnswer) -> types.CallToolResult:
    """The same object as text and as structured content."""
    return types.CallToolResult(
        content=[types.TextContent(text=answer.body.decode())],
        structured_content=msgspec.json.decode(answer.body),
        is_error=answer.is_error,
    )
