"""A run: a batch in, an outcome out. No clock, no files, no chance."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from accord.core.docket import (
    ask,
    evidence,
    finish,
    graph,
    intake,
    lifecycle,
    logbook,
    plan,
    queue,
    rules,
    scoring,
)
from accord.core.docket.diags import Diag
from accord.core.docket.judge import Judge
from accord.core.docket.model import Batch, Config, Input, Item, Outcome
from accord.core.docket.rules import World
from accord.core.docket.words import (
    Asking,
    ClosePolicy,
    Confidence,
    Level,
    Mode,
    Profile,
    Runtime,
    Scale,
    State,
    Tier,
    Trigger,
    Verdict,
)

_DATED = re.compile(r"\d{8}(-.*)")
MOST_PARTS = 5


def run(batch: Batch, config: Config | None = None) -> Outcome:
    """Decide every item of a batch."""
    config = config or Config()
    # The rules write into what they are given; the batch stays as it was read.
    batch = replace(
        batch,
        items=[replace(each, missing=list(each.missing)) for each in batch.items],
        diags=list(batch.diags),
    )
    world = World(
        batch, config, _batch_id(batch, config), batch.header.close_policy or ClosePolicy.SIM_OK
    )
    outcome = _blank(batch, world, config)
    if not batch.items:
        outcome.invalid = "OTHER"
        return outcome
    items = _alone(batch, world)
    _among(items, world)
    outcome.debt_drivers = _together([each for each in items if not each.inp.duplicate], world)
    _finish(items, world, outcome)
    return outcome


def _blank(batch: Batch, world: World, config: Config) -> Outcome:
    header = batch.header
    return Outcome(
        batch_id=world.batch_id,
        runtime=header.runtime or Runtime.NO_RUNTIME,
        close_policy=world.close_policy,
        scale=header.scale or Scale.MIN,
        pool=header.pool,
        items=[],
        inventory=[],
        diags=batch.diags,
        config=config,
        header=header,
    )


def _batch_id(batch: Batch, config: Config) -> str:
    """As the header says; else as it was, with today's date; else from the text."""
    today = config.now.strftime("%Y%m%d") if config.now else ""
    if batch.header.batch_id:
        return batch.header.batch_id
    if batch.begun:
        found = _DATED.fullmatch(batch.begun)
        return f"{today}{found[1]}" if found and today else batch.begun
    return f"{today or '00000000'}-{batch.digest[:8] or '00000000'}"


def _alone(batch: Batch, world: World) -> list[Item]:
    """Everything that needs no other item; split parts stand right after what they are of."""
    items = [_opened(inp) for inp in batch.items]
    _weigh(items, world)
    taken = {each.id for each in items}
    parts: dict[int, list[Item]] = {}
    for at, item in enumerate(items):
        if not item.fixed and any(rule(item, world) for rule in rules.ALONE):
            item.fixed = True
            if (Trigger.MULTI_CRITICAL_DRIVER_SPLIT, item.state) in item.candidates:
                parts[at] = list(_parts(item, taken, world))
    _weigh([each for some in parts.values() for each in some], world)
    for some in parts.values():
        for each in some:
            each.fixed = any(rule(each, world) for rule in rules.ALONE)
    return [each for at, item in enumerate(items) for each in (item, *parts.get(at, ()))]


def _opened(inp: Input) -> Item:
    item = Item(inp, None if inp.duplicate else inp.prev)
    if inp.duplicate:
        item.mode, item.title, item.impact = inp.mode or Mode.PLAN, inp.title or inp.id, Level.LOW
        item.settle(State.DISCARDED, Verdict.DISCARD, Trigger.DUPLICATE_ID_REJECTED)
        item.fixed = True
    return item


def _parts(item: Item, taken: set[str], world: World) -> Iterator[Item]:
    names = []
    for number, judge in enumerate((item.judge.split or ())[:MOST_PARTS], 1):
        name = f"{item.id}_S{number}"
        while name in taken:
            name += "x"
        taken.add(name)
        names.append(name)
        if judge.split:
            world.batch.say(Diag("SPLIT_NESTED", item.id, name, item.inp.line))
        yield Item(_part(item, name, judge), None)
    item.split_into = tuple(names)


def _part(item: Item, name: str, judge: Judge) -> Input:
    inp = item.inp
    return Input(
        name,
        inp.line,
        title=judge.title or f"{item.title} ({name})",
        mode=item.mode,
        keep_open=item.keep_open,
        expire_days=item.expire_days,
        depends_on=item.depends_on,
        uses=item.uses,
        reversibility=item.reversibility,
        ask_user=inp.ask_user,
        judge=Judge(**{n: getattr(judge, n) for n in judge.__struct_fields__ if n != "split"}),
        has_section=True,
        split_from=item.id,
    )


