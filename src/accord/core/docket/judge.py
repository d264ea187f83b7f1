"""A judgement: what somebody thinks of an item, as data. The rules are not asked to guess."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from accord.core.docket.word import Word
from accord.core.docket.words import (
    Close,
    Confidence,
    Dim,
    Domain,
    Done,
    Flag,
    Found,
    Kind,
    Level,
    Margin,
    Match,
    Profile,
    Tier,
    Verdict,
)


class External(Word):
    """What an item waits for outside."""

    BLOCKED = "BLOCKED"
    DATA_REQUIRED = "DATA_REQUIRED"


class Source(Word):
    """Who wrote a specification line."""

    PLAN = "PLAN"
    JUDGE = "JUDGE"
    SIMULATED = "SIMULATED"


class Artifact(Word):
    """What kind of thing is audited."""

    PROTOCOL = "PROTOCOL"
    PROMPT = "PROMPT"
    CODE = "CODE"
    DOC = "DOC"
    CONFIG = "CONFIG"
    OTHER = "OTHER"


class Part(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something of a judgement: every field may be left out."""


class Bound(Part, frozen=True, kw_only=True):
    """One rating with what it rests on."""

    rating: Level | None = None
    drivers: Annotated[
        list[str] | None, Meta(description="What the rating depends on, as short names.")
    ] = None
    confidence: Confidence | None = None
    evidence_tier: Tier | None = None
    evidence_ref: Annotated[
        str | None, Meta(description="Where the evidence is; needed from HISTORICAL upwards.")
    ] = None


class Driver(Part, frozen=True, kw_only=True):
    """Something that the outcome depends on."""

    name: str | None = None
    strength: Level | None = None


class Specs(Part, frozen=True, kw_only=True):
    """What a plan must say before it is worth judging."""

    goal_state: str | None = None
    system_boundary: str | None = None
    hard_constraint: str | None = None
    source: Source | None = None


class StepAsk(Part, frozen=True, kw_only=True):
    """A step whose kind is said and not read from its words."""

    kind: Kind | None = None
    text: str | None = None
    target_driver: str | None = None


class Trial(Part, frozen=True, kw_only=True):
    """A probe, or what one has shown."""

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
    status: Found | None = None
    context_match: Match | None = None
    kill_switch_condition: Annotated[
        str | None, Meta(description="What ends the idea, such as error_rate>1.0.")
    ] = None
    kill_switch_triggered: Flag | None = None
    kill_switch_threshold: str | None = None
    kill_switch_value: str | None = None
    kill_switch_margin: Margin | None = None
    representativeness: Annotated[
        str | None, Meta(description="HIGH, MED or LOW, then optionally OVERRIDE_REPR(owner).")
    ] = None
    evidence_tier: Tier | None = None
    contested: Flag | None = None
    created_at: str | None = None
    expires_at: str | None = None
    result_summary: str | None = None
    decision_changed: Flag | None = None
    requires: Annotated[
        list[str] | None, Meta(description="Items whose outcome the probe needs first.")
    ] = None
    repr_q: Annotated[
        list[Flag] | None, Meta(description="Same load, same data, same environment?")
    ] = None


class Hedge(Part, frozen=True, kw_only=True):
    """A case for starting while still probing."""

    window_exceeded: Flag | None = None
    risk_cap: str | None = None
    risk_contained: Flag | None = None


class Outside(Part, frozen=True, kw_only=True):
    """Something that only others can give."""

    kind: External | None = None
    internal_probe: Flag | None = None
    ask: str | None = None


class Missing(Part, frozen=True, kw_only=True):
    """A source that the judge did not have."""

    what: str | None = None
    identifiable: Flag | None = None
    acquirable: Flag | None = None


class Result(Part, frozen=True, kw_only=True):
    """How a step ended."""

    step: str | None = None
    status: Done | None = None
    evidence_tier: Tier | None = None
    result: str | None = None
    token: str | None = None


class Delta(Part, frozen=True, kw_only=True, rename={"broke": "break"}):
    """What broke since the last run, what is changed for it, and what that refers to."""

    broke: str | None = None
    patch: str | None = None
    refs: Annotated[
        list[str] | None,
        Meta(description="driver:X, probe:P, evidence:TIER or relation:A->B."),
    ] = None


class Audit(Part, frozen=True, kw_only=True):
    """What an audit of an artifact found."""

    artifact_type: Artifact | None = None
    completeness: str | None = None
    coherence: str | None = None
    operationality: str | None = None
    top_defects: list[str] | None = None
    top_deltas: list[str] | None = None
    defect: str | None = None
    patch: str | None = None
    step: str | None = None
    equivalence_probe: str | None = None


class Alternative(Part, frozen=True, kw_only=True):
    """Another way that is clearly better."""

    text: str | None = None
    driver_changes: str | None = None
    tradeoffs: str | None = None


class Need(Part, frozen=True, kw_only=True):
    """Data that would make the judgement better."""

    need: str | None = None
    path: str | None = None
    impact: Level | None = None
    cost: Level | None = None


class Judge(Part, frozen=True, kw_only=True):
    """A judgement of one item."""

    title: str | None = None
    profile: Profile | None = None
    domain_type: Domain | None = None
    urgency: Level | None = None
    proposed_verdict: Verdict | None = None
    close_intent: Close | None = None
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
        dict[Dim, Bound] | None, Meta(description="All four dimensions, each with its evidence.")
    ] = None
    friction: Annotated[Level | None, Meta(description="For profile DIY.")] = None
    provable: Flag | None = None
    test_ref: str | None = None
    contested: Flag | None = None
    contested_points: list[str] | None = None
    specs: Specs | None = None
    steps: Annotated[
        list[str | StepAsk] | None,
        Meta(description="At most five: VERB OBJECT -> OUTPUT | timebox<=10m | fail_if=CONDITION"),
    ] = None
    probe: Trial | None = None
    probe_results: list[Trial] | None = None
    adopt: list[str] | None = None
    disadopt: list[str] | None = None
    waive: Annotated[
        list[str] | None, Meta(description="Dependencies that are knowingly not waited for.")
    ] = None
    independent_probe: Flag | None = None
    hedge: Hedge | None = None
    external: Outside | None = None
    missing_source: Missing | None = None
    redesignable: Flag | None = None
    split: Annotated[
        list["Judge"] | None, Meta(description="Two to five, one per independent driver.")
    ] = None
    step_results: list[Result] | None = None
    delta: Delta | None = None
    audit: Audit | None = None
    alternative: Alternative | None = None
    review: list[str] | None = None
    data_acquisition: list[Need] | None = None


NOTHING = Judge()


def schema() -> dict[str, Any]:
    """A judgement as JSON Schema, for whatever writes one."""
    made = msgspec.json.schema(Judge)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}
