"""Threads over HTTP: `client.threads`.

Every request that changes something carries an idempotency key, so that a request whose answer was
lost can be sent again and is still done once. The client does so a few times by itself.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from accord.api import threads as api
from accord.api import wakes as wakes_api
from accord.client.connection.backoff import Backoff, RetryPolicy
from accord.client.connection.home_events import thread_events
from accord.client.connection.router import new_id
from accord.client.errors import ClientError
from accord.client.http_client import HttpClient, is_transient, retry_after_s
from accord.client.identity import Identity, ServerAddress
from accord.client.paging import read_pages
from accord.core.room.threads.state import SCHEMA_VERSION, MessageKind, ThreadStatus, ThreadType

# Attempts for one request: a restart of the server is bridged, a server that is gone is reported.
MAX_ATTEMPTS = 3

Result = TypeVar("Result")


class Threads:
    """The MSG methods, for one principal."""

    def __init__(self, address: ServerAddress, identity: Identity, retry: RetryPolicy) -> None:
        self._http = HttpClient(address, identity.source)
        # An open server takes the principal's word for who it is.
        self._principal: dict[str, str] = {} if identity.token else {"as": identity.id}
        self._retry = retry

    async def create(
        self,
        title: str,
        participants: Iterable[str],
        *,
        type: ThreadType | str = ThreadType.CONVERSATION,
        key: str | None = None,
    ) -> api.CreatedThread:
        """Create a thread; its creator is a participant."""
        request = api.CreateThread(
            title=title,
            participants=list(participants),
            type=ThreadType(type),
            idempotency_key=key or new_id(),
        )
        return await self._call("create_thread", request, api.CreatedThread)

    async def list(
        self, *, status: ThreadStatus | str | None = None, unread_only: bool = False
    ) -> tuple[api.ThreadDetail, ...]:
        """All threads of the principal, most recently changed first."""
        wanted = None if status is None else ThreadStatus(status)

        async def page_after(thread: str | None) -> api.ThreadList:
            request = api.ListThreads(
                status=wanted, unread_only=unread_only, after=thread, limit=api.MAX_LISTED
            )
            return await self._call("list_threads", request, api.ThreadList)

        pages = read_pages(
            page_after, None, lambda page: page.threads[-1].thread_id if page.threads else None
        )
        return tuple([thread async for page in pages for thread in page.threads])

    async def get(self, thread: str) -> api.ThreadDetail:
        """A thread's title, participants, status and unread count."""
        return await self._call("get_thread", api.GetThread(thread_id=thread), api.ThreadDetail)

    async def post(
        self,
        thread: str,
        body: str,
        *,
        kind: MessageKind | str = MessageKind.CHAT,
        metadata: Mapping[str, Any] | None = None,
        reply_to: str | None = None,
        key: str | None = None,
    ) -> api.PostedMessage:
        """Post a message; it is durable when this returns."""
        request = api.PostMessage(
            thread_id=thread,
            schema_version=SCHEMA_VERSION,
            body=body,
            kind=MessageKind(kind),
            metadata=None if metadata is None else dict(metadata),
            in_reply_to=reply_to,
            idempotency_key=key or new_id(),
        )
        return await self._call("post_message", request, api.PostedMessage)

    async def read(
        self, thread: str, since: int = 0, limit: int = api.DEFAULT_READ, *, peek: bool = False
    ) -> api.MessagePage:
        """One page of messages after `seq` `since`; reading acknowledges nothing.

        With `peek` they are not even counted as seen.
        """
        request = api.ReadMessages(thread_id=thread, since_seq=since, limit=limit, peek=peek)
        return await self._call("read_messages", request, api.MessagePage)

    async def history(
        self, thread: str, since: int = 0, *, peek: bool = False
    ) -> AsyncIterator[api.MessageItem]:
        """All messages after `seq` `since`, page by page; see `read`."""
        pages = read_pages(
            lambda seq: self.read(thread, seq, api.MAX_READ, peek=peek),
            since,
            lambda page: page.next_seq if page.messages else None,
        )
        async for page in pages:
            for message in page.messages:
                yield message

    def changes(self) -> AsyncIterator[tuple[api.ThreadDetail, ...]]:
        """All unread threads, then each thread that changes, until the stream is lost."""
        return thread_events(self._http, self._principal)

    async def acknowledge(self, thread: str, seq: int) -> api.Acknowledged:
        """Move the principal's cursor up to `seq`; it never moves back."""
        request = api.AckRead(thread_id=thread, last_read_seq=seq)
        return await self._call("ack_read", request, api.Acknowledged)

    async def set_status(
        self,
        thread: str,
        status: ThreadStatus | str,
        *,
        reason: str = "",
        force: bool = False,
        key: str | None = None,
    ) -> api.UpdatedThread:
        """Change the status of a thread."""
        request = api.UpdateThreadStatus(
            thread_id=thread,
            status=ThreadStatus(status),
            reason=reason,
            force=force,
            idempotency_key=key or new_id(),
        )
        return await self._call("update_thread_status", request, api.UpdatedThread)

    async def summary(
        self, thread: str, max_messages: int = api.DEFAULT_SUMMARIZED
    ) -> api.ThreadSummary:
        """A short text about the newest messages, and the findings that are still open."""
        request = api.SummarizeThread(thread_id=thread, max_messages=max_messages)
        return await self._call("summarize_thread", request, api.ThreadSummary)

    async def add(
        self, thread: str, participants: Iterable[str], *, key: str | None = None
    ) -> api.ThreadParticipants:
        request = api.AddParticipants(
            thread_id=thread, participants=[*participants], idempotency_key=key or new_id()
        )
        return await self._call("add_participants", request, api.ThreadParticipants)

    async def wake(
        self,
        thread: str,
        target: str,
        *,
        reason: str = "",
        prompt: str = "",
        force: bool = False,
        key: str | None = None,
    ) -> api.TriggerResult:
        """Wake a participant that has unread messages; the result says what happened."""
        request = api.TriggerParticipant(
            thread_id=thread,
            target_agent_id=target,
            reason=reason,
            trigger_prompt=prompt,
            force=force,
            idempotency_key=key or new_id(),
        )
        return await self._call("trigger_participant", request, api.TriggerResult)

    async def agents(self) -> tuple[api.AgentDetail, ...]:
        """The agents of the workspace, with the programs in which they were seen."""
        found = await self._call("list_agents", api.ListAgents(), api.AgentList)
        return found.agents

    async def wakes(
        self, *, agent: str | None = None, thread: str | None = None, limit: int = 50
    ) -> tuple[wakes_api.WakeRow, ...]:
        """What was woken, how, and why; newest first."""
        request = wakes_api.ListWakes(target_agent_id=agent, thread_id=thread, limit=limit)
        return (await self._call("list_wakes", request, wakes_api.WakeList)).wakes

    async def pause_agent(self, agent: str, *, paused: bool = True) -> api.PausedAgent:
        """Keep an agent from being woken, or end that; for people who lead."""
        request = api.PauseAgent(target_agent_id=agent, paused=paused)
        return await self._call("pause_agent", request, api.PausedAgent)

    async def _call(self, method: str, request: msgspec.Struct, kind: type[Result]) -> Result:
        """The result; raises ServerRefused, or Unreachable after the last attempt."""
        body = msgspec.json.encode(request)
        backoff = Backoff(self._retry)
        for attempts_left in range(MAX_ATTEMPTS - 1, -1, -1):
            try:
                return await self._http.read(
                    kind, ("v1", method), self._principal, method="POST", body=body
                )
            except ClientError as error:
                if not attempts_left or not is_transient(error):
                    raise
                await backoff.wait(retry_after_s(error))
        raise AssertionError("the last attempt returns or raises")
