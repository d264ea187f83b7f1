"""A judgement: a judge's opinion of an item, as data. The rules use only what it states."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from accord.core.docket.vocabulary import (
    CloseIntent,
    Confidence,
    ContextMatch,
    Dimension,
    DomainType,
    EvidenceTier,
    KillSwitchMargin,
    LenientEnum,
    Level,
    ProbeStatus,
    Profile,
    StepKind,
    StepStatus,
    Verdict,
    YesNo,
)


class ExternalKind(LenientEnum):
    """What an item needs from outside."""

    BLOCKED = "BLOCKED"
    DATA_REQUIRED = "DATA_REQUIRED"


class SpecSource(LenientEnum):
    """Where a line of the specification comes from."""

    PLAN = "PLAN"
    JUDGE = "JUDGE"
    SIMULATED = "SIMULATED"


class ArtifactType(LenientEnum):
    """The kind of an audited artifact."""

    PROTOCOL = "PROTOCOL"
    PROMPT = "PROMPT"
    CODE = "CODE"
    DOC = "DOC"
    CONFIG = "CONFIG"
    OTHER = "OTHER"


class JudgementPart(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a judgement; every field is optional."""


class JudgedRating(JudgementPart, frozen=True, kw_only=True):
    """One rating and the evidence behind it."""

    rating: Level | None = None
    drivers: Annotated[
        list[str] | None, Meta(description="What the rating depends on, as short names.")
    ] = None
    confidence: Confidence | None = None
    evidence_tier: EvidenceTier | None = None
    evidence_ref: Annotated[
        str | None, Meta(description="Where the evidence is; needed from HISTORICAL upwards.")
    ] = None


class Driver(JudgementPart, frozen=True, kw_only=True):
    """A factor that the outcome depends on."""

    name: str | None = None
    strength: Level | None = None


class PlanSpecs(JudgementPart, frozen=True, kw_only=True):
    """The minimum that a plan must state to be judged."""

    goal_state: str | None = None
    system_boundary: str | None = None
    hard_constraint: str | None = None
    source: SpecSource | None = None


class ProposedStep(JudgementPart, frozen=True, kw_only=True):
    """A step with an explicit kind, which is otherwise inferred from its verb."""

    kind: StepKind | None = None
    text: str | None = None
    target_driver: str | None = None


class ProbeReport(JudgementPart, frozen=True, kw_only=True):
    """A probe: its design, or its result."""

    probe_id: str | None = None
    target_driver: str | None = None
    decision_context: str | None = None
    decision_context_id: str | None = None
    decision_context_driver: str | None = None
    decision_context_metric: str | None = None
    constraint_signature: Annotated[
        str | None,
        Meta(description="ENV=…|SCALE=…|DATA=…|TIME=…, then |CONSTRAINTS= with sorted ids."),
    ] = None
    creator_decision_id: str | None = None
    status: ProbeStatus | None = None
    context_match: ContextMatch | None = None
    kill_switch_condition: Annotated[
        str | None, Meta(description="What ends the idea, such as error_rate>1.0.")
    ] = None
    kill_switch_triggered: YesNo | None = None
    kill_switch_threshold: str | None = None
    kill_switch_value: str | None = None
    kill_switch_margin: KillSwitchMargin | None = None
    representativeness: Annotated[
        str | None, Meta(description="HIGH, MED or LOW, then optionally OVERRIDE_REPR(owner).")
    ] = None
    evidence_tier: EvidenceTier | None = None
    contested: YesNo | None = None
    created_at: str | None = None
    expires_at: str | None = None
    result_summary: str | None = None
    decision_changed: YesNo | None = None
    requires: Annotated[
        list[str] | None, Meta(description="Items whose outcome the probe needs first.")
    ] = None
    repr_q: Annotated[
        list[YesNo] | None, Meta(description="Same load, same data, same environment?")
    ] = None


class HedgeRequest(JudgementPart, frozen=True, kw_only=True):
    """A request to start while the item is still probing."""

    window_exceeded: YesNo | None = None
    risk_cap: str | None = None
    risk_contained: YesNo | None = None


class ExternalDependency(JudgementPart, frozen=True, kw_only=True):
    """Something that only a third party can provide."""

    kind: ExternalKind | None = None
    internal_probe: YesNo | None = None
    ask: str | None = None


