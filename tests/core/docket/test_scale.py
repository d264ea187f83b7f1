"""What a batch costs grows with its items and edges and with the length of its texts, no faster.

Work is counted, not timed: every line that Python runs, which is the same on a busy machine.
What one line does inside the interpreter is not seen that way; for that there is CPU time, with
items so small and so many that a needless copy or search for each of them would stand out.
"""

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
from accord.core.docket import check, emit, executor, grammar, pipeline, snapshot
from accord.core.docket.bench import Bench
from accord.core.docket.model import Batch, Input, Previous
from accord.core.docket.steps import Step, own
from accord.core.docket.words import Kind, Mode, State
from tests.helpers.docket import decide, evidence, item, ok, probe, step
from tests.helpers.pace import cpu
from tests.spec import proves

NONE, FEW, TIMES = 5, 20, 4
# What is linear comes to 4.0 to the second digit; the rest is for sorting.
MOST = 4.06
# Four times as many, and a busy machine; what is quadratic comes to sixteen.
MOST_TIME = 9.0
Text = Callable[[int], str]


def chain(count: int) -> str:
    return each(count, lambda n: {"attrs": f"depends_on=I{n - 1}" if n else ""})


def star(count: int) -> str:
    """All wait for one, and one for all the others."""
    others = ",".join(f"I{n}" for n in range(1, count))
    return each(count, lambda n: {"attrs": "depends_on=I0"}) + item(
        "LAST", ok("LAST"), attrs=f"depends_on={others}"
    )


def waived(count: int) -> str:
    """One knowingly waits for nobody."""
    others = ",".join(f"I{n}" for n in range(count))
    last = item("LAST", ok("LAST"), attrs=f"depends_on={others} waive={others}")
    return each(count, lambda _: {}) + last


def layers(count: int) -> str:
    """Layers of five, each item after three of the layer before."""

    def before(n: int) -> str:
        first = n - n % 5 - 5
        return ",".join(f"I{first + (n + k) % 5}" for k in range(3)) if first >= 0 else ""

    return each(count, lambda n: {"attrs": f"depends_on={before(n)}"})


def circles(count: int) -> str:
    """Many small circles."""
    return each(count, lambda n: {"attrs": f"depends_on=I{n - n % 3 + (n + 1) % 3}"})


def circle(count: int) -> str:
    return each(count, lambda n: {"attrs": f"depends_on=I{(n + 1) % count}"})


def pool(count: int) -> str:
    """All want the same, and half of them cannot have it."""
    head = f"<<<B resource_pool=ENG:{count // 2},GPU:{count}>>>\n"
    return head + each(count, lambda _: {"attrs": "uses=ENG:1,GPU:1"})


def gate(count: int) -> str:
    """All behind one gate, and each of them might ask."""
    head = "<<<B close_policy=REAL_ONLY ask_user=ALLOW>>>\n"
    return head + each(count, lambda _: {}, close_intent="YES")


def debt(count: int) -> str:
    """Each unsure of something else."""
    made = (item(f"I{n}", ok(f"I{n}", f"d{n}", confidence="LOW")) for n in range(count))
    return "".join(made)


def adopted(count: int) -> str:
    """All make, report and adopt a probe of one name."""
    named = probe(probe_id="P", status="VALIDATED")
    return each(count, lambda _: {}, probe_results=[named], adopt=["P"], disadopt=["Q"])


def tried(count: int) -> str:
    """One item with a long history."""
    results = [probe(probe_id=f"P{n}", decision_context_id=f"c{n}") for n in range(count)]
    fails = "\n".join(f"<<<RESULT step=S{n} status=FAILED>>>" for n in range(1, count + 1))
    checks = [step("Check", f"it {n}") for n in range(count)]
    return item("A", ok("A", probe_results=results, steps=checks), more=fails)


def argued(count: int) -> str:
    """One item with many drivers, relations and references."""
    names = [f"d{n}" for n in range(count)]
    graph = [f"{name} UP -> x{name} DOWN (HIGH)" for name in names]
    graph += [f"x{a} UP -> x{b} UP (LOW)" for a, b in pairwise(names)]
    drivers = [{"name": name, "strength": "HIGH"} for name in names]
    refs = [f"{kind}:{name}" for kind in ("driver", "probe", "relation") for name in names]
    judge = ok("A", drivers=drivers, impact_graph=graph, delta={"refs": refs})
    first = emit.fenced(decide(item("A", ok("A"))))
    return first + item("A", {**judge, "binding": None}, plan=None)


