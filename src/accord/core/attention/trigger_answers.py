"""Answers to `trigger_participant` with a key: a retry gets the first one as it was (OPEN-117).

They are in the stream of who asked, because a key counts per thread and sender, whatever the target
is. What was asked is stored with the answer, so that another request with the key is noticed.
"""

from collections.abc import Iterable

from accord.core.attention.state import Attention
from accord.core.attention.waking.outcomes import WakeOutcome
from accord.core.attention.waking.state import WakeOrder
from accord.core.kernel.context import Command, Deciders, EventOrEffect, Evolvers, unchanged
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event
from accord.core.kernel.role_permissions import Permission


class TriggerAnswer(Body, frozen=True, omit_defaults=True, gc=False):
    """Keep the answer; its id is derived from the key."""

    type = "trigger.answer"
    needs = Permission.MEMBER

    target: str
    order: WakeOrder
    outcome: WakeOutcome
    earlier: WakeOutcome | None = None

    def is_retry_of(self, recorded: Body) -> bool:  # noqa: ARG002 - the caller compares all fields
        """Whether the key is the same: of two requests at once, the first answer is kept."""
        return True


class TriggerAnswered(Event, frozen=True, kw_only=True, gc=False):
    """A request to wake an agent got this answer, which a retry with its key gets again."""

    name = "trigger.answered"

    target: str
    order: WakeOrder
    outcome: WakeOutcome
    earlier: WakeOutcome | None = None


def keep(_: Attention, __: Command, body: TriggerAnswer) -> Iterable[EventOrEffect]:
    return (
        TriggerAnswered(
            target=body.target, order=body.order, outcome=body.outcome, earlier=body.earlier
        ),
    )


DECIDE: Deciders = {TriggerAnswer: keep}
EVOLVE: Evolvers = {TriggerAnswered: unchanged}
