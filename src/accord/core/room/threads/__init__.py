"""Threads: messages between agents and people, without tools, forks or gates (MSG)."""

from accord.core.kernel.context import Context, Deciders, Evolvers, PresencePort, no_events
from accord.core.kernel.messages import Elapsed
from accord.core.room.threads import thread_creation, thread_posts, thread_status
from accord.core.room.threads.state import STREAM_PREFIX, Thread
from accord.core.room.threads.thread_access import admit, is_of_workspace

PARTS = (thread_creation, thread_posts, thread_status)
DECIDE: Deciders = {
    Elapsed: no_events,
    **{body: decider for part in PARTS for body, decider in part.DECIDE.items()},
}
EVOLVE: Evolvers = {event: evolver for part in PARTS for event, evolver in part.EVOLVE.items()}
CONTEXT: Context[Thread] = Context(
    name="thread",
    initial_state=lambda stream: Thread(id=stream.removeprefix(STREAM_PREFIX)),
    decide=DECIDE,
    evolve=EVOLVE,
    admit=admit,
    state_type=Thread,
    presence=PresencePort(is_member=is_of_workspace),
    keeps_state=True,
)
