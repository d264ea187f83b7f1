"""One body of each message type that the scenarios do not cover."""

from accord.core.kernel.actor import Actor
from accord.core.kernel.messages import Body
from accord.core.room.conversation.interrupts import InterruptAcknowledge, InterruptRaise
from accord.core.room.conversation.prompts import PromptAmend, PromptDraft
from accord.core.room.conversation.thinking import ThinkingChunk, ThinkingEnd, ThinkingStart
from accord.core.room.forking.fork_state import MergeStrategy
from accord.core.room.forking.forks import ForkCreate, ForkSwitch
from accord.core.room.forking.merges import MergeExecute, MergePropose
from accord.core.room.membership.heartbeats import HeartbeatPing, HeartbeatPong
from accord.core.room.shared_context.context_items import ContextAdd, ContextRemove, ContextUpdate
from accord.core.room.shared_context.secrets import SecretRevoke, SecretShare
from accord.core.room.state import Urgency


def other_message_bodies(me: Actor) -> list[Body]:
    """Valid bodies that `me` may send."""
    return [
        HeartbeatPing(),
        HeartbeatPong(),
        ContextAdd(key="k", content_type="text", content="text"),
        ContextUpdate(key="k", reason="Better", new_content="more"),
        ContextRemove(key="k", reason="Old"),
        SecretShare(key="s", scope=(me.principal,), value_ref="env:KEY"),
        SecretRevoke(key="s", reason="Leaked"),
        PromptDraft(content="Pl", contributors=(me.principal,)),
        PromptAmend(original_prompt="prompt", amendment="And", reason="Forgot"),
        ThinkingStart(agent=me.principal, prompt_ref="prompt", visible_to="all"),
        ThinkingChunk(text="hm"),
        ThinkingEnd(),
        InterruptRaise(urgency=Urgency.PAUSE, message="Wait"),
        InterruptAcknowledge(interrupt="i", by=me.principal, action_taken="paused"),
        ForkCreate(
            name="Try", from_point="prompt", reason="To see", participants=(), copy_context=False
        ),
        ForkSwitch(target_fork="main"),
        MergePropose(
            source_fork="try", target_fork="main", strategy=MergeStrategy.APPEND, summary="Done"
        ),
        MergeExecute(merge_proposal="m"),
    ]
