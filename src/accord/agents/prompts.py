"""What an agent was asked, by whom and where, and what it was told since."""

from collections.abc import Callable

import msgspec

from accord.client import Envelope
from accord.core.room.interrupts import InterruptAcknowledge, InterruptRaise
from accord.core.room.participants import ParticipantAnnounce
from accord.core.room.prompts import PromptAmend, PromptSubmit
from accord.core.room.state import Urgency
from accord.core.room.streams import ResponseStart

Raised = Callable[[str, InterruptRaise], None]


class Prompt(msgspec.Struct):
    """What somebody asked, in the fork they asked it; amendments come as they are made."""

    id: str
    by: str
    content: str
    fork: str | None = None
    amendments: list[str] = []

    def news(self) -> list[str]:
        """Amendments that were not taken yet; each is handed out once."""
        fresh, self.amendments = self.amendments, []
        return fresh


class Desk:
    """What waits to be answered, read from what the room hears.

    On joining, history comes first: what was answered, or stopped, in it is not begun again.
    """

    def __init__(self, me: str, arrived: Callable[[], None], raised: Raised) -> None:
        self._me = me
        self._arrived = arrived
        self._raised = raised
        self.waiting: dict[str, Prompt] = {}
        self.current: Prompt | None = None
        self._dropped: dict[str, Prompt] = {}
        self._unanswered: dict[str, InterruptRaise] = {}
        self._here = False

    def take(self) -> Prompt:
        """The oldest that waits; it is the current one from now on."""
        self.current = self.waiting.pop(next(iter(self.waiting)))
        return self.current

    def hear(self, said: Envelope) -> bool:
        """One more message; whether there is something to go on with."""
        match said.body:
            case PromptSubmit(content=content, target_agent=agent) if agent == self._me:
                self.waiting[said.id] = Prompt(said.id, said.sender, content, said.fork)
                return True
            case PromptAmend(original_prompt=prompt, amendment=amendment):
                return self._amend(prompt, amendment)
            case ResponseStart(agent=agent, prompt_ref=prompt) if agent == self._me:
                self.waiting.pop(prompt, None)
            case InterruptRaise() as raised if raised.target in (None, self._me):
                self._interrupt(said.id, raised)
            case InterruptAcknowledge(interrupt=interrupt, by=by) if by == self._me:
                self._unanswered.pop(interrupt, None)
            case ParticipantAnnounce(id=id) if id == self._me:
                self._arrive()
            case _:
                pass
        return False

    def _amend(self, prompt: str, amendment: str) -> bool:
        """To one that waits or is being answered, or back to one that was stopped."""
        if prompt in self._dropped:
            self.waiting[prompt] = self._dropped.pop(prompt)
        found = self.waiting.get(prompt)
        if found is None and self.current and self.current.id == prompt:
            found = self.current
        if found is None:
            return False
        found.amendments.append(amendment)
        return True

    def _interrupt(self, id: str, raised: InterruptRaise) -> None:
        if raised.urgency is not Urgency.PAUSE:
            self._drop()
        elif self.current and raised.inject_context:
            self.current.amendments.append(raised.inject_context)
        if self._here:
            self._raised(id, raised)
        else:
            self._unanswered[id] = raised

    def _drop(self) -> None:
        """A stop is for everything asked so far; an amendment brings it back."""
        stopped = [*self.waiting.values(), *([self.current] if self.current else [])]
        self._dropped |= {prompt.id: prompt for prompt in stopped}
        self.waiting.clear()

    def _arrive(self) -> None:
        self._here = True
        self._arrived()
        for id, raised in list(self._unanswered.items()):
            self._raised(id, raised)
        self._unanswered.clear()