def _weigh(items: list[Item], world: World) -> None:
    """Merge, steps, probes, evidence, score, and how each enters the run."""
    batch, config = world.batch, world.config
    live = [each for each in items if not each.inp.duplicate]
    for item in live:
        lifecycle.enter(item)
        intake.merge(item)
        item.waived = intake.waivers(item)
        intake.take_steps(item, batch, config)
    logbook.write(live, batch, world.batch_id, config)
    for item in live:
        _rate(item, batch)
        item.tier = evidence.best_tier(item)
        _sure(item)
        scoring.score(item, guarded=config.guarded)
        _near(item)
        intake.urgency(item)
        lifecycle.lasting(item, batch)
        lifecycle.expire(item, batch, config)
        item.asks = ask.mode(item, batch, config) is Asking.ALLOW
        asking = Asking.ALLOW if item.asks else Asking.NONE
        lifecycle.fail_fast(item, asking, config)


def _rate(item: Item, batch: Batch) -> None:
    prev = item.prev
    if prev and not item.judge.binding:
        item.binding = dict(prev.binding)
        item.missing_ratings = prev.missing_ratings
        return
    shown = any(not each.evidence_tier.weak for each in item.log)
    known = prev is not None and prev.tier >= Tier.HISTORICAL
    if scoring.rate(item, backed=bool(item.inp.evidence) or shown or known):
        batch.say(Diag("TIER_UNBACKED", item.id, line=item.inp.line))
    if item.profile is Profile.DIY and item.judge.friction is None:
        item.friction_missing = item.missing_ratings = True


def _sure(item: Item) -> None:
    if item.fixed and item.prev:
        item.confidence = item.prev.confidence or Confidence.LOW
    else:
        evidence.confidence(item)


def _near(item: Item) -> None:
    """Where outcomes are certain, a near miss is worth a remark; of small things it is not."""
    if item.counters.nmd >= 1 and item.impact is not Level.LOW:
        item.note(Trigger.CONFIDENCE_CAP_APPLIED)


def _among(items: list[Item], world: World) -> None:
    """The rules that look at other items, dependencies first."""
    _rewire(items)
    nodes = {each.id: each for each in items if not each.fixed}
    world.present = {each.id for each in items}
    world.decided = {each.id: each.state for each in items if each.fixed and not each.inp.duplicate}
    everything = {
        name: [dep for dep in each.depends_on if dep in nodes] for name, each in nodes.items()
    }
    waived = {name: set(each.waived) for name, each in nodes.items()}
    binding = {
        name: [dep for dep in deps if dep not in waived[name]] for name, deps in everything.items()
    }
    for name, dep in graph.cycles(binding).items():
        nodes[name].cycle = dep
    for name in graph.order(everything, binding):
        _decide(nodes[name], world)
        world.decided[name] = nodes[name].state
    for item in items:
        _waits(item, world)


def _waits(item: Item, world: World) -> None:
    """What it still waits for; a waiver ends with what it is for."""
    item.unresolved = tuple(each for each in item.depends_on if not world.settled(each))
    item.waived = tuple(each for each in item.waived if not world.settled(each))


def _rewire(items: Iterable[Item]) -> None:
    """Who depends on something that was split depends on all its parts."""
    parts = {each.id: each.split_into for each in items if each.split_into}
    if not parts:
        return

    def spread(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part for each in names for part in parts.get(each, (each,))))

    for item in items:
        item.depends_on, item.waived = spread(item.depends_on), spread(item.waived)


def _decide(item: Item, world: World) -> None:
    _waits(item, world)
    if item.waived:
        item.confidence = min(item.confidence, Confidence.LOW)
    rules.hedge(item, world)
    next(rule for rule in rules.AMONG if rule(item, world))
    if not item.held and item.state is not State.PROBING:
        item.hedge = False


def _together(items: list[Item], world: World) -> list[str]:
    """Debt, then budgets, then resources."""
    drivers = queue.debt(items, world.config)
    for item in items:
        closed = item.state in (State.CLOSED, State.DISCARDED)
        if not item.fixed and not item.held and not closed:
            plan.budget(item, world)
    queue.resources(items, world.batch.header.pool, world.config)
    return drivers


def _finish(items: list[Item], world: World, outcome: Outcome) -> None:
    batch, config = world.batch, world.config
    for item in items:
        finish.trigger(item)
        plan.final(item, world)
        finish.derive(item, batch, config, outcome.scale)
        _notice(item, world)
    outcome.items = items
    outcome.inventory = _inventory(items, world)
    outcome.ask_mode = Asking.ALLOW if any(each.asks for each in items) else Asking.NONE
    outcome.ask = ask.question(items, batch, config, world.close_policy)


def _notice(item: Item, world: World) -> None:
    contested = item.prev is not None and item.prev.contested
    delta = item.judge.delta
    if contested and item.inp.addressed and not (delta and delta.broke):
        world.batch.say(Diag("CONTEST_UNADDRESSED", item.id, line=item.inp.line))
    pool = world.batch.header.pool
    if pool is not None:
        item.inp.missing += [f"uses:{name}" for name in item.uses if name not in pool]
    item.inp.missing += [f"depends_on:{each}" for each in item.depends_on if not world.knows(each)]


def _inventory(items: list[Item], world: World) -> list[tuple[str, Mode, bool, list[str]]]:
    rows = [(each.id, each.mode, each.inp.ok, each.inp.missing) for each in items]
    return [*rows, *(("?", mode, False, ["id"]) for _, mode in world.batch.nameless)]
