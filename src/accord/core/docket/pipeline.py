"""A run: a batch in, an outcome out. Pure: no clock, no files, no randomness."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from accord.core.docket.diagnostics import Diagnostic
from accord.core.docket.judgement import ArtifactAudit, Judgement
from accord.core.docket.model import Batch, DecisionItem, DecisionOutcome, ItemInput, KernelConfig
from accord.core.docket.rules import (
    batch_rules,
    dependency_graph,
    item_lifecycle,
    merge_input,
    probe_log,
    ratings,
    state_rules,
    step_plan,
)
from accord.core.docket.rules.state_rules import RuleContext
from accord.core.docket.triggers import Trigger
from accord.core.docket.vocabulary import (
    AskUserMode,
    ClosePolicy,
    Confidence,
    EvidenceTier,
    ExecCapability,
    ItemMode,
    ItemState,
    Level,
    Profile,
    SsotScale,
    Verdict,
)

_DATED_BATCH_ID = re.compile(r"\d{8}(-.*)")
MAX_SPLIT_PARTS = 5


def run_pipeline(batch: Batch, config: KernelConfig | None = None) -> DecisionOutcome:
    """Decide every item of a batch."""
    config = config or KernelConfig()
    # The rules modify their input, so they get a copy.
    batch = replace(
        batch,
        items=[replace(each, missing_fields=list(each.missing_fields)) for each in batch.items],
        diagnostics=list(batch.diagnostics),
    )
    world = RuleContext(
        batch, config, _batch_id(batch, config), batch.header.close_policy or ClosePolicy.SIM_OK
    )
    outcome = _empty_outcome(batch, world, config)
    if not batch.items:
        outcome.invalid_reason = "OTHER"
        return outcome
    items = _run_single_item_rules(batch, world)
    _run_dependency_rules(items, world)
    outcome.debt_drivers = _apply_batch_rules(
        [each for each in items if not each.input.duplicate], world
    )
    _finish(items, world, outcome)
    return outcome


def _empty_outcome(batch: Batch, world: RuleContext, config: KernelConfig) -> DecisionOutcome:
    header = batch.header
    return DecisionOutcome(
        batch_id=world.batch_id,
        exec_capability=header.exec_capability or ExecCapability.NO_RUNTIME,
        close_policy=world.close_policy,
        ssot_scale=header.ssot_scale or SsotScale.MIN,
        resource_pool=header.resource_pool,
        items=[],
        inventory=[],
        diagnostics=batch.diagnostics,
        config=config,
    )


def _batch_id(batch: Batch, config: KernelConfig) -> str:
    """The id in the header; else the previous one with today's date; else a digest of the text."""
    today = config.now.strftime("%Y%m%d") if config.now else ""
    if batch.header.batch_id:
        return batch.header.batch_id
    if batch.previous_batch_id:
        found = _DATED_BATCH_ID.fullmatch(batch.previous_batch_id)
        return f"{today}{found[1]}" if found and today else batch.previous_batch_id
    return f"{today or '00000000'}-{batch.digest[:8] or '00000000'}"


def _run_single_item_rules(batch: Batch, world: RuleContext) -> list[DecisionItem]:
    """Apply the rules that need no other item; the parts of a split item follow it directly."""
    items = [_new_item(inp) for inp in batch.items]
    _derive_inputs(items, world)
    taken = {each.id for each in items}
    parts: dict[int, list[DecisionItem]] = {}
    for at, item in enumerate(items):
        if not item.frozen and any(rule(item, world) for rule in state_rules.SINGLE_ITEM_RULES):
            item.frozen = True
            if (Trigger.MULTI_CRITICAL_DRIVER_SPLIT, item.state) in item.candidates:
                parts[at] = list(_split_items(item, taken, world))
    _derive_inputs([each for some in parts.values() for each in some], world)
    for some in parts.values():
        for each in some:
            each.frozen = any(rule(each, world) for rule in state_rules.SINGLE_ITEM_RULES)
    return [each for at, item in enumerate(items) for each in (item, *parts.get(at, ()))]


