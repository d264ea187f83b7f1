"""Repairs a snapshot by deciding it again: proposals are kept, derived values recomputed."""

from accord.core.docket.judgement import JudgedRating, Judgement, ProbeReport, StepResult
from accord.core.docket.model import Batch, ItemInput, PreviousItem
from accord.core.docket.parsing import tag_attributes
from accord.core.docket.parsing.judgement_parser import judgement_of
from accord.core.docket.snapshot import DecisionSnapshot, ItemBlock
from accord.core.docket.steps import Step
from accord.core.docket.text_values import ID_PATTERN
from accord.core.docket.vocabulary import (
    CloseIntent,
    ItemState,
    YesNo,
)

# The fields of [PROBE] that propose something; the others are derived.
PROBE_DESIGN = frozenset(
    {
        *("probe_id", "target_driver", "decision_context_id", "decision_context_driver"),
        *("decision_context_metric", "constraint_signature", "kill_switch_condition"),
        *("kill_switch_threshold", "representativeness", "status", "context_match"),
        "evidence_tier",
    }
)


def batch_from_snapshot(snap: DecisionSnapshot) -> Batch:
    """The batch that a snapshot proposes, without its derived values."""
    batch = Batch(previous_batch_id=snap.batch_id)
    tag_attributes.recover_header(batch.header, snap.panel)
    blocks = {each.id: each for each in reversed(snap.blocks)}
    batch.items = [
        _item_input(it, blocks[name])
        for name, it in snap.items.items()
        if ID_PATTERN.fullmatch(name)
    ]
    return batch


def _item_input(it: PreviousItem, block: ItemBlock) -> ItemInput:
    judge = _judgement(it, block)
    return ItemInput(
        it.id,
        block.line,
        title=it.title or "",
        mode=it.mode,
        depends_on=it.depends_on,
        waived_dependencies=it.waived,
        uses=it.uses,
        reversibility=it.reversibility,
        judgement=judge,
        results=tuple(judge.step_results or ()),
        has_section=True,
    )


def _judgement(it: PreviousItem, block: ItemBlock) -> Judgement:
    binding = {
        dim: JudgedRating(
            rating=each.rating,
            drivers=list(each.drivers),
            confidence=each.confidence,
            evidence_tier=each.tier,
        )
        for dim, each in it.binding.items()
    }
    results = [
        each for number, step in enumerate(it.steps, 1) for each in _step_result(number, step)
    ]
    return Judgement(
        profile=it.profile,
        domain_type=it.domain_type,
        urgency=it.urgency,
        proposed_verdict=it.verdict,
        close_intent=CloseIntent.YES if it.state is ItemState.CLOSED else None,
        why=_none_if_dash(it.why),
        critical_driver=it.critical_driver,
        dominant_tradeoff=_none_if_dash(it.dominant_tradeoff),
        next_uncertainty=_none_if_dash(it.next_uncertainty),
        contested=YesNo.YES if it.contested else None,
        binding=binding or None,
        steps=[_pending_line(each) for each in it.steps],
        step_results=results or None,
        probe=_probe_report(block),
    )


def _none_if_dash(text: str) -> str | None:
    return None if text == "-" else text


def _pending_line(step: Step) -> str:
    return f"{step.action_and_output} | timebox<={step.minutes}m | fail_if={step.fail_if}"


def _step_result(number: int, step: Step) -> list[StepResult]:
    if step.status is None:
        return []
    said = step.result or None
    return [StepResult(step=f"S{number}", status=step.status, evidence_tier=step.tier, result=said)]


def _probe_report(block: ItemBlock) -> ProbeReport | None:
    said = {name: value for name, value in block.fields("PROBE").items() if name in PROBE_DESIGN}
    given = {name: value for name, value in said.items() if value != "-"}
    return judgement_of({"probe": given}, lambda *_: None).probe if "probe_id" in given else None
