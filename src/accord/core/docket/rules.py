"""The rules that decide where an item stands: tried in order, the first that fixes it wins."""

from collections.abc import Callable
from dataclasses import dataclass, field

from accord.core.docket import causes, logbook
from accord.core.docket.budget import TIMEBOX
from accord.core.docket.diags import Diag
from accord.core.docket.evidence import delay
from accord.core.docket.judge import External
from accord.core.docket.model import Batch, Config, Item
from accord.core.docket.probes import harness_gaps, resolved, validated
from accord.core.docket.steps import Step
from accord.core.docket.words import (
    COMPLETE,
    VERDICTS,
    Close,
    ClosePolicy,
    Closure,
    Confidence,
    Done,
    Fault,
    Flag,
    Found,
    Kind,
    Level,
    Match,
    Reversibility,
    State,
    Trigger,
    Verdict,
)

NOW, LATER = Verdict.DO_NOW, Verdict.DO_LATER


@dataclass(slots=True)
class World:
    """What the rules know besides the item."""

    batch: Batch
    config: Config
    batch_id: str
    close_policy: ClosePolicy
    decided: dict[str, State] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)

    def settled(self, item: str) -> bool:
        """Whether a dependency is out of the way."""
        state = self.decided.get(item)
        if state is None and item not in self.present:
            state = self.batch.known.get(item) or self.config.ledger.states.get(item)
        return state in (State.CLOSED, State.DISCARDED)

    def knows(self, item: str) -> bool:
        """Whether anybody has said anything of an item."""
        elsewhere = item in self.batch.known or item in self.config.ledger.states
        return elsewhere or item in self.present


Rule = Callable[[Item, World], bool]


def falsified(item: Item, world: World) -> bool:
    """R1: a probe has shown that it does not work."""
    for each in item.log:
        counts = each.base is Level.HIGH or (
            each.base is Level.MED and each.target_driver == item.critical
        )
        if each.status is Found.FALSIFIED and each.context_match is Match.YES and counts:
            item.settle(State.DISCARDED, Verdict.DISCARD, Trigger.FALSIFICATION)
            return True
    return False


def unwanted(item: Item, world: World) -> bool:
    """R2: whoever judges it wants it gone."""
    if item.judge.proposed_verdict is Verdict.DISCARD:
        item.settle(State.DISCARDED, Verdict.DISCARD)
        return True
    return False


def divided(item: Item, world: World) -> bool:
    """R3: it is several decisions in one."""
    parts = item.judge.split or ()
    apart = causes.independent(item.judge)
    if len(parts) >= 2 or (parts and apart):
        item.settle(State.DISCARDED, Verdict.DISCARD, Trigger.MULTI_CRITICAL_DRIVER_SPLIT)
        return True
    if apart:
        world.batch.say(Diag("SPLIT_ADVISED", item.id, ", ".join(apart), item.inp.line))
    return False


def circular(item: Item, world: World) -> bool:
    """R4: it waits for what waits for it."""
    if item.cycle:
        item.park(Trigger.CIRCULAR_DEPENDENCY)
    return bool(item.cycle)


def unmoved(item: Item, world: World) -> bool:
    """R5: nobody said anything and nothing happened."""
    prev = item.prev
    if prev is None or not causes.ongoing(item) or item.inp.addressed or causes.stirred(item):
        return False
    (verdict,) = VERDICTS[prev.state]
    item.settle(prev.state, verdict, prev.trigger)
    item.held, item.hedge, item.debt = True, prev.hedge, prev.debt
    return True


def groundless(item: Item, world: World) -> bool:
    """R6: something was said, but nothing that could change a decision."""
    prev = item.prev
    if prev is None or not causes.ongoing(item) or causes.caused(item):
        return False
    (verdict,) = VERDICTS[prev.state]
    item.settle(prev.state, verdict, Trigger.INVALID_DELTA)
    return True


def sourceless(item: Item, world: World) -> bool:
    """R7: what it is about was not given."""
    missing = item.judge.missing_source
    if item.inp.ok and missing is None:
        return False
    what = item.inp.obtainable
    if missing:
        can = missing.identifiable is Flag.YES and missing.acquirable is Flag.YES
        what = (missing.what or item.id) if can else ""
    if what:
        item.source = what
        item.candidates += [(Trigger.MISSING_SOURCE_INPUT, each) for each in State]
        return False
    item.source = "?"
    item.park(Trigger.MISSING_SOURCE_INPUT)
    return True


