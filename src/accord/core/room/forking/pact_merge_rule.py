"""When a fork may be merged: Rule 2 over the features of every pact that the room respects."""

from msgspec.structs import replace

from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.forking.fork_state import Fork, PactFeature, PactSummary
from accord.core.room.state import Room
from accord.core.room.visibility import lineage

MAX_FEATURES = 1024


def check_merge_allowed(room: Room, source: Fork, target: str | None, *, executing: bool) -> None:
    """UNI-21: refuse to merge the work of a feature before all of its tasks are accepted.

    A merge also brings back the work of the fork's ancestors, so their branches are checked, too.
    `executing`: the merge is executed only after the branch was merged in git and in the pact.
    """
    shared = frozenset(lineage(room, target))
    merged = [room.forks[id] for id in lineage(room, source.id) if id and id not in shared]
    branches = {name for fork in merged for name in (fork.name, f"pvp/{fork.id}")}
    for pact in room.pacts.values():
        check_pact_complete(pact)
        for feature in pact.lanes:
            if feature.branch in branches:
                check_feature(room, pact.repo, feature, executing=executing)


def check_pact_complete(pact: PactSummary) -> None:
    """Refuse to merge if there may be features that the server does not know."""
    if pact.trouble:
        detail = "Merging is blocked because the server's copy of the pact may be incomplete"
        raise Refused(Reason.WRONG_STATE, f"{detail}: {pact.trouble}", {"repo": pact.repo})
    if len(pact.lanes) == MAX_FEATURES and not pact.lanes[-1].shipped:
        detail = f"The pact of {pact.repo} has {MAX_FEATURES} or more unmerged features"
        raise Refused(Reason.WRONG_STATE, f"{detail}, too many to check; merge some of them first")


def check_feature(room: Room, repo: str, feature: PactFeature, *, executing: bool) -> None:
    """Refuse what Rule 2 forbids, and say what to do next."""
    about = {"feature": feature.feature, "repo": repo}
    hint = other_repo_hint(room, repo, feature)
    if feature.open:
        tasks = list(feature.open)
        detail = f"Rule 2: {feature.feature} has tasks that are not accepted: {', '.join(tasks)}"
        raise Refused(Reason.WRONG_STATE, detail + hint, {**about, "tasks": tasks})
    if executing and not feature.shipped:
        detail = f"{feature.feature} is accepted, but its branch is not merged; first run"
        detail = f"{detail} `accord pact merge {feature.feature}`"
        raise Refused(Reason.WRONG_STATE, detail + hint, about)


def other_repo_hint(room: Room, repo: str, feature: PactFeature) -> str:
    """Explain a rule that comes from a repository which the session does not show."""
    if room.pact is not None and room.pact.repo == repo and feature in room.pact.lanes:
        return ""
    return (
        f". This is the pact of {repo} as the server last saw it; it still counts for work that was"
        f" forked while the session was bound to it. Accept and merge the tasks there; if that is"
        f" done, run `accord git bind {room.id}` in that repository to refresh the server's copy"
    )


def retain_unmerged_features(before: PactSummary | None, now: PactSummary) -> PactSummary:
    """The features that count from now on: all in the pact, and unmerged ones missing from it.

    Pacts are append-only, so a feature that is missing was lost and still counts. When the list is
    full, features may have been left out of it, so nothing is added.
    """
    if before is None or len(now.lanes) == MAX_FEATURES:
        return now
    listed = {(feature.feature, feature.branch) for feature in now.lanes}
    unmerged = (
        feature
        for feature in before.lanes
        if not feature.shipped and (feature.feature, feature.branch) not in listed
    )
    return replace(now, lanes=(*unmerged, *now.lanes)[:MAX_FEATURES])