def split(count: int) -> str:
    """Each in two parts, and waiting for the parts of the one before."""
    parts = [ok("A", steps=[]), ok("B", steps=[])]
    return each(count, lambda n: {"attrs": f"depends_on=I{n - 1}" if n else ""}, split=parts)


def words(count: int) -> str:
    """One item with long texts: a plan, evidence and sections of many lines."""
    plan = "- act\nGoal state: it works\nHard constraint: none\n" + "- and more of it\n" * count
    many = evidence(text="seen\n" * count) + "\n" + "\n".join([evidence()] * count)
    audit = {"top_defects": [f"defect {n}" for n in range(count)]}
    needs = [{"need": f"n{n}", "impact": "LOW"} for n in range(count)]
    return item("A", ok("A", audit=audit, data_acquisition=needs), plan=plan, more=many)


def mistaken(count: int) -> str:
    """One judgement with many keys that there are not, each on its line."""
    keys = ",\n".join(f'"key{n}": 1' for n in range(count))
    return item("A", ok("A"), more=f"<<<END>>>\n<<<I id=B>>>\n<<<PLAN>>>\n<<<JUDGE>>>\n{{{keys}}}")


def each(count: int, more: Callable[[int], dict[str, Any]], **changes: Any) -> str:
    names = (f"I{n}" for n in range(count))
    return "".join(item(name, ok(name, **changes), **more(n)) for n, name in enumerate(names))


SHAPES: tuple[Text, ...] = (
    *(chain, star, waived, layers, circles, circle, pool, gate, debt, adopted, split),
)
INSIDE: tuple[Text, ...] = (argued, words, tried, mistaken)


def told(text: str) -> None:
    """A run with its self-check, its block and every table."""
    assert papvp.answer(text).good


def resumed(text: str) -> None:
    """Everything that was decided, and something new."""
    told(f"{text}\n{item('NEW', ok('NEW'), attrs='depends_on=I0')}")


def allowed(text: str) -> None:
    """Every next step of a snapshot, asked for one by one."""
    snap = papvp.snapshot_in(text)
    assert snap
    for name, it in snap.items.items():
        executor.allow(snap, name, it.next.output if it.next else "")


def reported(text: str) -> None:
    assert papvp.report(text, lite=False).good


def compared(text: str) -> None:
    assert papvp.compare([text, text])[1] == 2


def checked(text: str) -> None:
    """Held against the rules, and made right."""
    assert papvp.checked(text, mend=True).repaired


def ruled(text: str) -> None:
    """As a session goes on from what it keeps."""
    assert not Bench().rule(item("NEW", ok("NEW")), text, "2026-03-01").problem


SNAPSHOTS = (resumed, allowed, reported, compared, checked, ruled)


