"""What holds for every batch, whatever is in it."""

import json
import os
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core import docket
from accord.core.dialects import papvp
from accord.core.docket import emit, evidence, graph
from accord.core.docket.intake import waived_by
from accord.core.docket.model import Config, Item, Outcome
from accord.core.docket.snapshot import Snapshot
from accord.core.docket.text import one_line
from accord.core.docket.words import (
    RUNNING,
    TERMINAL,
    VERDICTS,
    ClosePolicy,
    Closure,
    Policy,
    State,
    Surface,
    Trigger,
)
from tests.helpers.batches import WORDS, Maker
from tests.helpers.docket import decide, item
from tests.spec import proves

seeds = st.integers(0, 2**40)
# Thousands over all properties where CI decides what is merged; while one writes, hundreds.
COUNT = 500 if os.environ.get("CI") else 300
MANY = settings(max_examples=COUNT, deadline=None)
policies = st.sampled_from(list(Policy))
pytestmark = pytest.mark.timeout(300)  # so many take a while where each line is counted


def lives(outcome: Outcome) -> list[Item]:
    return [each for each in outcome.items if each.state not in TERMINAL]


def holds(outcome: Outcome) -> None:
    """Every invariant of a single outcome."""
    assert outcome.valid, outcome.diags
    for each in outcome.items:
        assert each.verdict in VERDICTS[each.state]
        assert len(each.plan) <= 5
        assert each.next <= len(each.plan)
        assert not each.next or each.plan[each.next - 1].pending
        assert bool(each.next) or each.state not in RUNNING
        assert each.reopen_total <= 1
        strict = each.irreversible or outcome.close_policy is ClosePolicy.REAL_ONLY
        assert not (each.closure is Closure.SIM and strict)
    for each in lives(outcome):
        assert each.confidence <= evidence.cap(each) or each.held
    assert len({each.debt for each in outcome.items} - {"NONE"}) <= 2
    within_pool(outcome)
    no_cycle_runs(outcome)


def within_pool(outcome: Outcome) -> None:
    used: Counter[str] = Counter()
    for each in outcome.items:
        if each.state is State.ACTIVE:
            used.update(each.uses)
    for name, limit in (outcome.pool or {}).items():
        assert used[name] <= limit


def no_cycle_runs(outcome: Outcome) -> None:
    live = {each.id: each for each in lives(outcome)}
    edges = {
        name: [dep for dep in each.depends_on if dep in live and dep not in each.waived]
        for name, each in live.items()
    }
    for name in graph.cycles(edges):
        assert live[name].state is State.STANDBY


@proves("PA-OUTPUT-1", "PA-OUTPUT-2", "PA-OUTPUT-3", "PA-OUTPUT-6")
@proves("PA-RES-2", "OPEN-84", "OPEN-85")
@MANY
@given(seeds, policies)
def test_every_batch_is_decided_within_the_rules(seed: int, policy: Policy) -> None:
    text = Maker(seed).batch()

    outcome = decide(text, policy=policy)

    holds(outcome)
    assert emit.block(decide(text, policy=policy)) == emit.block(outcome)
    asked = set(re.findall(r"^<<<I id=([^ >]+)", text, re.MULTILINE))
    assert {each.id for each in outcome.items if not each.inp.split_from} == asked


@MANY
@given(seeds)
def test_the_order_of_items_changes_only_the_order(seed: int) -> None:
    maker = Maker(seed)
    head = maker.header()
    first = list({each.split(" ")[1]: each for each in maker.items()}.values())
    second = list(first)
    maker.random.shuffle(second)

    one, two = decide(head + "".join(first)), decide(head + "".join(second))

    def told(outcome: Outcome) -> dict[str, tuple[Any, ...]]:
        return {
            each.id: (each.state, each.verdict, each.trigger, each.confidence, each.plan, each.debt)
            for each in outcome.items
        }

    assert told(one) == told(two)


@proves("PA-INPUT-5")
@MANY
@given(seeds, policies)
def test_pasting_the_answer_back_settles(seed: int, policy: Policy) -> None:
    text = emit.fenced(decide(Maker(seed).batch(), policy=policy))
    for _ in range(8):
        again = decide(text, policy=policy)
        holds(again)
        same, text = emit.fenced(again) == text, emit.fenced(again)
        if same:
            return
    pytest.fail("it never settles")


@MANY
@given(seeds)
def test_a_second_round_on_the_answer_stays_within_the_rules(seed: int) -> None:
    maker = Maker(seed)
    before = decide(maker.batch())

    after = decide(papvp.message(before) + "".join(maker.items()))

    holds(after)
    totals = {each.id: each.reopen_total for each in reversed(before.items)}
    assert all(each.reopen_total >= totals.get(each.id, 0) for each in after.items if each.prev)
    assert {each.id for each in before.items} <= {each.id for each in after.items}