class MissingSource(JudgementPart, frozen=True, kw_only=True):
    """A source that was not available to the judge."""

    what: str | None = None
    identifiable: YesNo | None = None
    acquirable: YesNo | None = None


class StepResult(JudgementPart, frozen=True, kw_only=True):
    """How a step ended."""

    step: str | None = None
    status: StepStatus | None = None
    evidence_tier: EvidenceTier | None = None
    result: str | None = None
    token: str | None = None


class Delta(JudgementPart, frozen=True, kw_only=True, rename={"broke": "break"}):
    """What broke since the last run, the change that answers it, and what the change refers to."""

    broke: str | None = None
    patch: str | None = None
    refs: Annotated[
        list[str] | None, Meta(description="driver:X, probe:P, evidence:TIER or relation:A->B.")
    ] = None


class ArtifactAudit(JudgementPart, frozen=True, kw_only=True):
    """The findings of an audit of an artifact."""

    artifact_type: ArtifactType | None = None
    completeness: str | None = None
    coherence: str | None = None
    operationality: str | None = None
    top_defects: list[str] | None = None
    top_deltas: list[str] | None = None
    defect: str | None = None
    patch: str | None = None
    step: str | None = None
    equivalence_probe: str | None = None


class JudgedAlternative(JudgementPart, frozen=True, kw_only=True):
    """An alternative that is clearly better."""

    text: str | None = None
    driver_changes: str | None = None
    tradeoffs: str | None = None


class DataAcquisition(JudgementPart, frozen=True, kw_only=True):
    """Data that would improve the judgement."""

    need: str | None = None
    path: str | None = None
    impact: Level | None = None
    cost: Level | None = None


class Judgement(JudgementPart, frozen=True, kw_only=True):
    """The judgement of one item."""

    title: str | None = None
    profile: Profile | None = None
    domain_type: DomainType | None = None
    urgency: Level | None = None
    proposed_verdict: Verdict | None = None
    close_intent: CloseIntent | None = None
    why: str | None = None
    critical_driver: Annotated[
        str | None, Meta(description="The one thing that decides; also named in the binding.")
    ] = None
    dominant_tradeoff: str | None = None
    next_uncertainty: str | None = None
    drivers: list[Driver] | None = None
    impact_graph: Annotated[list[str] | None, Meta(description="A UP -> B DOWN (HIGH)")] = None
    assumptions: list[str] | None = None
    evidence_available: list[str] | None = None
    uncertainties: list[str] | None = None
    binding: Annotated[
        dict[Dimension, JudgedRating] | None,
        Meta(description="All four dimensions, each with its evidence."),
    ] = None
    friction: Annotated[Level | None, Meta(description="For profile DIY.")] = None
    provable: YesNo | None = None
    test_ref: str | None = None
    contested: YesNo | None = None
    contested_points: list[str] | None = None
    specs: PlanSpecs | None = None
    steps: Annotated[
        list[str | ProposedStep] | None,
        Meta(description="At most five: VERB OBJECT -> OUTPUT | timebox<=10m | fail_if=CONDITION"),
    ] = None
    probe: ProbeReport | None = None
    probe_results: list[ProbeReport] | None = None
    adopt: list[str] | None = None
    disadopt: list[str] | None = None
    waive: Annotated[
        list[str] | None, Meta(description="Dependencies that are knowingly not waited for.")
    ] = None
    independent_probe: YesNo | None = None
    hedge: HedgeRequest | None = None
    external: ExternalDependency | None = None
    missing_source: MissingSource | None = None
    redesignable: YesNo | None = None
    split: Annotated[
        list["Judgement"] | None, Meta(description="Two to five, one per independent driver.")
    ] = None
    step_results: list[StepResult] | None = None
    delta: Delta | None = None
    audit: ArtifactAudit | None = None
    alternative: JudgedAlternative | None = None
    review: list[str] | None = None
    data_acquisition: list[DataAcquisition] | None = None


EMPTY_JUDGEMENT = Judgement()


def judgement_schema() -> dict[str, Any]:
    """The JSON Schema of a judgement, for programs that write one."""
    made = msgspec.json.schema(Judgement)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}
