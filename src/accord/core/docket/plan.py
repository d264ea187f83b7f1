"""The steps of an item: what must come first, in its fixed order, then what was proposed."""

from collections.abc import Callable
from typing import NamedTuple

from accord.core.docket import logbook, rules
from accord.core.docket.budget import COMPLEXITY, MOST_STEPS, TIMEBOX
from accord.core.docket.diags import Diag
from accord.core.docket.model import Item
from accord.core.docket.rules import World
from accord.core.docket.steps import Step, made
from accord.core.docket.words import MISSING_INFO, RUNNING, TERMINAL, Kind, Level, State, Trigger


class Need(NamedTuple):
    """Something that the steps of an item must hold, when, and by which kinds of step."""

    order: str
    when: Callable[[Item, World], bool]
    kinds: frozenset[Kind]
    make: Callable[[Item], Step]


def _has(item: Item, trigger: Trigger) -> bool:
    return any(each == trigger for each, _ in item.candidates)


def _probing(item: Item) -> bool:
    return item.state is State.PROBING


def _broken(item: Item, world: World) -> bool:
    return not rules.harness(item, world) or item.stalled or item.redesign


def _kinds(*kinds: Kind) -> frozenset[Kind]:
    return frozenset(kinds)


def _probe(item: Item) -> Step:
    probe = logbook.candidate(item)
    name, condition = (probe.probe_id, probe.kill_switch_condition) if probe else ("-", "-")
    return made("probe", probe=name, driver=item.critical, condition=condition)


def _measure(item: Item) -> Step:
    if item.critical == MISSING_INFO:
        return made("ratings", id=item.id)
    return made("measure", driver=item.critical, dep=item.waived[0])


def _own(name: str) -> Callable[[Item], Step]:
    """The kernel's step of that name, filled from the item."""

    def make(item: Item) -> Step:
        return made(
            name,
            id=item.id,
            dep=item.cycle or (item.waived[0] if name == "waive" else (*item.blocking, "-")[0]),
            driver=item.critical,
            ask=item.external,
            rid=item.waits_for,
            what=item.source,
            holder=item.holder,
        )

    return make


REDESIGN = _kinds(Kind.PLAN_REDESIGN, Kind.SPLIT)
TRIAL = _kinds(Kind.PROBE, Kind.ACQUIRE)
HARNESS = _kinds(Kind.HARNESS_REDESIGN)

# The order is the priority; what loses the first place comes later and is not dropped.
NEEDS: tuple[Need, ...] = (
    Need("P1", lambda i, _: rules.due(i), _kinds(Kind.MITIGATE), _own("mitigate")),
    Need(
        "P2",
        lambda i, _: _has(i, Trigger.CIRCULAR_DEPENDENCY) and bool(i.cycle),
        _kinds(Kind.CYCLE_BREAK, Kind.SPLIT, Kind.DEP_WAIVE),
        _own("cycle"),
    ),
    Need(
        "P2b",
        lambda i, _: _has(i, Trigger.INVALID_DELTA) and not i.held and not _probing(i),
        _kinds(Kind.CAUSAL),
        _own("causal"),
    ),
    Need("P3", lambda i, w: _probing(i) and _broken(i, w), HARNESS, _own("harness")),
    Need("P3", lambda i, w: _probing(i) and not _broken(i, w), TRIAL, _probe),
    Need("P4a", lambda i, _: bool(i.waived), _kinds(Kind.DEP_WAIVE), _own("waive")),
    Need(
        "P4a'",
        lambda i, _: bool(i.waived) and i.impact is not Level.LOW and not _probing(i),
        TRIAL,
        _measure,
    ),
    Need("P4b", lambda i, _: bool(i.clones), _kinds(), lambda i: i.clones[0]),
    Need(
        "P4c",
        lambda i, _: _has(i, Trigger.CLOSE_BLOCKED_REAL_ONLY) and not i.held,
        _kinds(Kind.ACQUIRE),
        _own("evidence"),
    ),
    Need("P4d", lambda i, _: bool(i.external), _kinds(Kind.ACQUIRE), _own("external")),
    Need("P4e", lambda i, _: i.source == "?", _kinds(), _own("name")),
    Need(
        "P4f",
        lambda i, _: bool(i.blocking) and not i.cycle,
        _kinds(Kind.DEP_RESOLVE),
        _own("resolve"),
    ),
    Need("P4g", lambda i, _: bool(i.waits_for), _kinds(Kind.RESOURCE_WAIT), _own("wait")),
    Need(
        "P4h",
        lambda i, _: i.source not in ("", "?"),
        _kinds(Kind.SOURCE_ACQUIRE),
        _own("source"),
    ),
    Need("P5", lambda i, _: i.over, REDESIGN, _own("cut")),
    Need("P5b", lambda i, _: i.rework, REDESIGN, _own("rework")),
    Need("P5c", lambda i, _: i.no_step, _kinds(Kind.PLAN_REDESIGN), _own("write")),
    Need("P6", lambda i, _: i.redesign and not _probing(i), HARNESS, _own("harness")),
    Need(
        "P7",
        lambda i, _: i.counters.nmd >= 1 and i.impact is not Level.LOW,
        _kinds(Kind.SECOND_CHECK),
        _own("second"),
    ),
    Need("P8", lambda i, _: bool(i.holder), REDESIGN | {Kind.DEBT_SLOT}, _own("debt")),
    Need(
        "P9",
        lambda i, _: i.missing_ratings and not _probing(i),
        _kinds(Kind.ACQUIRE),
        _own("ratings"),
    ),
)


