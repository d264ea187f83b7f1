"""The cost of a batch is linear in its items, its edges and the length of its texts.

Work is counted rather than timed: the lines of Python that run, which is the same number on a busy
machine. The count cannot see what one line does inside the interpreter; for that, CPU time is
measured on so many small items that a needless copy or search for each of them stands out.

`ACCORD_LONG=1` counts and measures with four times as many items.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from types import FrameType
from typing import Any

import pytest

from accord.core import docket
from accord.core.dialects import papvp
from accord.core.docket import executor_contract, pipeline
from accord.core.docket.model import Batch, ItemInput, PreviousItem
from accord.core.docket.parsing import batch_parser, snapshot_parser
from accord.core.docket.rendering import snapshot_writer
from accord.core.docket.session_kernel import SessionKernel
from accord.core.docket.steps import Step, is_kernel_step
from accord.core.docket.validation import snapshot_check
from accord.core.docket.vocabulary import ItemMode, ItemState, StepKind
from tests.helpers.docket.batch_text import evidence, item, probe, run_batch, step, valid_judgement
from tests.helpers.measure.cpu_time import measure_cpu
from tests.spec import proves

ACCORD_LONG = bool(os.environ.get("ACCORD_LONG"))
BASE_COUNT, FEW, FACTOR = 5, 20 if ACCORD_LONG else 10, 4
# Linear work grows by 4.0 to the second digit; the rest is for sorting.
MAX_GROWTH = 4.06
# Linear work takes four times as long, quadratic work sixteen; the rest is for a busy machine.
MAX_TIME_GROWTH = 9.0
SMALL_ITEMS = 4000 if ACCORD_LONG else 1000
Text = Callable[[int], str]


def chain(count: int) -> str:
    return items(count, lambda n: {"attrs": f"depends_on=I{n - 1}" if n else ""})


def star(count: int) -> str:
    """All items depend on the first, and the last on all others."""
    others = ",".join(f"I{n}" for n in range(1, count))
    return items(count, lambda n: {"attrs": "depends_on=I0"}) + item(
        "LAST", valid_judgement("LAST"), attrs=f"depends_on={others}"
    )


def waived(count: int) -> str:
    """One item waives its dependencies on all others."""
    others = ",".join(f"I{n}" for n in range(count))
    last = item("LAST", valid_judgement("LAST"), attrs=f"depends_on={others} waive={others}")
    return items(count, lambda _: {}) + last


def layers(count: int) -> str:
    """Layers of five; each item depends on three items of the layer before."""

    def before(n: int) -> str:
        first = n - n % 5 - 5
        return ",".join(f"I{first + (n + k) % 5}" for k in range(3)) if first >= 0 else ""

    return items(count, lambda n: {"attrs": f"depends_on={before(n)}"})


def small_cycles(count: int) -> str:
    """Cycles of three items each."""
    return items(count, lambda n: {"attrs": f"depends_on=I{n - n % 3 + (n + 1) % 3}"})


def one_cycle(count: int) -> str:
    return items(count, lambda n: {"attrs": f"depends_on=I{(n + 1) % count}"})


def pool(count: int) -> str:
    """All items use the same resource, which suffices for half of them."""
    head = f"<<<B resource_pool=ENG:{count},GPU:{count * 2}>>>\n"
    return head + items(count * 2, lambda _: {"attrs": "uses=ENG:1,GPU:1"})


def gate(count: int) -> str:
    """All items wait at one gate, and each may ask the user."""
    head = "<<<B close_policy=REAL_ONLY ask_user=ALLOW>>>\n"
    return head + items(count, lambda _: {}, close_intent="YES")


def debt(count: int) -> str:
    """Each item has low confidence for a different driver."""
    texts = (
        item(f"I{n}", valid_judgement(f"I{n}", f"d{n}", confidence="LOW")) for n in range(count)
    )
    return "".join(texts)


def adopted(count: int) -> str:
    """All items report and adopt a probe of the same name."""
    named = probe(probe_id="P", status="VALIDATED")
    return items(count, lambda _: {}, probe_results=[named], adopt=["P"], disadopt=["Q"])


def tried(count: int) -> str:
    """One item with many probe results and failed steps."""
    results = [probe(probe_id=f"P{n}", decision_context_id=f"c{n}") for n in range(count)]
    fails = "\n".join(f"<<<RESULT step=S{n} status=FAILED>>>" for n in range(1, count + 1))
    checks = [step("Check", f"it {n}") for n in range(count)]
    return item("A", valid_judgement("A", probe_results=results, steps=checks), more=fails)


def argued(count: int) -> str:
    """One item with many drivers, relations and references."""
    names = [f"d{n}" for n in range(count)]
    graph = [f"{name} UP -> x{name} DOWN (HIGH)" for name in names]
    graph += [f"x{a} UP -> x{b} UP (LOW)" for a, b in pairwise(names)]
    drivers = [{"name": name, "strength": "HIGH"} for name in names]
    refs = [f"{kind}:{name}" for kind in ("driver", "probe", "relation") for name in names]
    judge = valid_judgement("A", drivers=drivers, impact_graph=graph, delta={"refs": refs})
    first = snapshot_writer.render_fenced(run_batch(item("A", valid_judgement("A"))))
    return first + item("A", {**judge, "binding": None}, plan=None)


def split(count: int) -> str:
    """Each item is split in two and depends on the item before."""
    parts = [valid_judgement("A", steps=[]), valid_judgement("B", steps=[])]
    return items(count, lambda n: {"attrs": f"depends_on=I{n - 1}" if n else ""}, split=parts)


def words(count: int) -> str:
    """One item with long texts: a plan, evidence and sections of many lines."""
    plan = "- act\nGoal state: it works\nHard constraint: none\n" + "- and more of it\n" * count
    many = evidence(text="seen\n" * count) + "\n" + "\n".join([evidence()] * count)
    audit = {"top_defects": [f"defect {n}" for n in range(count)]}
    needs = [{"need": f"n{n}", "impact": "LOW"} for n in range(count)]
    return item(
        "A", valid_judgement("A", audit=audit, data_acquisition=needs), plan=plan, more=many
    )


def mistaken(count: int) -> str:
    """One judgement with many unknown keys, each on its own line."""
    keys = ",\n".join(f'"key{n}": 1' for n in range(count))
    return item(
        "A",
        valid_judgement("A"),
        more=f"<<<END>>>\n<<<I id=B>>>\n<<<PLAN>>>\n<<<JUDGE>>>\n{{{keys}}}",
    )


def items(count: int, more: Callable[[int], dict[str, Any]], **changes: Any) -> str:
    names = (f"I{n}" for n in range(count))
    return "".join(
        item(name, valid_judgement(name, **changes), **more(n)) for n, name in enumerate(names)
    )


SHAPES: tuple[Text, ...] = (
    *(chain, star, waived, layers, small_cycles, one_cycle, pool, gate, debt, adopted, split),
)
SINGLE_ITEM_SHAPES: tuple[Text, ...] = (argued, words, tried, mistaken)


def respond(text: str) -> None:
    """A run with its self-check, its snapshot and every table."""
    assert papvp.respond(text).is_valid


def resume(text: str) -> None:
    """Run again on a snapshot with one new item."""
    respond(f"{text}\n{item('NEW', valid_judgement('NEW'), attrs='depends_on=I0')}")


def allow_every_step(text: str) -> None:
    """Ask the executor contract for every next step of a snapshot."""
    snap = papvp.snapshot_in(text)
    assert snap
    for name, it in snap.items.items():
        executor_contract.allow_step(snap, name, it.next_step.output if it.next_step else "")


def report(text: str) -> None:
    assert papvp.report(text, lite=False).is_valid


def compare(text: str) -> None:
    assert papvp.compare([text, text])[1] == 2


def check_and_repair(text: str) -> None:
    assert papvp.check_snapshot(text, mend=True).repaired


def decide_in_session(text: str) -> None:
    """Decide a new item on top of the snapshot that a session keeps."""
    assert (
        not SessionKernel().decide(item("NEW", valid_judgement("NEW")), text, "2026-03-01").problem
    )


SNAPSHOT_WORK = (resume, allow_every_step, report, compare, check_and_repair, decide_in_session)


def count_lines(work: Callable[[str], None], text: str) -> int:
    """The number of lines of Python that run."""
    count = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work(text)
    finally:
        sys.settrace(before)
    return count


def growth(work: Callable[[str], None], texts: list[str]) -> float:
    """By how much the cost grows from FEW items to FACTOR times as many, less the fixed cost."""
    work(texts[0])
    base, few, many = (count_lines(work, text) for text in texts)
    per_item = (FEW - BASE_COUNT) / (FEW * FACTOR - BASE_COUNT)
    return (many - base) / (few - base) * per_item * FACTOR


def sizes(shape: Text) -> list[str]:
    scale = 3 if shape in SINGLE_ITEM_SHAPES else 1
    return [shape(count * scale) for count in (BASE_COUNT, FEW, FEW * FACTOR)]


@proves("OPEN-79")
@pytest.mark.parametrize("shape", [*SHAPES, *SINGLE_ITEM_SHAPES], ids=lambda shape: shape.__name__)
def test_work_of_a_run_is_linear_in_items_and_edges(shape: Text) -> None:
    assert growth(respond, sizes(shape)) <= MAX_GROWTH


@proves("OPEN-79")
@pytest.mark.parametrize("shape", [chain, waived, pool, adopted], ids=lambda shape: shape.__name__)
def test_work_on_a_snapshot_is_linear_in_its_items(shape: Text) -> None:
    texts = [snapshot_writer.render_fenced(run_batch(text)) for text in sizes(shape)]

    measured = {work.__name__: growth(work, texts) for work in SNAPSHOT_WORK}

    linear = pytest.approx(FACTOR, abs=MAX_GROWTH - FACTOR)
    assert measured == dict.fromkeys(measured, linear)


def closed_items(count: int) -> Batch:
    """Closed items, each of which depends on the one before."""

    def one(n: int) -> ItemInput:
        done = PreviousItem(f"I{n}", state=ItemState.CLOSED, depends_on=(f"I{n - 1}",))
        return ItemInput(f"I{n}", mode=ItemMode.PLAN, prev=done)

    return Batch(items=[one(n) for n in range(count)])


def minimal_snapshot(count: int) -> list[str]:
    """The lines of a snapshot whose items are nearly empty."""
    cells = "DRAFT->STANDBY | DO LATER | LOW | LOW | ds:OK | term:N | ct:- | pp:OPEN | exp:1"
    queue = [f"I{n} | {cells} | gate:NONE | (none)" for n in range(count)]
    items = [f"[ITEM id=I{n}]" for n in range(count)]
    return [snapshot_writer.STATE_LINE, "[PANEL]", "[QUEUE]", *queue, *items]


def minimal_batch(count: int) -> str:
    return "".join(f"<<<I id=I{n}>>>\n<<<PLAN>>>\n<<<END>>>\n" for n in range(count))


def rendering(count: int) -> Callable[[], object]:
    outcome = pipeline.run_pipeline(closed_items(count))
    return lambda: snapshot_writer.render_block(outcome)


STAGES: dict[str, Callable[[int], Callable[[], object]]] = {
    "parse": lambda count: partial(batch_parser.parse_batch, minimal_batch(count)),
    "run": lambda count: partial(pipeline.run_pipeline, closed_items(count)),
    "emit": rendering,
    "read": lambda count: partial(snapshot_parser.parse_snapshot, minimal_snapshot(count)),
    "check": lambda count: partial(
        snapshot_check.check_snapshot, snapshot_parser.parse_snapshot(minimal_snapshot(count))
    ),
}


@proves("OPEN-79")
@pytest.mark.parametrize("stage", STAGES)
def test_stage_neither_copies_nor_searches_all_items_for_each_item(stage: str) -> None:
    few, many = (measure_cpu(STAGES[stage](count)) for count in (SMALL_ITEMS, SMALL_ITEMS * FACTOR))

    assert many / few <= MAX_TIME_GROWTH


@proves("OPEN-79")
def test_a_thousand_items_with_dependencies_take_less_than_a_second() -> None:
    text = layers(1000)
    # On a busy machine a single attempt may take longer than the work itself.
    attempts = (measure_cpu(lambda: docket.run(docket.parse_batch(text))) for _ in range(8))

    assert any(took < 1.0 for took in attempts)


LONG = 60_000
WIDE = " " * LONG
# Lines that are cheap to write and expensive to parse for a regular expression that backtracks.
HOSTILE = {
    "attribute": f"<<<I {'a' * LONG}>>>\n<<<PLAN>>>\n- act\n<<<END>>>",
    "quotes": f"<<<I {'a=' + chr(34)} {'b=' * LONG}>>>\n<<<PLAN>>>\n- act\n<<<END>>>",
    "tag": f"<<<I {'>>> ' * LONG}x",
    "bullet": item("A", valid_judgement("A"), plan=f"{WIDE}x\n{'-' * LONG}\n{'1' * LONG}. a"),
    "waiver": item("A", valid_judgement("A"), plan=f"waive{WIDE}the{WIDE}x {'waive the ' * LONG}"),
    "condition": item(
        "A", valid_judgement("A", probe=probe(kill_switch_condition=f"m>{'1' * LONG}x"))
    ),
    "operators": item("A", valid_judgement("A", probe=probe(kill_switch_condition="m>1" * LONG))),
    "relation": item("A", valid_judgement("A", impact_graph=[f"a {'-> ' * LONG}"])),
    "drivers": item("A", valid_judgement("A", critical_driver="a, " * LONG)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_long_line_of_a_batch_is_parsed_within_a_second(name: str) -> None:
    assert measure_cpu(lambda: papvp.respond(HOSTILE[name])) < 1.0


SNAPSHOT = snapshot_writer.render_block(run_batch(item("A", valid_judgement("A"))))
DAMAGE = {
    "counters": ("counters: tb=", f"counters: {'a' * LONG} tb="),
    "queue": ("DRAFT->ACTIVE", f"{'a->' * LONG} b"),
    "step": ("Ship A ->", f"Ship{' ' * 3900}x"),
    "arrows": ("Ship A ->", f"Ship A {'-> ' * 1300}"),
    "bars": ("Ship A ->", f"Ship A {'| ' * LONG}"),
    "title": ("title: A", f"title: {'[ITEM ' * LONG}"),
    "head": ("[QUEUE]", f"[{'Q' * LONG}\n[QUEUE]"),
    "driver": ("critical_driver: drv", f"critical_driver: {'(' * LONG}"),
    "score": ("score: 92.9", f"score: {'9' * LONG}"),
}


@pytest.mark.parametrize("name", DAMAGE)
@pytest.mark.parametrize("lead", ["", "CHECK repair=YES\n", "REPORT\n", "COMPARE\n"])
def test_long_line_of_a_snapshot_is_parsed_within_a_second(name: str, lead: str) -> None:
    before, after = DAMAGE[name]
    assert before in SNAPSHOT
    # Repeated, so that the cost of a single line shows too.
    lines = SNAPSHOT.replace(before, after).split("\n")
    text = lead + "\n".join(line for line in lines for _ in range(40 if "Ship" in line else 1))

    assert measure_cpu(lambda: papvp.respond(text)) < 1.0


def test_kernel_steps_are_recognized_without_backtracking() -> None:
    # Many places at which each piece of a template might match.
    many = Step(
        StepKind.PROBE,
        "Run probe" + " on" * 1000,
        "-> _pass=YES/NO " * 200,
        11,
        "x" * LONG,
    )
    near = replace(many, action=" to".join(["Remove edge", *" " * 900, "from depends_on x"]))

    assert measure_cpu(lambda: [is_kernel_step(candidate) for candidate in (many, near) * 50]) < 1.0
