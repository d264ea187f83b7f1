"""A body of each of the types that are more than members, prompts, answers, tools and gates."""

from accord.core.kernel.actor import Actor
from accord.core.kernel.log import Body
from accord.core.room.forks import ForkCreate, ForkSwitch
from accord.core.room.heartbeats import HeartbeatPing, HeartbeatPong
from accord.core.room.interrupts import InterruptAcknowledge, InterruptRaise
from accord.core.room.merges import MergeExecute, MergePropose
from accord.core.room.prompts import PromptAmend, PromptDraft
from accord.core.room.secrets import SecretRevoke, SecretShare
from accord.core.room.shelf import ContextAdd, ContextRemove, ContextUpdate
from accord.core.room.state import Strategy, Urgency
from accord.core.room.thinking import ThinkingChunk, ThinkingEnd, ThinkingStart


def more_of_each(me: Actor) -> list[Body]:
    """Well-formed, and true of whoever says it."""
    return [
        HeartbeatPing(),
        HeartbeatPong(),
        ContextAdd(key="k", content_type="text", content="text"),
        ContextUpdate(key="k", reason="Better", new_content="more"),
        ContextRemove(key="k", reason="Old"),
        SecretShare(key="s", scope=(me.seat,), value_ref="env:KEY"),
        SecretRevoke(key="s", reason="Leaked"),
        PromptDraft(content="Pl", contributors=(me.seat,)),
        PromptAmend(original_prompt="prompt", amendment="And", reason="Forgot"),
        ThinkingStart(agent=me.seat, prompt_ref="prompt", visible_to="all"),
        ThinkingChunk(text="hm"),
        ThinkingEnd(),
        InterruptRaise(urgency=Urgency.PAUSE, message="Wait"),
        InterruptAcknowledge(interrupt="i", by=me.seat, action_taken="paused"),
        ForkCreate(
            name="Try", from_point="prompt", reason="To see", participants=(), copy_context=False
        ),
        ForkSwitch(target_fork="main"),
        MergePropose(
            source_fork="try", target_fork="main", strategy=Strategy.APPEND, summary="Done"
        ),
        MergeExecute(merge_proposal="m"),
    ]
