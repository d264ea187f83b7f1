"""Invariants that hold for every batch.

The same examples in every run; `ACCORD_LONG=1` tries many more of them, and others each time.
"""

import json
import os
import re
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core import docket
from accord.core.dialects import papvp
from accord.core.docket.model import DecisionItem, DecisionOutcome, KernelConfig
from accord.core.docket.rendering import snapshot_writer
from accord.core.docket.rules import dependency_graph, ratings
from accord.core.docket.steps import dependencies_waived_by
from accord.core.docket.triggers import Trigger
from accord.core.docket.vocabulary import (
    RUNNING_STATES,
    TERMINAL_STATES,
    VERDICTS_OF_STATE,
    ClosePolicy,
    ClosureTier,
    ItemState,
    KernelPolicy,
    Surface,
)
from tests.helpers.docket.batch_text import item, parsed_snapshot, run_batch
from tests.helpers.docket.random_batches import ODD_TEXTS, BatchGenerator
from tests.spec import proves

LONG = bool(os.environ.get("ACCORD_LONG"))
EXAMPLES = settings(max_examples=2000 if LONG else 60, deadline=None, derandomize=not LONG)
MAX_ROUNDS = 8
seeds = st.integers(0, 2**40)
policies = st.sampled_from(list(KernelPolicy))
pytestmark = pytest.mark.timeout(3600 if LONG else 300)  # measuring coverage multiplies the time


def live_items(outcome: DecisionOutcome) -> list[DecisionItem]:
    return [entry for entry in outcome.items if entry.state not in TERMINAL_STATES]


def check_invariants(outcome: DecisionOutcome) -> None:
    assert outcome.is_valid, outcome.diagnostics
    for entry in outcome.items:
        assert entry.verdict in VERDICTS_OF_STATE[entry.state]
        assert len(entry.planned_steps) <= 5
        assert entry.next_number <= len(entry.planned_steps)
        assert not entry.next_number or entry.planned_steps[entry.next_number - 1].is_pending
        assert bool(entry.next_number) or entry.state not in RUNNING_STATES
        assert entry.reopen_total <= 1
        strict = entry.is_irreversible or outcome.close_policy is ClosePolicy.REAL_ONLY
        assert not (entry.closure_tier is ClosureTier.SIM and strict)
    for entry in live_items(outcome):
        assert entry.confidence <= ratings.confidence_cap(entry) or entry.held
    assert len({entry.falsification_debt for entry in outcome.items} - {"NONE"}) <= 2
    check_resource_pool(outcome)
    check_cycles_stand_by(outcome)


def check_resource_pool(outcome: DecisionOutcome) -> None:
    used: Counter[str] = Counter()
    for entry in outcome.items:
        if entry.state is ItemState.ACTIVE:
            used.update(entry.uses)
    for name, limit in (outcome.resource_pool or {}).items():
        assert used[name] <= limit


def check_cycles_stand_by(outcome: DecisionOutcome) -> None:
    live = {entry.id: entry for entry in live_items(outcome)}
    edges = {
        name: [dep for dep in entry.depends_on if dep in live and dep not in entry.waived]
        for name, entry in live.items()
    }
    for name in dependency_graph.cycle_members(edges):
        assert live[name].state is ItemState.STANDBY


@proves("PA-OUTPUT-1", "PA-OUTPUT-2", "PA-OUTPUT-3", "PA-OUTPUT-6")
@proves("PA-RES-2", "OPEN-84", "OPEN-85")
@EXAMPLES
@given(seeds, policies)
def test_every_decided_batch_satisfies_the_invariants(seed: int, policy: KernelPolicy) -> None:
    text = BatchGenerator(seed).batch()

    outcome = run_batch(text, policy=policy)

    check_invariants(outcome)
    assert snapshot_writer.render_block(
        run_batch(text, policy=policy)
    ) == snapshot_writer.render_block(outcome)
    asked = set(re.findall(r"^<<<I id=([^ >]+)", text, re.MULTILINE))
    assert {entry.id for entry in outcome.items if not entry.input.split_from} == asked


@EXAMPLES
@given(seeds)
def test_order_of_items_does_not_change_their_decisions(seed: int) -> None:
    generator = BatchGenerator(seed)
    head = generator.header()
    first = list({entry.split(" ")[1]: entry for entry in generator.items()}.values())
    second = list(first)
    generator.random.shuffle(second)

    one, other = run_batch(head + "".join(first)), run_batch(head + "".join(second))

    def decisions(outcome: DecisionOutcome) -> dict[str, tuple[Any, ...]]:
        return {
            entry.id: (
                entry.state,
                entry.verdict,
                entry.trigger,
                entry.confidence,
                entry.planned_steps,
                entry.falsification_debt,
            )
            for entry in outcome.items
        }

    assert decisions(one) == decisions(other)


