"""Rooms: sessions in which people and agents work. The slices join here into one context."""

from collections.abc import Iterator

from accord.core.kernel.context import Context, Deciders, Evolvers, PresencePort, unchanged
from accord.core.kernel.effects import ReplayedMessage
from accord.core.room import admission, session_lifecycle
from accord.core.room.admission import admit, is_or_was_member
from accord.core.room.approval import gate_timeouts, gates, tool_proposals, votes
from accord.core.room.conversation import error_reports, interrupts, prompts, responses, thinking
from accord.core.room.conversation.prompts import PromptSubmitted
from accord.core.room.deadlines import Tick, due_instants, tick
from accord.core.room.decisions import rulings
from accord.core.room.forking import forks, merge_approval, merges, pact_tasks
from accord.core.room.membership import (
    announcements,
    heartbeats,
    joining,
    leaving,
    presence,
    role_assignment,
)
from accord.core.room.shared_context import context_items, secrets
from accord.core.room.shared_context.context_items import ContextAdded
from accord.core.room.state import Room
from accord.core.room.threads import session_events
from accord.core.room.visibility import is_open_reference, record_audience


def messages_for_joiner(room: Room, member_id: str) -> Iterator[ReplayedMessage]:
    """Messages for a member who joins: the members, and the context and secrets they may read."""
    yield from announcements.member_announcements(room)
    yield from context_items.items_for_joiner(room, member_id)
    yield from secrets.secrets_for_joiner(room, member_id)


SLICES = (
    session_lifecycle,
    joining,
    leaving,
    announcements,
    role_assignment,
    presence,
    prompts,
    responses,
    thinking,
    tool_proposals,
    gates,
    votes,
    interrupts,
    rulings,
    secrets,
    forks,
    merges,
    pact_tasks,
    merge_approval,
)
DECIDE: Deciders = {
    Tick: tick,
    **error_reports.DECIDE,
    **heartbeats.DECIDE,
    **{body: decider for part in SLICES for body, decider in part.DECIDE.items()},
}
PLAIN_EVOLVE: Evolvers = {
    **context_items.EVOLVE,
    **gate_timeouts.EVOLVE,
    **{event: evolver for part in SLICES for event, evolver in part.EVOLVE.items()},
}
SEEING_EVENTS: Evolvers = {
    **PLAIN_EVOLVE,
    ContextAdded: session_events.noting_events(PLAIN_EVOLVE[ContextAdded]),
    PromptSubmitted: session_events.reopening(PLAIN_EVOLVE[PromptSubmitted]),
}
# Chunks change nothing and are not folded; an open stream says enough about its fork.
EVOLVE: Evolvers = {
    event: evolver if evolver is unchanged else merge_approval.noting_changes(evolver)
    for event, evolver in SEEING_EVENTS.items()
}
CONTEXT: Context[Room] = Context(
    name="room",
    initial_state=lambda stream: Room(id=stream.removeprefix("room/")),
    decide=DECIDE,
    evolve=EVOLVE,
    admit=admit,
    deadlines=due_instants,
    tick_body=Tick(),
    startup_body=Tick(after_restart=True),
    knows_id=is_open_reference,
    state_type=Room,
    presence=PresencePort(
        audience=record_audience,
        replay_for=messages_for_joiner,
        heartbeat_policy=heartbeats.heartbeat_policy,
        disconnect_body=presence.disconnect_update,
        return_body=presence.reconnect_update,
        is_member=is_or_was_member,
        connected_members=admission.connected_members,
        dormant_summary=session_lifecycle.session_owner,
    ),
)
