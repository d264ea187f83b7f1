"""A thread as a session, for those who watch it with the tools of sessions (UNI-6)."""

from accord.core.kernel.actor import Actor
from accord.core.kernel.ballot import AnyOf
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Role
from accord.core.room.room_settings import AbsencePolicy, SessionConfig
from accord.core.room.state import Member, Presence, Room
from accord.core.room.threads.state import Thread, ThreadStatus
from accord.core.room.threads.thread_access import is_of_workspace, may_take_part

DAY_SECONDS = 86_400
# Nothing is proposed, forked or joined in a thread.
CONFIG = SessionConfig(
    require_approval_for=(),
    default_gate_quorum=AnyOf(1),
    allow_forks=False,
    max_participants=1,
    ordering_mode="total",
    on_participant_timeout=AbsencePolicy.WAIT,
    heartbeat_interval_seconds=DAY_SECONDS,
    idle_timeout_seconds=DAY_SECONDS,
    away_timeout_seconds=DAY_SECONDS,
)


def watched_thread(thread: Thread, reader: Actor) -> Room:
    """The thread as a session of observers, if this reader may see it; raises Refused."""
    visible = thread.exists and is_of_workspace(thread, reader) and may_take_part(thread, reader)
    if not visible:
        raise Refused(Reason.NO_ROOM, f"There is no session {thread.id}")
    names = dict.fromkeys((*thread.participants, thread.created_by, reader.principal))
    return Room(
        id=thread.id,
        name=thread.title,
        workspace=thread.workspace,
        config=CONFIG,
        created_at=thread.created_at,
        created_by=thread.created_by,
        members={name: observer(name) for name in names},
        ended="closed" if thread.status is ThreadStatus.CLOSED else "",
    )


def observer(name: str) -> Member:
    """A participant; threads do not record what kind it is or whether it is connected."""
    return Member(
        name, name, Kind.AGENT, frozenset({Role.OBSERVER}), presence=Presence.DISCONNECTED
    )