def reads_back(outcome: Outcome) -> None:
    """Every field that is printed of an item is found again in the text."""
    snap = docket.snapshot_of(outcome)
    assert [row.id for row in snap.queue] == [each.id for each in outcome.items]
    for each in outcome.items:
        if each.trigger is Trigger.DUPLICATE_ID_REJECTED:
            continue
        it, row = snap.items[each.id], snap.rows[each.id]
        assert (row.before, row.state, row.verdict) == (each.before, each.state, each.verdict)
        assert (row.expires, row.pace, row.gate) == (each.expires, each.pace, each.gate)
        assert (it.title, it.mode) == (one_line(each.title), each.mode)
        assert (it.profile, it.domain) == (each.profile, each.domain)
        assert (it.state, it.verdict, it.impact) == (each.state, each.verdict, each.impact)
        assert (it.urgency, it.score, it.contested) == (each.urgency, each.score, each.contested)
        assert (it.depends_on, it.uses) == (each.depends_on, each.uses)
        assert (it.reversibility, it.fail_fast) == (each.reversibility, each.fail_fast)
        assert (it.missing_ratings, it.hedge) == (each.missing_ratings, each.hedge)
        assert (it.why, it.tradeoff) == (each.why, each.tradeoff)
        assert (it.uncertainty, it.critical) == (each.uncertainty, each.critical)
        assert (it.trigger, it.confidence, it.tier) == (each.trigger, each.confidence, each.tier)
        assert (it.debt, it.gate, it.pace) == (each.debt, each.gate, each.pace)
        assert (it.split_from, it.split_into) == (each.inp.split_from, each.split_into)
        assert (it.closure, it.reopened) == (each.closure, each.reopen_total)
        assert it.blocked == each.blocked
        assert set(each.waived) <= {*it.waived, *waived_by(it.steps)}
        counters = {name: str(getattr(each.counters, name)) for name in ("pc", "nm", "nmd", "inc")}
        assert {name: it.counters[name] for name in counters} == counters
        numbers = [number for number, _ in (line.step for line in steps_of(snap, each.id))]
        assert numbers == list(range(1, len(each.plan) + 1))
        assert [one.line() for one in it.steps] == [one.line() for one in each.plan]
        assert it.next == (it.steps[each.next - 1] if each.next else None)
        if each.surface in (Surface.DEBUG, Surface.DELTA):
            assert it.binding == each.binding
        if each.surface is not Surface.MIN_SURFACE:
            assert list(it.log) == each.log_out


def steps_of(snap: Snapshot, name: str) -> list[Any]:
    block = next(each for each in snap.blocks if each.id == name)
    return [each for each in block.steps if each.text != "(none)"]


@proves("OPEN-82")
@MANY
@given(seeds)
def test_what_is_printed_reads_back_the_same(seed: int) -> None:
    maker = Maker(seed)
    first = decide(maker.batch())
    reads_back(first)

    second = decide(papvp.message(first) + "".join(maker.items()))

    reads_back(second)
    text = emit.fenced(second)
    assert papvp.checked(text, tuple({each.id for each in second.items})).checked.flaws == []


LETTERS = st.sampled_from("<>[]{}\\=|:- \nAIBPS1\"'`é") | st.characters()
LEADS = ("", "REPORT\n", "COMPARE\n", "CHECK repair=YES\n", "<<<I id=A>>>\n<<<JUDGE>>>\n")


@MANY
@given(st.text(alphabet=LETTERS, max_size=200))
def test_no_text_breaks_the_parser(text: str) -> None:
    for lead in LEADS:
        papvp.answer(lead + text)


@settings(max_examples=100, deadline=None)
@given(seeds)
def test_no_damage_to_a_snapshot_breaks_the_parser(seed: int) -> None:
    maker = Maker(seed)
    lines = papvp.message(decide(maker.batch())).split("\n")
    for _ in range(maker.random.randint(1, 6)):
        at = maker.random.randrange(len(lines))
        odd = (*WORDS, "[PANEL]", "[ITEM id=Z]", "STATE: DECISION.X", lines[at][::-1])
        lines[at] = maker.one(odd)
    damaged = "\n".join(lines)

    for lead in LEADS:
        papvp.answer(lead + damaged)


@proves("PA-INVALID-2")
@given(seeds)
def test_an_invalid_output_is_never_state(seed: int) -> None:
    text = emit.fenced(decide(Maker(seed).batch())).replace(
        "[PANEL]\n", "[PANEL]\nOutputValidity: INVALID\n"
    )

    outcome = decide(text)

    assert outcome.invalid == "OTHER"
    assert outcome.items == []


KEYS = st.sampled_from(["steps", "probe", "binding", "split", "delta", "why", "x"])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(KEYS, inner),
)


@given(ANY_JSON)
def test_any_json_is_a_judgement_of_sorts(data: Any) -> None:
    decide(item("A", None, more=f"<<<JUDGE>>>\n{json.dumps(data)}"), policy=Policy.GUARDED)


def test_a_run_leaves_its_batch_alone() -> None:
    batch = docket.parse(item("A", {"proposed_verdict": "DISCARD"}, attrs="depends_on=Z uses=R:1"))
    config = Config()

    first, second = docket.run(batch, config), docket.run(batch, config)

    assert emit.block(first) == emit.block(second)