def _new_item(inp: ItemInput) -> DecisionItem:
    item = DecisionItem(inp, None if inp.duplicate else inp.prev)
    if inp.duplicate:
        item.mode, item.title, item.impact = (
            inp.mode or ItemMode.PLAN,
            inp.title or inp.id,
            Level.LOW,
        )
        item.fix_state(ItemState.DISCARDED, Verdict.DISCARD, Trigger.DUPLICATE_ID_REJECTED)
        item.frozen = True
    return item


def _split_items(item: DecisionItem, taken: set[str], world: RuleContext) -> Iterator[DecisionItem]:
    names = []
    for number, judge in enumerate((item.judgement.split or ())[:MAX_SPLIT_PARTS], 1):
        name = f"{item.id}_S{number}"
        while name in taken:
            name += "x"
        taken.add(name)
        names.append(name)
        if judge.split:
            world.batch.add_diagnostic(Diagnostic("SPLIT_NESTED", item.id, name, item.input.line))
        yield DecisionItem(_split_input(item, name, judge), None)
    item.split_into = tuple(names)


def _split_input(item: DecisionItem, name: str, judge: Judgement) -> ItemInput:
    inp = item.input
    return ItemInput(
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
        judgement=Judgement(
            **{n: getattr(judge, n) for n in judge.__struct_fields__ if n != "split"}
        ),
        has_section=True,
        split_from=item.id,
    )


def _derive_inputs(items: list[DecisionItem], world: RuleContext) -> None:
    """Derive what the rules read: merged values, steps, probes, evidence, score, expiry."""
    batch, config = world.batch, world.config
    live = [each for each in items if not each.input.duplicate]
    for item in live:
        item_lifecycle.enter_run(item)
        merge_input.merge_previous(item)
        item.waived = merge_input.waived_dependencies(item)
        merge_input.take_steps(item, batch)
    probe_log.write_probe_logs(live, batch, world.batch_id, config)
    for item in live:
        _bind_ratings(item, batch)
        item.best_evidence_tier = ratings.best_evidence_tier(item)
        _set_confidence(item)
        ratings.update_score(item, config.policy)
        _note_near_miss(item)
        merge_input.set_urgency(item)
        item_lifecycle.set_expiry(item, batch)
        item_lifecycle.expire_parked(item, batch, config)
        item.may_ask_user = batch_rules.ask_user_mode(item, batch, config) is AskUserMode.ALLOW
        asking = AskUserMode.ALLOW if item.may_ask_user else AskUserMode.NONE
        item_lifecycle.apply_fail_fast(item, asking, config)


def _bind_ratings(item: DecisionItem, batch: Batch) -> None:
    prev = item.prev
    if prev and not item.judgement.binding:
        item.binding = dict(prev.binding)
        item.missing_ratings = prev.missing_ratings
        return
    shown = any(not each.evidence_tier.is_weak for each in item.probe_log)
    known = prev is not None and prev.best_evidence_tier >= EvidenceTier.HISTORICAL
    if ratings.bind_ratings(item, backed=bool(item.input.evidence) or shown or known):
        batch.add_diagnostic(Diagnostic("TIER_UNBACKED", item.id, line=item.input.line))
    if item.profile is Profile.DIY and item.judgement.friction is None:
        item.friction_missing = item.missing_ratings = True


def _set_confidence(item: DecisionItem) -> None:
    if item.frozen and item.prev:
        item.confidence = item.prev.confidence or Confidence.LOW
    else:
        ratings.set_confidence(item)


def _note_near_miss(item: DecisionItem) -> None:
    """Record near misses of deterministic probes, except on items of low impact."""
    if item.counters.nmd >= 1 and item.impact is not Level.LOW:
        item.note_trigger(Trigger.CONFIDENCE_CAP_APPLIED)


def _run_dependency_rules(items: list[DecisionItem], world: RuleContext) -> None:
    """Apply the rules that read other items, each item after its dependencies."""
    _expand_split_dependencies(items)
    nodes = {each.id: each for each in items if not each.frozen}
    world.item_ids = {each.id for each in items}
    world.decided_states = {
        each.id: each.state for each in items if each.frozen and not each.input.duplicate
    }
    everything = {
        name: [dep for dep in each.depends_on if dep in nodes] for name, each in nodes.items()
    }
    waived = {name: set(each.waived) for name, each in nodes.items()}
    binding = {
        name: [dep for dep in deps if dep not in waived[name]] for name, deps in everything.items()
    }
    for name, dep in dependency_graph.cycle_members(binding).items():
        nodes[name].cycle_dependency = dep
    for name in dependency_graph.dependency_order(everything, binding):
        _decide(nodes[name], world)
        world.decided_states[name] = nodes[name].state
    for item in items:
        _set_unresolved(item, world)