def lines(work: Callable[[str], None], text: str) -> int:
    """How many lines Python runs for it."""
    count = 0

    def line(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal count
        count += 1
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        work(text)
    finally:
        sys.settrace(before)
    return count


def growth(work: Callable[[str], None], texts: list[str]) -> float:
    """How much more four times as much costs, beyond what next to nothing costs."""
    work(texts[0])
    none, few, many = (lines(work, text) for text in texts)
    return (many - none) / (few - none) * (FEW - NONE) / (FEW * TIMES - NONE) * TIMES


def sizes(shape: Text) -> list[str]:
    larger = 3 if shape in INSIDE else 1
    return [shape(count * larger) for count in (NONE, FEW, FEW * TIMES)]


@proves("OPEN-79")
@pytest.mark.parametrize("shape", [*SHAPES, *INSIDE], ids=lambda shape: shape.__name__)
def test_the_work_grows_with_items_and_edges_and_no_faster(shape: Text) -> None:
    assert growth(told, sizes(shape)) <= MOST


@proves("OPEN-79")
@pytest.mark.parametrize("shape", [chain, waived, pool, adopted], ids=lambda shape: shape.__name__)
def test_so_does_the_work_on_a_snapshot(shape: Text) -> None:
    texts = [emit.fenced(decide(text)) for text in sizes(shape)]

    grown = {work.__name__: growth(work, texts) for work in SNAPSHOTS}

    assert grown == {name: pytest.approx(TIMES, abs=MOST - TIMES) for name in grown}


def settled(count: int) -> Batch:
    """Items that are done, each after the one before."""

    def one(n: int) -> Input:
        done = Previous(f"I{n}", state=State.CLOSED, depends_on=(f"I{n - 1}",))
        return Input(f"I{n}", mode=Mode.PLAN, prev=done)

    return Batch(items=[one(n) for n in range(count)])


def rows(count: int) -> list[str]:
    """A snapshot of items that hold next to nothing."""
    cells = "DRAFT->STANDBY | DO LATER | LOW | LOW | ds:OK | term:N | ct:- | pp:OPEN | exp:1"
    queue = [f"I{n} | {cells} | gate:NONE | (none)" for n in range(count)]
    items = [f"[ITEM id=I{n}]" for n in range(count)]
    return [emit.STATE_LINE, "[PANEL]", "[QUEUE]", *queue, *items]


def sparse(count: int) -> str:
    return "".join(f"<<<I id=I{n}>>>\n<<<PLAN>>>\n<<<END>>>\n" for n in range(count))


def written(count: int) -> Callable[[], object]:
    outcome = pipeline.run(settled(count))
    return lambda: emit.block(outcome)


STAGES: dict[str, Callable[[int], Callable[[], object]]] = {
    "parse": lambda count: partial(grammar.parse, sparse(count)),
    "run": lambda count: partial(pipeline.run, settled(count)),
    "emit": written,
    "read": lambda count: partial(snapshot.parse, rows(count)),
    "check": lambda count: partial(check.check, snapshot.parse(rows(count))),
}


@proves("OPEN-79")
@pytest.mark.parametrize("stage", STAGES)
def test_nothing_is_copied_or_searched_for_each_item(stage: str) -> None:
    few, many = (cpu(STAGES[stage](count)) for count in (2000, 8000))

    assert many / few <= MOST_TIME


@proves("OPEN-79")
def test_a_thousand_items_with_dependencies_take_less_than_a_second() -> None:
    text = layers(1000)
    # The least of some tries is its own; what is more is the machine's.
    tries = (cpu(lambda: docket.run(docket.parse(text))) for _ in range(8))

    assert any(took < 1.0 for took in tries)


LONG = 60_000
WIDE = " " * LONG
# Lines that are cheap to write, and were dear to read wherever an expression tried again.
HOSTILE = {
    "attribute": f"<<<I {'a' * LONG}>>>\n<<<PLAN>>>\n- act\n<<<END>>>",
    "quotes": f"<<<I {'a=' + chr(34)} {'b=' * LONG}>>>\n<<<PLAN>>>\n- act\n<<<END>>>",
    "tag": f"<<<I {'>>> ' * LONG}x",
    "bullet": item("A", ok("A"), plan=f"{WIDE}x\n{'-' * LONG}\n{'1' * LONG}. a"),
    "waiver": item("A", ok("A"), plan=f"waive{WIDE}the{WIDE}x {'waive the ' * LONG}"),
    "condition": item("A", ok("A", probe=probe(kill_switch_condition=f"m>{'1' * LONG}x"))),
    "operators": item("A", ok("A", probe=probe(kill_switch_condition="m>1" * LONG))),
    "relation": item("A", ok("A", impact_graph=[f"a {'-> ' * LONG}"])),
    "drivers": item("A", ok("A", critical_driver="a, " * LONG)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_long_line_costs_what_it_is_long(name: str) -> None:
    assert cpu(lambda: papvp.answer(HOSTILE[name])) < 1.0


SNAPSHOT = emit.block(decide(item("A", ok("A"))))
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
def test_so_does_a_long_line_of_a_snapshot(name: str, lead: str) -> None:
    before, after = DAMAGE[name]
    assert before in SNAPSHOT
    # So many that what a single line may cost shows, too.
    lines = SNAPSHOT.replace(before, after).split("\n")
    text = lead + "\n".join(line for line in lines for _ in range(40 if "Ship" in line else 1))

    assert cpu(lambda: papvp.answer(text)) < 1.0


def test_the_kernels_own_steps_are_known_without_trying_again() -> None:
    """Many places where each piece of a template might be."""
    many = Step(
        Kind.PROBE,
        "Run probe" + " on" * 1000,
        "-> _pass=YES/NO " * 200,
        11,
        "x" * LONG,
    )
    near = replace(many, action=" to".join(["Remove edge", *" " * 900, "from depends_on x"]))

    assert cpu(lambda: [own(each) for each in (many, near) * 50]) < 1.0
