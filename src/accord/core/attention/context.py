"""The context `attention`."""

from accord.core.attention import cursors, trigger_answers
from accord.core.attention.state import Attention, initial_state
from accord.core.attention.waking import deciders as waking
from accord.core.kernel.context import Command, Context, Deciders, Evolvers
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind, Permission


def admit(attention: Attention, command: Command) -> None:
    """Only the agent itself and the server change what an agent has read."""
    actor = command.actor
    is_own = (actor.workspace, actor.principal) == (attention.workspace, attention.agent)
    if not is_own and actor.kind is not Kind.SYSTEM:
        raise Refused(Reason.CLAIM_MISMATCH, f"You are {actor.principal}, not {attention.agent}")
    if command.message.body.needs is Permission.SERVER_ONLY and actor.kind is not Kind.SYSTEM:
        raise Refused(Reason.FORBIDDEN, "Only the server decides about waking")


PARTS = (cursors, trigger_answers, waking)
DECIDE: Deciders = {body: decider for part in PARTS for body, decider in part.DECIDE.items()}
EVOLVE: Evolvers = {event: evolver for part in PARTS for event, evolver in part.EVOLVE.items()}
CONTEXT: Context[Attention] = Context(
    name="attention",
    initial_state=initial_state,
    decide=DECIDE,
    evolve=EVOLVE,
    admit=admit,
    state_type=Attention,
    deadlines=waking.deadlines,
    keeps_state=True,
)
