"""The words of a wake: what was done, what came of it, and why (OPEN-126)."""

from enum import StrEnum

import msgspec

from accord.core.kernel.messages import Instant


class WakeAction(StrEnum):
    """How a runtime is woken; in the order in which these are tried (MSG-3.8-10)."""

    TRIGGER_RUNTIME = "trigger_runtime"
    RESUME_SESSION = "resume_session"
    SPAWN_SESSION = "spawn_session"
    NONE = "none"


class WakeResult(StrEnum):
    """How a wake ended."""

    DELIVERED = "delivered"
    DEFERRED = "deferred"
    FALLBACK_USED = "fallback_used"
    SKIPPED = "skipped"
    FAILED = "failed"


class WakeCause(StrEnum):
    """Why a wake ended as it did; stored with every decision."""

    UNREAD = "unread_messages"
    NOTHING_UNREAD = "nothing_unread"
    PAUSED = "agent_paused"
    COOL_DOWN = "cool_down"
    UNDER_WAY = "wake_under_way"
    WAITING = "wake_waiting"
    COST_BOUND = "wakes_per_hour"
    POLITENESS_LOOP = "politeness_loop"
    AWAKE = "already_active"
    SUPERVISOR_AWAY = "supervisor_away"
    HUMAN_INPUT = "human_input_busy"
    HUMAN_COLLISION = "human_input_collision"
    UNMANAGED = "unmanaged_runtime"
    NO_FALLBACK = "no_fallback"
    COMMAND_FAILED = "command_failed"
    OPEN_ELSEWHERE = "open_elsewhere"
    INTERRUPTED = "interrupted"
    READ_MEANWHILE = "read_meanwhile"
    FORCED = "forced"


RESULT_OF_ACTION = {
    WakeAction.TRIGGER_RUNTIME: WakeResult.DELIVERED,
    WakeAction.RESUME_SESSION: WakeResult.FALLBACK_USED,
    WakeAction.SPAWN_SESSION: WakeResult.FALLBACK_USED,
}

SENTENCES: dict[WakeCause, str] = {
    WakeCause.UNREAD: "There are unread messages",
    WakeCause.NOTHING_UNREAD: "Nothing is unread, so there is nothing to wake for",
    WakeCause.PAUSED: "A person has paused this agent",
    WakeCause.COOL_DOWN: "It was woken for this thread a moment ago",
    WakeCause.UNDER_WAY: "A wake of this agent is under way",
    WakeCause.WAITING: "A wake for this thread is waiting already",
    WakeCause.COST_BOUND: "It was woken as often as the operator allows in one hour",
    WakeCause.POLITENESS_LOOP: (
        "The last messages are small talk between two agents; an event, a task, a commit or a "
        "person has to follow before one of them is woken again"
    ),
    WakeCause.AWAKE: "It is active and will see the messages without being woken",
    WakeCause.SUPERVISOR_AWAY: "Its supervisor is not connected at the moment",
    WakeCause.HUMAN_INPUT: "A person is typing in its terminal",
    WakeCause.HUMAN_COLLISION: (
        "A person's input is in its terminal, and no other way to wake it is set up"
    ),
    WakeCause.UNMANAGED: (
        "No supervisor runs it and no adapter is set up for it; start it with accord supervise, "
        "or have an operator set up --wake"
    ),
    WakeCause.NO_FALLBACK: "It could not be woken, and no other way is set up",
    WakeCause.COMMAND_FAILED: "The command that should wake it failed",
    WakeCause.OPEN_ELSEWHERE: "Its conversation is open in another program",
    WakeCause.INTERRUPTED: (
        "It was cut off while it was under way; if the messages are still unread, it is asked for "
        "again"
    ),
    WakeCause.READ_MEANWHILE: "It has read the messages in the meantime",
    WakeCause.FORCED: "An operator forced it",
}


class WakeOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of one wake, as the audit keeps it and as an answer repeats it."""

    wake: str
    action: WakeAction
    result: WakeResult
    cause: WakeCause
    triggered_at: Instant
    detail: str = ""
    deferred_until: Instant | None = None
    fallback_action: WakeAction = WakeAction.NONE
    command: str = ""  # for people to read; never run

    @property
    def did_something(self) -> bool:
        """Whether a runtime was reached; only then a cool-down follows."""
        return self.result in {WakeResult.DELIVERED, WakeResult.FALLBACK_USED}
