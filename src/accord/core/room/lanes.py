"""What merges go by: the features of every pact that the room heeds, and Rule 2 over them."""

from msgspec.structs import replace

from accord.core.kernel.refusal import Refused, Why
from accord.core.room import forks
from accord.core.room.state import Fork, Lane, Pact, Room

MOST_LANES = 1024


def check_merge(room: Room, source: Fork, target: str | None, *, done: bool) -> None:
    """UNI-21: no fork with the work of a feature comes back before all of it is accepted.

    What a fork took along from those it left comes back with it, so they are asked about, too.
    `done`: to execute a merge comes last, when git has merged and the pact says so.
    """
    past = frozenset(forks.lineage(room, target))
    ours = [room.forks[id] for id in forks.lineage(room, source.id) if id and id not in past]
    branches = {name for fork in ours for name in (fork.name, f"pvp/{fork.id}")}
    for pact in room.pacts.values():
        check_known(pact)
        for lane in pact.lanes:
            if lane.branch in branches:
                check_lane(room, pact.repo, lane, done=done)


def check_known(pact: Pact) -> None:
    """Refuse where there may be features that nobody told of."""
    if pact.trouble:
        detail = "There may be tasks that nobody here knows of, so nothing is merged"
        raise Refused(Why.WRONG_STATE, f"{detail}: {pact.trouble}", {"repo": pact.repo})
    if len(pact.lanes) == MOST_LANES and not pact.lanes[-1].shipped:
        detail = f"The pact of {pact.repo} has {MOST_LANES} features or more that are not merged"
        raise Refused(Why.WRONG_STATE, f"{detail}, too many to go by: first merge some of them")


def check_lane(room: Room, repo: str, lane: Lane, *, done: bool) -> None:
    """Refuse what Rule 2 holds back, with the way on."""
    about = {"feature": lane.feature, "repo": repo}
    if lane.open:
        tasks = list(lane.open)
        detail = f"Rule 2: {lane.feature} has tasks that are not accepted: {', '.join(tasks)}"
        sentence = detail + elsewhere(room, repo, lane)
        raise Refused(Why.WRONG_STATE, sentence, {**about, "tasks": tasks})
    if done and not lane.shipped:
        detail = f"{lane.feature} is accepted, but its branch is not merged: first do"
        sentence = f"{detail} `accord pact merge {lane.feature}`" + elsewhere(room, repo, lane)
        raise Refused(Why.WRONG_STATE, sentence, about)


def elsewhere(room: Room, repo: str, lane: Lane) -> str:
    """Why something counts that the session does not show, and what to do about it."""
    if room.pact is not None and room.pact.repo == repo and lane in room.pact.lanes:
        return ""
    return (
        f". So the pact of {repo} was when it was last seen, and no unbinding frees what was forked"
        f" while it counted: have its tasks accepted and merged there; if they are, show it here"
        f" again with `accord git bind {room.id}` in that repository"
    )


def heeded(before: Pact | None, now: Pact) -> Pact:
    """What counts from now on: all that the pact says, and what vanished from it unmerged.

    Nothing is ever taken out of a pact; that a branch lacks a line frees no fork. A list that is
    full may leave out a feature for want of room, and then says of each that it is not merged.
    """
    if before is None or len(now.lanes) == MOST_LANES:
        return now
    there = {(lane.feature, lane.branch) for lane in now.lanes}
    gone = [each for each in before.lanes if (each.feature, each.branch) not in there]
    unmerged = (each for each in gone if not each.shipped)
    return replace(now, lanes=(*unmerged, *now.lanes)[:MOST_LANES])
