"""A prompt in the making: everybody who is there sees it grow."""

from collections.abc import Awaitable, Callable, Iterable

from accord.core.kernel.log import Body
from accord.core.room.prompts import PromptConfig, PromptDraft, PromptSubmit

from .errors import ServerRefused
from .outbox import Accepted

Send = Callable[[Body, str | None], Awaitable[Accepted]]


class Draft:
    """`await draft.write(text)` as often as it takes, then `await draft.submit()`.

    Each text replaces the one before; `id` is what others need to go on with it.
    """

    def __init__(
        self, send: Send, contributors: Iterable[str], agent: str | None, id: str | None
    ) -> None:
        self._send = send
        self._contributors = tuple(contributors)
        self._agent = agent
        self.id = id
        self.text = ""

    async def write(self, text: str, *, contributors: Iterable[str] = ()) -> Accepted:
        """What it says now, and who else worked on it."""
        self._contributors = (*dict.fromkeys((*self._contributors, *contributors)),)
        body = PromptDraft(text, self._contributors, self._agent)
        accepted = await self._say(body)
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
        """Ask what was written last; returns the prompt's id."""
        if (target := agent or self._agent) is None:
            raise ValueError("Say which agent is asked")
        body = PromptSubmit(self.text, target, self._contributors, tuple(context_keys), config)
        return (await self._say(body)).id

    async def _say(self, body: Body) -> Accepted:
        """About this draft; a server that was restarted has forgotten it, and does not mind."""
        try:
            return await self._send(body, self.id)
        except ServerRefused as no:
            if self.id is None or self.id not in no.details.get("unknown", ()):
                raise
            self.id = None
            return await self._send(body, None)