def _set_unresolved(item: DecisionItem, world: RuleContext) -> None:
    """Set the unresolved dependencies; a waiver ends when its dependency is settled."""
    item.unresolved_dependencies = tuple(
        each for each in item.depends_on if not world.is_settled(each)
    )
    item.waived = tuple(each for each in item.waived if not world.is_settled(each))


def _expand_split_dependencies(items: Iterable[DecisionItem]) -> None:
    """A dependency on a split item becomes a dependency on all its parts."""
    parts = {each.id: each.split_into for each in items if each.split_into}
    if not parts:
        return

    def spread(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part for each in names for part in parts.get(each, (each,))))

    for item in items:
        item.depends_on, item.waived = spread(item.depends_on), spread(item.waived)


def _decide(item: DecisionItem, world: RuleContext) -> None:
    _set_unresolved(item, world)
    if item.waived:
        item.confidence = min(item.confidence, Confidence.LOW)
    state_rules.update_hedge(item, world)
    next(rule for rule in state_rules.DEPENDENCY_ORDER_RULES if rule(item, world))
    if not item.held and item.state is not ItemState.PROBING:
        item.hedge_active = False


def _apply_batch_rules(items: list[DecisionItem], world: RuleContext) -> list[str]:
    """Apply debt, then budgets, then resources; returns the drivers with open debt."""
    drivers = batch_rules.assign_debt(items, world.config)
    for item in items:
        closed = item.state in (ItemState.CLOSED, ItemState.DISCARDED)
        if not item.frozen and not item.held and not closed:
            step_plan.apply_budgets(item, world)
    batch_rules.apply_resource_pool(items, world.batch.header.resource_pool, world.config)
    return drivers


def _finish(items: list[DecisionItem], world: RuleContext, outcome: DecisionOutcome) -> None:
    batch, config = world.batch, world.config
    for item in items:
        item_lifecycle.set_trigger_and_gate(item)
        step_plan.finalize_steps(item, world)
        item_lifecycle.set_derived_fields(item, batch, config, outcome.ssot_scale)
        _add_item_diagnostics(item, world)
    for item in items:
        _check_audit(item, batch)
    outcome.items = items
    outcome.inventory = _inventory(items, world)
    outcome.ask_mode = (
        AskUserMode.ALLOW if any(each.may_ask_user for each in items) else AskUserMode.NONE
    )
    outcome.question = batch_rules.select_question(items, batch, config, world.close_policy)


def _add_item_diagnostics(item: DecisionItem, world: RuleContext) -> None:
    contested = item.prev is not None and item.prev.contested
    delta = item.judgement.delta
    if contested and item.input.is_addressed and not (delta and delta.broke):
        world.batch.add_diagnostic(Diagnostic("CONTEST_UNADDRESSED", item.id, line=item.input.line))
    pool = world.batch.header.resource_pool
    if pool is not None:
        item.input.missing_fields += [f"uses:{name}" for name in item.uses if name not in pool]
    item.input.missing_fields += [
        f"depends_on:{each}" for each in item.depends_on if each not in world.item_ids
    ]


def _check_audit(item: DecisionItem, batch: Batch) -> None:
    """Remark that a new artifact was not audited; its snapshot says so too."""
    said = item.judgement.audit or ArtifactAudit()
    whole = said.completeness and said.coherence and said.operationality and said.defect
    if item.is_audited and not item.prev and not whole:
        batch.add_diagnostic(Diagnostic("AUDIT_MISSING", item.id, line=item.input.line))


def _inventory(
    items: list[DecisionItem], world: RuleContext
) -> list[tuple[str, ItemMode, bool, list[str]]]:
    rows = [(each.id, each.mode, each.input.parsed_ok, each.input.missing_fields) for each in items]
    return [*rows, *(("?", mode, False, ["id"]) for _, mode in world.batch.items_without_id)]
