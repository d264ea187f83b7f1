"""A prompt that other members can watch while it is being written.

Each version replaces the one before. Where several people edit one draft, the page merges their
versions (`web/src/lib/session/shared_draft.ts`).
"""

from collections.abc import Awaitable, Callable, Iterable

from accord.client.connection.outbox import AcceptedMessage
from accord.client.errors import ServerRefused
from accord.core.kernel.messages import Body
from accord.core.room.conversation.prompts import PromptConfig, PromptDraft, PromptSubmit

SendFunction = Callable[[Body, str | None], Awaitable[AcceptedMessage]]


class Draft:
    """Call `await draft.write(text)` for each version, then `await draft.submit()`.

    Each version replaces the one before. Pass `id` to other members so that they can continue it.
    """

    def __init__(
        self, send: SendFunction, contributors: Iterable[str], agent: str | None, id: str | None
    ) -> None:
        self._send = send
        self._contributors = tuple(contributors)
        self._agent = agent
        self.id = id
        self.text = ""

    async def write(self, text: str, *, contributors: Iterable[str] = ()) -> AcceptedMessage:
        """Replace the text of the draft, and add `contributors` to its authors."""
        self._contributors = (*dict.fromkeys((*self._contributors, *contributors)),)
        body = PromptDraft(text, self._contributors, self._agent)
        accepted = await self._send_or_restart(body)
        self.text = text
        self.id = self.id or accepted.id
        return accepted

    async def submit(
        self,
        agent: str | None = None,
        *,
        context_keys: Iterable[str] = (),
        config: PromptConfig | None = None,
    ) -> str:
        """Submit the latest text as a prompt; returns the prompt's id."""
        if (target := agent or self._agent) is None:
            raise ValueError("Name the agent to ask, in draft(agent=...) or submit(agent=...)")
        body = PromptSubmit(self.text, target, self._contributors, tuple(context_keys), config)
        return (await self._send_or_restart(body)).id

    async def _send_or_restart(self, body: Body) -> AcceptedMessage:
        """Begin a new draft if the server has restarted: it does not store drafts."""
        try:
            return await self._send(body, self.id)
        except ServerRefused as refusal:
            if self.id is None or self.id not in refusal.details.get("unknown", ()):
                raise
            self.id = None
            return await self._send(body, None)