FAULTS: dict[str, Trigger] = {
    Fault.IO: Trigger.BLOCKED_EXTERNAL,
    Fault.TIMEOUT: Trigger.BLOCKED_EXTERNAL,
    Fault.AUTH: Trigger.BLOCKED_EXTERNAL,
    Fault.DEPENDENCY: Trigger.DEPENDENCY_BLOCK,
    Fault.INVARIANT: Trigger.REDESIGN_TRIGGER,
}
FAILURES: dict[Kind, Trigger] = {
    Kind.ACQUIRE: Trigger.EXTERNAL_DATA_REQUIRED,
    Kind.SOURCE_ACQUIRE: Trigger.MISSING_SOURCE_INPUT,
    Kind.DEP_RESOLVE: Trigger.DEPENDENCY_BLOCK,
}


def failed(item: Item, world: World) -> bool:
    """R8: a step went wrong."""
    for ended, before in item.failures:
        trigger = _failure(ended)
        item.park(trigger)
        again = trigger is not Trigger.REDESIGN_TRIGGER
        if again or ended.kind is Kind.MITIGATE:
            item.clones.append(before)
        item.rework |= not again
    return bool(item.failures)


def _failure(step: Step) -> Trigger:
    if step.status is Done.FAILED_EXCEPTION:
        return FAULTS[step.output]
    return FAILURES.get(step.kind, Trigger.REDESIGN_TRIGGER)


def stalled(item: Item, world: World) -> bool:
    """R9: two probes in a row ran in the wrong place."""
    if not causes.stalled(item):
        return False
    item.stalled = True
    if item.judge.redesignable is Flag.NO:
        item.park(Trigger.PROBE_STALL_CONTEXT_MATCH)
    else:
        item.settle(State.PROBING, NOW, Trigger.PROBE_STALL_CONTEXT_MATCH)
    return True


def worn_out(item: Item, world: World) -> bool:
    """R10: more of the same probing will not tell."""
    if not causes.worn_out(item):
        return False
    item.redesign = True
    if item.judge.redesignable is Flag.NO:
        item.park(Trigger.REDESIGN_TRIGGER)
        return True
    item.note(Trigger.REDESIGN_TRIGGER)
    return False


def waiting(item: Item, world: World) -> bool:
    """R11: only others can go on, or nobody has judged it."""
    outside = item.judge.external
    if outside and outside.internal_probe is not Flag.YES:
        item.external = outside.ask or f"evidence for {item.critical}"
        blocked = outside.kind is not External.DATA_REQUIRED
        item.park(Trigger.BLOCKED_EXTERNAL if blocked else Trigger.EXTERNAL_DATA_REQUIRED)
    elif item.prev is None and not item.judge.binding and item.judge.proposed_verdict is None:
        item.park(Trigger.EXTERNAL_DATA_REQUIRED)
    else:
        return False
    _blocked_too(item)
    return True


def _blocked_too(item: Item) -> None:
    if item.blocking:
        item.park(Trigger.DEPENDENCY_BLOCK)


def postponed(item: Item, world: World) -> bool:
    """R12: it is for later."""
    item.verdict = _wanted(item)
    if item.verdict is LATER:
        item.park()
        _blocked_too(item)
    return item.verdict is LATER


def _wanted(item: Item) -> Verdict:
    """What whoever judges it wants, or wanted, or would want by the score."""
    if item.judge.proposed_verdict:
        return item.judge.proposed_verdict
    prev = item.prev
    if prev and not item.reopened and not item.revived:
        imposed = prev.trigger not in (Trigger.NONE, Trigger.SCORE_TRIAGE)
        (verdict,) = VERDICTS[prev.state]
        return NOW if prev.state is State.STANDBY and imposed else verdict
    item.note(Trigger.SCORE_TRIAGE)
    return NOW if item.impact is not Level.LOW and not item.missing_ratings else LATER


def due(item: Item) -> bool:
    """Whether harm must be contained first: it was really done, and is open again."""
    real = item.prev is not None and item.prev.closure is not Closure.SIM
    return (item.reopened and real) or item.mitigate


def needs_probe(item: Item) -> bool:
    """Whether acting now would be acting on a guess."""
    unsure = item.confidence <= Confidence.LOW and not item.waived
    known = resolved(item.mine)
    wild = item.domain.wild and item.confidence <= Confidence.MED and not known
    return unsure or wild or causes.tippy(item) or item.hedge


