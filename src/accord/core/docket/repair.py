"""A snapshot read as a judgement: what it proposes is kept, what it derived is derived again."""

from accord.core.docket import attributes
from accord.core.docket.judge import Bound, Judge, Result, Trial
from accord.core.docket.model import Batch, Input, Previous
from accord.core.docket.snapshot import Block, Snapshot
from accord.core.docket.steps import Step
from accord.core.docket.text import ID
from accord.core.docket.words import Close, Flag, Found, Match, State, Tier


def proposal(snap: Snapshot) -> Batch:
    """The batch that a snapshot proposes, with every derived value left out."""
    batch = Batch(begun=snap.batch_id)
    attributes.recover(batch.header, snap.panel)
    blocks = {each.id: each for each in reversed(snap.blocks)}
    batch.items = [_item(it, blocks[name]) for name, it in snap.items.items() if ID.fullmatch(name)]
    return batch


def _item(it: Previous, block: Block) -> Input:
    judge = _judge(it, block)
    return Input(
        it.id,
        block.line,
        title=it.title or "",
        mode=it.mode,
        depends_on=it.depends_on,
        waive=it.waived,
        uses=it.uses,
        reversibility=it.reversibility,
        judge=judge,
        results=tuple(judge.step_results or ()),
        has_section=True,
    )


def _judge(it: Previous, block: Block) -> Judge:
    binding = {
        dim: Bound(
            rating=each.rating,
            drivers=list(each.drivers),
            confidence=each.confidence,
            evidence_tier=each.tier,
        )
        for dim, each in it.binding.items()
    }
    results = [each for number, step in enumerate(it.steps, 1) for each in _result(number, step)]
    return Judge(
        profile=it.profile,
        domain_type=it.domain,
        urgency=it.urgency,
        proposed_verdict=it.verdict,
        close_intent=Close.YES if it.state is State.CLOSED else None,
        why=_said(it.why),
        critical_driver=it.critical,
        dominant_tradeoff=_said(it.tradeoff),
        next_uncertainty=_said(it.uncertainty),
        contested=Flag.YES if it.contested else None,
        binding=binding or None,
        steps=[_pending(each) for each in it.steps],
        step_results=results or None,
        probe=_probe(block),
    )


def _said(text: str) -> str | None:
    return None if text == "-" else text


def _pending(step: Step) -> str:
    return f"{step.short} | timebox<={step.minutes}m | fail_if={step.fail_if}"


def _result(number: int, step: Step) -> list[Result]:
    if step.status is None:
        return []
    said = step.result or None
    return [Result(step=f"S{number}", status=step.status, evidence_tier=step.tier, result=said)]


def _probe(block: Block) -> Trial | None:
    said = block.fields("PROBE")
    if not said.get("probe_id"):
        return None
    texts = (
        *("probe_id", "target_driver", "decision_context_id", "decision_context_driver"),
        *("decision_context_metric", "constraint_signature", "kill_switch_condition"),
        *("kill_switch_threshold", "representativeness"),
    )
    given = {name: value for name in texts if (value := said.get(name, "-")) != "-"}
    return Trial(
        status=Found.read(said.get("status")),
        context_match=Match.read(said.get("context_match")),
        evidence_tier=Tier.read(said.get("evidence_tier")),
        **given,  # type: ignore[arg-type]  # fields of text alone
    )
