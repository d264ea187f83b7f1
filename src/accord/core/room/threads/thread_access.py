"""Who may read and post in a thread (OPEN-123)."""

from accord.core.kernel.actor import Actor
from accord.core.kernel.context import Command
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, ThreadRole
from accord.core.room.threads.state import Thread, no_thread_refusal

# These may do in every thread of their workspace what its participants may.
LEADING_ROLES = frozenset({ThreadRole.OPERATOR, ThreadRole.ORCHESTRATOR})


def is_leading(actor: Actor) -> bool:
    """Whether this is an operator or orchestrator."""
    return actor.thread_role in LEADING_ROLES


def may_take_part(thread: Thread, actor: Actor) -> bool:
    """Participants, the creator, operators and orchestrators."""
    in_thread = actor.principal in thread.participants or actor.principal == thread.created_by
    return in_thread or is_leading(actor)


def is_of_workspace(thread: Thread, actor: Actor) -> bool:
    """Whether a retry can be this actor's: ids are unique only within a workspace."""
    return actor.kind is Kind.SYSTEM or actor.workspace == thread.workspace


def ensure_access(thread: Thread, actor: Actor) -> None:
    """Refuse everyone else; to other workspaces the thread does not exist."""
    if actor.kind is Kind.SYSTEM:
        return
    if not thread.created_by or thread.workspace != actor.workspace:
        raise no_thread_refusal(thread.id)
    if not may_take_part(thread, actor):
        detail = (
            f"{actor.principal} is not in the thread {thread.id}; ask one of its participants, "
            "an orchestrator or an operator to add you"
        )
        raise Refused(Reason.FORBIDDEN, detail)


def admit(thread: Thread, command: Command) -> None:
    """The same for a command; creating a thread is open to everyone in the workspace."""
    if thread.created_by or not command.message.body.after_end:
        ensure_access(thread, command.actor)