def unprobed(item: Item, world: World) -> bool:
    """R13: it needs a probe, and the probe needs what is not there."""
    if not item.blocking or not needs_probe(item):
        return False
    probe = logbook.candidate(item)
    trial = item.judge.probe
    needs = set((trial and trial.requires) or ()) & set(item.blocking)
    free = not needs or item.judge.independent_probe is Flag.YES
    if probe and free:
        return False
    item.designed = None
    logbook.count(item)
    if due(item):
        item.settle(State.ACTIVE, NOW, Trigger.DEPENDENCY_BLOCK)
    else:
        item.park(Trigger.DEPENDENCY_BLOCK)
    return True


def harness(item: Item, world: World) -> bool:
    """Whether there is a probe that could prove the item wrong."""
    if item.designed:
        return item.harness
    probe = logbook.candidate(item)
    return probe is not None and not harness_gaps(probe, item.critical, world.batch_id)


def probed(item: Item, world: World) -> bool:
    """R14: try it small first."""
    if not needs_probe(item):
        return False
    fragile = causes.tippy(item)
    item.settle(State.PROBING, NOW, Trigger.FRAGILITY if fragile else None)
    if not harness(item, world):
        item.note(Trigger.REDESIGN_TRIGGER)
    if item.blocking:
        item.note(Trigger.DEPENDENCY_BLOCK)
    return True


def blocked(item: Item, world: World) -> bool:
    """R15: something else comes first."""
    if not item.blocking:
        return False
    opens = any(each.pending and each.kind is Kind.DEP_RESOLVE for each in item.steps)
    if due(item) or opens:
        item.settle(State.ACTIVE, NOW, Trigger.DEPENDENCY_BLOCK)
    else:
        item.park(Trigger.DEPENDENCY_BLOCK)
    return True


def closed(item: Item, world: World) -> bool:
    """R16: it is done, and what it was done on is good enough."""
    if not _wants_to_close(item):
        return False
    proof = bool(item.inp.evidence)
    minutes = sum(each.minutes for each in item.steps)
    heavy = item.impact is not Level.LOW
    strict = world.close_policy is ClosePolicy.REAL_ONLY or item.irreversible
    if heavy and (item.missing_ratings or minutes > TIMEBOX[item.impact]):
        why = "MISSING_RATINGS" if item.missing_ratings else "TIMEBOX"
        world.batch.say(Diag("CLOSE_BLOCKED", item.id, why, item.inp.line))
        return False
    if strict and not proof:
        item.park(Trigger.CLOSE_BLOCKED_REAL_ONLY)
    else:
        item.settle(State.CLOSED, NOW)
        item.closure = Closure.REAL if proof else Closure.SIM
    return True


def _wants_to_close(item: Item) -> bool:
    intent = item.judge.close_intent or Close.AUTO
    finished = bool(item.steps) and all(each.status in COMPLETE for each in item.steps)
    fast = _twice(item)
    auto = intent is Close.AUTO and (finished or fast) and not due(item)
    return intent is Close.YES or auto


def _twice(item: Item) -> bool:
    """Two good probes have spoken; where only trying tells, one of them was real."""
    good = [each for each in item.mine if validated(each)]
    real = any(not each.evidence_tier.weak and each.evidence_tier != "HISTORICAL" for each in good)
    return len({each.probe_id for each in good}) >= 2 and (real or not item.domain.wild)


def under_way(item: Item, world: World) -> bool:
    """R17: go."""
    item.settle(State.ACTIVE, NOW)
    return True


def hedge(item: Item, world: World) -> None:
    """Whether it may start while it is still being probed."""
    asked = item.judge.hedge
    if asked is None:
        over = any(each.status in (Found.VALIDATED, Found.FALSIFIED) for each in item.mine)
        item.hedge = item.hedge and not over
        return
    back = item.reversibility in (Reversibility.REVERSIBLE, Reversibility.COSTLY_REVERSIBLE)
    item.hedge = (
        delay(item) is Level.HIGH
        and asked.window_exceeded is Flag.YES
        and bool(asked.risk_cap)
        and (back or asked.risk_contained is Flag.YES)
        and item.harness
    )
    if not item.hedge:
        world.batch.say(Diag("HEDGE_DENIED", item.id, line=item.inp.line))


# Each rule by itself, before dependencies count; then in the order of dependencies.
ALONE: tuple[Rule, ...] = (falsified, unwanted, divided)
AMONG: tuple[Rule, ...] = (
    *(circular, unmoved, groundless, sourceless, failed, stalled, worn_out, waiting),
    *(postponed, unprobed, probed, blocked, closed, under_way),
)