def assemble(item: Item, world: World, *, silent: bool = False) -> list[Step]:
    """The steps that an item will show."""
    done = [each for each in item.steps if not each.pending]
    free = [each for each in item.steps if each.pending]
    chosen: list[Step] = []
    for need in NEEDS:
        if need.when(item, world):
            _meet(need, item, world, chosen, free, done)
    if item.over:
        free = _trimmed(item, world, [*done, *chosen], free, silent=silent)
    if _probing(item) and not chosen and not free:
        chosen.append(_own("harness")(item) if _broken(item, world) else _probe(item))
    return _five(item, world, done, [*chosen, *free], silent=silent)


def _meet(
    need: Need, item: Item, world: World, chosen: list[Step], free: list[Step], done: list[Step]
) -> None:
    if need.order == "P4b":
        chosen += item.clones
        return
    if any(each.kind in need.kinds for each in chosen):
        return
    proposed = next((each for each in free if each.kind in need.kinds), None)
    # What was cut is still too much; and, guarded, what was tried is no probe that still runs.
    again = need.order == "P5" or (world.config.guarded and need.order == "P3")
    if proposed:
        free.remove(proposed)
        chosen.append(proposed)
    elif again or not any(each.complete and each.kind in need.kinds for each in done):
        chosen.append(need.make(item))


def _trimmed(
    item: Item, world: World, listed: list[Step], free: list[Step], *, silent: bool
) -> list[Step]:
    """As many of the proposed steps, in their order, as the budgets hold."""
    kept: list[Step] = []
    for each in free:
        steps = [*listed, *kept, each]
        fits = sum(step.minutes for step in steps) <= TIMEBOX[item.impact]
        simple = not item.tier.weak or tax(item, len(steps)) <= COMPLEXITY[item.impact]
        if not (fits and simple and len(steps) <= MOST_STEPS):
            break
        kept.append(each)
    if len(kept) < len(free) and not silent:
        lost = f"{len(free) - len(kept)} of {len(free)}"
        world.batch.say(Diag("STEP_DROPPED", item.id, lost, item.inp.line))
    return kept


def _five(
    item: Item, world: World, done: list[Step], rest: list[Step], *, silent: bool
) -> list[Step]:
    surplus = max(0, len(done) + len(rest) - MOST_STEPS)
    listed = [*done[min(surplus, len(done)) :], *rest][:MOST_STEPS]
    if surplus and not silent:
        world.batch.say(Diag("STEP_OVERFLOW", item.id, f"{surplus} dropped", item.inp.line))
    return listed


def tax(item: Item, steps: int) -> int:
    """What the item costs in attention."""
    extras = (
        item.contested,
        item.missing_ratings,
        item.hedge,
        bool(item.uses),
        item.debt != "NONE",
    )
    return steps + 2 * bool(item.unresolved) + sum(extras)


def budget(item: Item, world: World) -> None:
    """Hold an item to the minutes and the attention that its impact is worth."""
    plan = assemble(item, world, silent=True)
    if item.state is State.ACTIVE and not any(each.pending for each in plan):
        item.park(Trigger.REDESIGN_TRIGGER)
        item.no_step = True
    if item.impact is Level.LOW:
        return
    late = sum(each.minutes for each in plan) > TIMEBOX[item.impact]
    heavy = item.tier.weak and tax(item, len(plan)) > COMPLEXITY[item.impact]
    item.over = late or heavy
    if heavy and item.state is State.ACTIVE:
        item.park(Trigger.REDESIGN_TRIGGER)
    elif item.over:
        item.note(Trigger.REDESIGN_TRIGGER)


def final(item: Item, world: World) -> None:
    """The steps that are printed, and which of them is next."""
    if item.state in (State.DISCARDED, State.EXPIRED):
        item.plan = []
    elif item.state is State.CLOSED:
        done = [each for each in item.steps if not each.pending]
        pending = [each for each in item.steps if each.pending]
        item.plan = _five(item, world, done, pending, silent=False)
    elif item.state is State.DRAFT and item.fixed:
        item.plan = [made("specs")]
    elif item.held and item.prev and not item.demoted:
        item.plan = list(item.prev.steps[:MOST_STEPS])
    else:
        item.plan = assemble(item, world)
    item.next = 0
    if item.state not in TERMINAL:
        pending_at = (at for at, each in enumerate(item.plan, 1) if each.pending)
        item.next = next(pending_at, 0)
    item.tb = sum(each.minutes for each in item.plan)
    item.cx = tax(item, len(item.plan))


def executable(item: Item) -> bool:
    """Whether its next step is for now."""
    return item.state in RUNNING and bool(item.next)
