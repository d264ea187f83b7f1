"""The table of MSG methods, which HTTP and MCP share, and the one way to call them."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from accord.api import threads as api
from accord.api import wakes as wakes_api
from accord.core.kernel.actor import Actor
from accord.core.kernel.refusal import Reason, Refused
from accord.transports.http.auth import Caller
from accord.transports.msg import read_methods, write_methods
from accord.transports.msg.argument_checks import check_request
from accord.transports.msg.service import ThreadService
from accord.transports.msg.waking import wake_history
from accord.transports.msg.waking import wake_methods as waking

# Each handler takes the request type of its own row.
Handler = Callable[[ThreadService, Actor, Any], Awaitable[Struct]]


class Annotations(NamedTuple):
    """What a method does to the world, as MCP annotates tools."""

    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False


class Method(NamedTuple):
    """One method. `on_mcp`: whether it is also an MCP tool."""

    name: str
    request: type[api.MethodRequest]
    result: type[Struct]
    handler: Handler
    annotations: Annotations = Annotations()
    on_mcp: bool = True

    @property
    def summary(self) -> str:
        """The first line of the handler's docstring."""
        return (self.handler.__doc__ or "").partition("\n")[0]


READS = Annotations(read_only=True, idempotent=True)

TABLE = (
    Method("create_thread", api.CreateThread, api.CreatedThread, write_methods.create_thread),
    Method("get_thread", api.GetThread, api.ThreadDetail, read_methods.get_thread, READS),
    Method("post_message", api.PostMessage, api.PostedMessage, write_methods.post_message),
    Method("read_messages", api.ReadMessages, api.MessagePage, read_methods.read_messages, READS),
    Method(
        "ack_read",
        api.AckRead,
        api.Acknowledged,
        write_methods.ack_read,
        Annotations(idempotent=True),
    ),
    Method(
        "update_thread_status",
        api.UpdateThreadStatus,
        api.UpdatedThread,
        write_methods.update_thread_status,
    ),
    Method(
        "summarize_thread",
        api.SummarizeThread,
        api.ThreadSummary,
        read_methods.summarize_thread,
        READS,
    ),
    Method(
        "list_threads",
        api.ListThreads,
        api.ThreadList,
        read_methods.list_threads,
        READS,
        on_mcp=False,
    ),
    Method(
        "add_participants",
        api.AddParticipants,
        api.ThreadParticipants,
        write_methods.add_participants,
        on_mcp=False,
    ),
    Method(
        "heartbeat_session",
        api.HeartbeatSession,
        api.HeartbeatRecorded,
        waking.heartbeat_session,
        Annotations(idempotent=True),
    ),
    Method("take_wakes", api.TakeWakes, api.TakenWakes, waking.take_wakes, on_mcp=False),
    Method(
        "trigger_participant",
        api.TriggerParticipant,
        api.TriggerResult,
        waking.trigger_participant,
    ),
    Method("list_agents", api.ListAgents, api.AgentList, waking.list_agents, READS, on_mcp=False),
    Method(
        "list_wakes",
        wakes_api.ListWakes,
        wakes_api.WakeList,
        wake_history.list_wakes,
        READS,
        on_mcp=False,
    ),
    Method("pause_agent", api.PauseAgent, api.PausedAgent, waking.pause_agent, on_mcp=False),
)
METHODS: Mapping[str, Method] = {method.name: method for method in TABLE}


def thread_actor(caller: Caller) -> Actor:
    """Who calls: `runtime` is the credential's `session_id`."""
    return caller.actor if caller.identity is None else caller.identity.actor


def call_method(
    service: ThreadService, caller: Caller, name: str, request: Struct
) -> Awaitable[Struct]:
    """Call a method as this caller; this, or waiting for the result, raises Refused."""
    method = METHODS.get(name)
    if method is None or not isinstance(request, method.request):
        raise Refused(Reason.NO_ROUTE, f"There is no method {name[:64]} with such arguments")
    actor = thread_actor(caller)
    check_request(actor, request)
    return method.handler(service, actor, request)
