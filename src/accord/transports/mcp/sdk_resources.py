"""Resources in the SDK's terms: reading, subscriptions of sessions, and `subscriptions/listen`."""

import asyncio
from typing import Any, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY
from starlette.requests import Request

from accord.core.kernel.refusal import Reason, Refused
from accord.transports.mcp.resources import (
    MAX_URIS,
    MIME_TYPE,
    RESOURCES,
    TEMPLATES,
    ResourceChanges,
    Subscription,
    check_readable,
    read,
)
from accord.transports.mcp.tool import ToolCall

CALLER_KEY = "accord.caller"
REQUEST_ID_KEY = "accord.request_id"
SESSION_HEADER = "mcp-session-id"
RESOURCE_NOT_FOUND = -32002
Context = ServerRequestContext[Any, Any]


def call_of(context: Context) -> ToolCall:
    """Who calls: the caller that was authenticated for this very request."""
    scope = cast("Request", context.request).scope  # every transport here is HTTP
    return ToolCall(scope[CALLER_KEY], scope[REQUEST_ID_KEY])


def as_error(refusal: Refused) -> MCPError:
    """A refusal as an error of the protocol."""
    missing = refusal.reason is Reason.NOT_FOUND
    return MCPError(RESOURCE_NOT_FOUND if missing else types.INVALID_PARAMS, refusal.detail)


class SessionWatch:
    """The subscriptions of one session, and the task that sends its notices."""

    def __init__(self, subscription: Subscription, task: "asyncio.Task[None]") -> None:
        self.subscription = subscription
        self.task = task


class SdkResources:
    """Handlers for the SDK's server."""

    def __init__(self, changes: ResourceChanges) -> None:
        self.changes = changes
        self.services = changes.services
        self.watches: dict[str, SessionWatch] = {}

    async def list_resources(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[types.Resource(**each._asdict(), mime_type=MIME_TYPE) for each in RESOURCES]
        )

    async def list_templates(
        self, _: Context, __: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=each.uri,
                    name=each.name,
                    description=each.description,
                    mime_type=MIME_TYPE,
                )
                for each in TEMPLATES
            ]
        )

    async def read(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            content = await read(self.services, call_of(context), uri)
        except Refused as refusal:
            raise as_error(refusal) from None
        text = types.TextResourceContents(uri=uri, mime_type=MIME_TYPE, text=content.decode())
        return types.ReadResourceResult(contents=[text])

    # Sessions: notices go to the stream that the client opened with GET.

    async def subscribe(
        self, context: Context, params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        caller, uri, session = call_of(context).caller, str(params.uri), session_of(context)
        watch = self.watches.get(session)
        try:
            await check_readable(self.services, caller, uri)
        except Refused as refusal:
            raise as_error(refusal) from None
        if watch is None:
            subscription = Subscription(caller, [])
            self.changes.add(subscription)
            pump = asyncio.create_task(self._send_notices(subscription, context.session))
            watch = self.watches[session] = SessionWatch(subscription, pump)
        if len(watch.subscription.uris) >= MAX_URIS:
            raise MCPError(types.INVALID_PARAMS, f"{MAX_URIS} subscriptions are the most")
        watch.subscription.caller = caller
        watch.subscription.uris.add(uri)
        return types.EmptyResult()

    async def unsubscribe(
        self, context: Context, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        watch = self.watches.get(session_of(context))
        if watch is not None:
            watch.subscription.uris.discard(str(params.uri))
        return types.EmptyResult()

    async def _send_notices(self, subscription: Subscription, session: ServerSession) -> None:
        while True:
            for uri in await self.changes.next_changes(subscription):
                await session.send_resource_updated(uri)

    def session_closed(self, session: str) -> None:
        """Forget the subscriptions of a session."""
        watch = self.watches.pop(session, None)
        if watch is not None:
            self.changes.remove(watch.subscription)
            watch.task.cancel()

    def stop(self) -> None:
        for session in list(self.watches):
            self.session_closed(session)

    # Without sessions: the response to `subscriptions/listen` is the stream.

    async def listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        wanted = params.notifications
        uris = [str(uri) for uri in wanted.resource_subscriptions or ()]
        caller = call_of(context).caller
        if len(uris) > MAX_URIS:
            raise MCPError(types.INVALID_PARAMS, f"{MAX_URIS} subscriptions are the most")
        try:
            for uri in uris:
                await check_readable(self.services, caller, uri)
        except Refused as refusal:
            raise as_error(refusal) from None
        id = context.request_id
        meta: dict[str, Any] = {SUBSCRIPTION_ID_META_KEY: id}
        honored = types.SubscriptionFilter(
            tools_list_changed=wanted.tools_list_changed or None,
            prompts_list_changed=wanted.prompts_list_changed or None,
            resources_list_changed=wanted.resources_list_changed or None,
            resource_subscriptions=uris or None,
        )
        subscription = Subscription(caller, uris)
        self.changes.add(subscription)
        try:
            acknowledged = types.SubscriptionsAcknowledgedNotificationParams(
                notifications=honored, _meta=meta
            )
            await context.session.send_notification(
                types.SubscriptionsAcknowledgedNotification(params=acknowledged),
                related_request_id=id,
            )
            while True:
                for uri in await self.changes.next_changes(subscription):
                    about = types.ResourceUpdatedNotificationParams(uri=uri, _meta=meta)
                    await context.session.send_notification(
                        types.ResourceUpdatedNotification(params=about), related_request_id=id
                    )
        finally:
            self.changes.remove(subscription)


def session_of(context: Context) -> str:
    """The id of the session that a request belongs to."""
    return cast("Request", context.request).headers.get(SESSION_HEADER, "")
