"""Witnesses: what an agent says it saw counts as far as the log bears it out (UNI-19)."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from accord.core.kernel.authority import Kind
from accord.core.kernel.log import Ask
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.rulings import TIERS, Claim, Ruling
from accord.core.room.fields import Ids
from accord.core.room.past import outcome
from accord.core.room.state import Room, Run, without
from accord.core.room.waiting import bound, finding, hindrance

# A token with this label speaks for a build server: what it reports it observed.
CI = "ci"
OBSERVED = "REAL"
# From here on somebody says that they saw something.
SEEN = TIERS.index("HISTORICAL")
SETTLED = frozenset({"CLOSED", "DISCARDED", "EXPIRED"})
MOST_RUNS = 256


# What was run


def seen(room: Room, proposal: str) -> Room:
    """The room, which remembers a step that was run while the kernel allowed it."""
    tool = room.tools.get(proposal)
    link = bound(tool) if tool else None
    if tool is None or link is None or hindrance(room, tool) is not None:
        return room
    tier = finding(room, tool.fork, link).tier
    run = Run(tool.id, link.batch, link.item, link.step, tier, tool.fork)
    kept = list({**room.runs, tool.id: run}.items())[-MOST_RUNS:]
    return replace(room, runs=dict(kept))


def runs_of(room: Room, fork: str | None, batch: str) -> Iterator[Run]:
    """What was run at that place for a decision, and has not become old."""
    return (run for run in room.runs.values() if (run.batch, run.fork) == (batch, fork))


def old(room: Room, fork: str | None, batch: str, items: frozenset[str] | None) -> Ids:
    """Runs that are behind the news: of these items, or of all."""
    mine = runs_of(room, fork, batch)
    return tuple(run.id for run in mine if items is None or run.item in items)


def forgotten(room: Room, ids: Ids) -> Room:
    """The room, which no longer takes those for news."""
    return replace(room, runs=without(room.runs, *ids)) if ids else room


# What is said


def check(
    room: Room, ask: Ask, batch: str, ruling: Ruling, cited: Ids, before: Mapping[str, Any]
) -> None:
    """Refuse what an agent says it saw and did not; people are believed.

    `before` are the items of a decision that others rely on; none where it is the agent's alone.
    """
    if ask.actor.kind is not Kind.AGENT:
        return
    runs = [backed(room, ask, batch, each) for each in cited]
    if before:
        check_news(ask, batch, ruling)
    trusted = CI in room.members[ask.actor.seat].labels
    for claim in ruling.claims:
        mine = [run for run in runs if run.item == claim.item]
        check_claim(claim, mine, trusted=trusted)
        if not trusted:
            check_settled(claim, before)
        if not (trusted or mine):
            check_idle(ruling, before)


def backed(room: Room, ask: Ask, batch: str, id: str) -> Run:
    """The run that is cited; or why it is no evidence."""
    run = room.runs.get(id)
    if run is not None and (run.batch, run.fork) == (batch, ask.message.fork):
        return run
    if run is not None:
        why = f"it was a step of {run.batch}, in {run.fork or 'the session itself'}"
    elif id in room.tools:
        why = "it has not ended"
    elif (ended := outcome(room, id, ask.actor.seat)) and ended != "finished":
        why = f"it was {ended}"
    else:
        why = "no such run ended well here since the last news of its item"
    detail = f"{id} is no evidence for {batch}: {why}; what counts is the run of a step that"
    raise Refused(Why.WRONG_STATE, f"{detail} arguments.decision binds to the item")


def check_news(ask: Ask, batch: str, ruling: Ruling) -> None:
    """An agent reports what happened to what others decided; how it is judged it does not say."""
    judged = [claim.item for claim in ruling.claims if claim.judges]
    if ruling.rules or judged:
        what = f"of {', '.join(judged)}" if judged else "of its rules"
        detail = f"An agent's news of {batch} are results and evidence, not a judgement {what};"
        raise Refused(Why.FORBIDDEN, f"{detail} judge it under decision:{batch}:{ask.actor.seat}")


def check_claim(claim: Claim, runs: list[Run], *, trusted: bool) -> None:
    """No more than what was run shows, and no step that was not."""
    shown = [OBSERVED] if trusted else [run.tier for run in runs]
    best = max(map(TIERS.index, shown), default=0)
    if TIERS.index(claim.tier) >= SEEN and TIERS.index(claim.tier) > best:
        need = f"what was run for it is {TIERS[best]}" if best else "name its run in `evidence`"
        detail = f"{claim.item}: an agent does not call evidence {claim.tier} by its word alone"
        raise Refused(Why.WRONG_STATE, f"{detail}; {need}, or call it SIMULATED")
    steps = {run.step for run in runs}
    tried = "EXPERIMENT" in shown
    for step in () if trusted else claim.saw:
        if not (step in steps or (not step and tried)):
            detail = f"{claim.item}: how {step or 'a probe'} went is told by its run; propose it"
            raise Refused(Why.WRONG_STATE, f"{detail} with arguments.decision, and report that")


def check_settled(claim: Claim, before: Mapping[str, Any]) -> None:
    """What is settled, no agent takes up again: whatever was run for it was counted by then."""
    if (was := before.get(claim.item)) and was["state"] in SETTLED:
        detail = f"{claim.item} is {was['state']}; that people or a build server take it up again"
        raise Refused(Why.FORBIDDEN, detail)


def check_idle(ruling: Ruling, before: Mapping[str, Any]) -> None:
    """Words without a run behind them free nothing."""
    for item, now in ruling.items.items():
        if now.allowed not in ("", before.get(item, {}).get("allowed", now.allowed)):
            detail = f"An agent's word alone does not free {now.allowed} of {item}"
            raise Refused(Why.FORBIDDEN, detail)