@proves("PA-INPUT-5")
@EXAMPLES
@given(seeds, policies)
def test_feeding_a_snapshot_back_reaches_a_fixed_point(seed: int, policy: KernelPolicy) -> None:
    text = snapshot_writer.render_fenced(run_batch(BatchGenerator(seed).batch(), policy=policy))
    for _ in range(MAX_ROUNDS):
        again = run_batch(text, policy=policy)
        check_invariants(again)
        previous, text = text, snapshot_writer.render_fenced(again)
        if text == previous:
            return
    pytest.fail(f"no fixed point after {MAX_ROUNDS} rounds")


@EXAMPLES
@given(seeds)
def test_second_round_satisfies_the_invariants_and_keeps_every_item(seed: int) -> None:
    generator = BatchGenerator(seed)
    before = run_batch(generator.batch())

    after = run_batch(papvp.render_outcome(before) + "".join(generator.items()))

    check_invariants(after)
    totals = {entry.id: entry.reopen_total for entry in reversed(before.items)}
    assert all(entry.reopen_total >= totals.get(entry.id, 0) for entry in after.items if entry.prev)
    assert {entry.id for entry in before.items} <= {entry.id for entry in after.items}


# Fields that only the next run needs, and so the text alone has to hold.
ONLY_IN_TEXT: dict[str, Any] = {"updated_at": "", "keep_open": None, "expire_days": None}


def check_round_trip(outcome: DecisionOutcome) -> None:
    """The text of a snapshot parses back to the values that rules and tables take from objects."""
    made, parsed = docket.snapshot_of(outcome), parsed_snapshot(outcome)
    assert parsed.queue == made.queue
    assert list(parsed.items) == list(made.items)
    for name, read in parsed.items.items():
        assert replace(read, **ONLY_IN_TEXT) == made.items[name]
    assert made.panel.items() <= parsed.panel.items()
    for entry in outcome.items:
        if entry.trigger is Trigger.DUPLICATE_ID_REJECTED:
            continue
        found = parsed.items[entry.id]
        assert [step.render() for step in found.steps] == [
            step.render() for step in entry.planned_steps
        ]
        assert set(entry.waived) <= {*found.waived, *dependencies_waived_by(found.steps)}
        if entry.surface is Surface.DELTA:
            assert found.updated_at == entry.updated_at
        if entry.surface is not Surface.MIN_SURFACE:
            assert list(found.probe_log) == entry.full_probe_log


@proves("OPEN-82")
@EXAMPLES
@given(seeds)
def test_rendered_snapshot_parses_back_to_the_same_fields(seed: int) -> None:
    generator = BatchGenerator(seed)
    first = run_batch(generator.batch())
    check_round_trip(first)

    second = run_batch(papvp.render_outcome(first) + "".join(generator.items()))

    check_round_trip(second)
    text = snapshot_writer.render_fenced(second)
    assert (
        papvp.check_snapshot(text, tuple({entry.id for entry in second.items})).checked.flaws == []
    )


LETTERS = st.sampled_from("<>[]{}\\=|:- \nAIBPS1\"'`é") | st.characters()
LEADS = ("", "REPORT\n", "COMPARE\n", "CHECK repair=YES\n", "<<<I id=A>>>\n<<<JUDGE>>>\n")


@EXAMPLES
@given(st.text(alphabet=LETTERS, max_size=200))
def test_parser_survives_any_text(text: str) -> None:
    for lead in LEADS:
        papvp.respond(lead + text)


@EXAMPLES
@given(seeds)
def test_parser_survives_a_damaged_snapshot(seed: int) -> None:
    generator = BatchGenerator(seed)
    lines = papvp.render_outcome(run_batch(generator.batch())).split("\n")
    for _ in range(generator.random.randint(1, 6)):
        at = generator.random.randrange(len(lines))
        odd = (*ODD_TEXTS, "[PANEL]", "[ITEM id=Z]", "STATE: DECISION.X", lines[at][::-1])
        lines[at] = generator.choose(odd)
    damaged = "\n".join(lines)

    for lead in LEADS:
        papvp.respond(lead + damaged)


@proves("PA-INVALID-2")
@EXAMPLES
@given(seeds)
def test_snapshot_marked_invalid_is_never_used_as_state(seed: int) -> None:
    text = snapshot_writer.render_fenced(run_batch(BatchGenerator(seed).batch())).replace(
        "[PANEL]\n", "[PANEL]\nOutputValidity: INVALID\n"
    )

    outcome = run_batch(text)

    assert outcome.invalid_reason == "OTHER"
    assert outcome.items == []


KEYS = st.sampled_from(["steps", "probe", "binding", "split", "delta", "why", "x"])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
)


@EXAMPLES
@given(ANY_JSON)
def test_guarded_policy_accepts_any_json_as_a_judgement(data: Any) -> None:
    run_batch(item("A", None, more=f"<<<JUDGE>>>\n{json.dumps(data)}"), policy=KernelPolicy.GUARDED)


def test_run_does_not_modify_its_batch() -> None:
    batch = docket.parse_batch(
        item("A", {"proposed_verdict": "DISCARD"}, attrs="depends_on=Z uses=R:1")
    )
    config = KernelConfig()

    first, second = docket.run(batch, config), docket.run(batch, config)

    assert snapshot_writer.render_block(first) == snapshot_writer.render_block(second)
