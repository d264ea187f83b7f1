"""The prompts an agent has to answer, with their amendments and interrupts."""

from collections.abc import Callable

import msgspec

from accord.client import Envelope
from accord.core.room.conversation.interrupts import InterruptAcknowledge, InterruptRaise
from accord.core.room.conversation.prompts import PromptAmend, PromptConfig, PromptSubmit
from accord.core.room.conversation.responses import ResponseStart
from accord.core.room.membership.announcements import ParticipantAnnounce
from accord.core.room.state import Urgency

InterruptCallback = Callable[[str, InterruptRaise], None]


class Prompt(msgspec.Struct):
    """A prompt and the fork it was sent in; amendments are added as they arrive."""

    id: str
    by: str
    content: str
    fork: str | None = None
    amendments: list[str] = []
    context_keys: tuple[str, ...] = ()
    config: PromptConfig | None = None

    def news(self) -> list[str]:
        """Amendments not handed out yet; each is returned once."""
        new, self.amendments = self.amendments, []
        return new


class PromptQueue:
    """Unanswered prompts, collected from the messages of the session.

    Joining replays history: prompts already answered or stopped there are not answered again.
    """

    def __init__(
        self, me: str, on_joined: Callable[[], None], on_interrupt: InterruptCallback
    ) -> None:
        self._me = me
        self._on_joined = on_joined
        self._on_interrupt = on_interrupt
        self.pending: dict[str, Prompt] = {}
        self.current: Prompt | None = None
        self._dropped: dict[str, Prompt] = {}
        self._unanswered: dict[str, InterruptRaise] = {}
        self._joined = False

    def take(self) -> Prompt:
        """Remove the oldest prompt from the queue and make it the current one."""
        self.current = self.pending.pop(next(iter(self.pending)))
        return self.current

    def receive(self, envelope: Envelope) -> bool:
        """Process one message; returns whether there is new work."""
        match envelope.body:
            case PromptSubmit(target_agent=agent) as asked if agent == self._me:
                self.pending[envelope.id] = Prompt(
                    envelope.id,
                    envelope.sender,
                    asked.content,
                    envelope.fork,
                    context_keys=asked.context_keys,
                    config=asked.config,
                )
                return True
            case PromptAmend(original_prompt=prompt, amendment=amendment):
                return self._amend(prompt, amendment)
            case ResponseStart(agent=agent, prompt_ref=prompt) if agent == self._me:
                self.pending.pop(prompt, None)
            case InterruptRaise() as raised if raised.target in (None, self._me):
                self._interrupt(envelope.id, raised)
            case InterruptAcknowledge(interrupt=interrupt, by=by) if by == self._me:
                self._unanswered.pop(interrupt, None)
            case ParticipantAnnounce(id=id) if id == self._me:
                self._mark_joined()
            case _:
                pass
        return False

    def _amend(self, prompt: str, amendment: str) -> bool:
        """Amend a queued or current prompt, or requeue a stopped one."""
        if prompt in self._dropped:
            self.pending[prompt] = self._dropped.pop(prompt)
        target = self.pending.get(prompt)
        if target is None and self.current and self.current.id == prompt:
            target = self.current
        if target is None:
            return False
        target.amendments.append(amendment)
        return True

    def _interrupt(self, id: str, raised: InterruptRaise) -> None:
        if raised.urgency is not Urgency.PAUSE:
            self._drop_pending()
        elif self.current and raised.inject_context:
            self.current.amendments.append(raised.inject_context)
        if self._joined:
            self._on_interrupt(id, raised)
        else:
            self._unanswered[id] = raised

    def _drop_pending(self) -> None:
        """Stop everything asked so far; an amendment requeues a stopped prompt."""
        stopped = [*self.pending.values(), *([self.current] if self.current else [])]
        self._dropped |= {prompt.id: prompt for prompt in stopped}
        self.pending.clear()

    def _mark_joined(self) -> None:
        self._joined = True
        self._on_joined()
        for id, raised in list(self._unanswered.items()):
            self._on_interrupt(id, raised)
        self._unanswered.clear()
