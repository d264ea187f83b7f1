"""The kernel as a session asks it: guarded, with what follows for each item."""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

from accord.core import docket
from accord.core.docket import convergence, emit, executor, grammar, snapshot
from accord.core.docket.convergence import HARD
from accord.core.docket.executor import TRIALS
from accord.core.docket.judge import Judge
from accord.core.docket.model import Config, Header, Input, Outcome, Previous
from accord.core.docket.snapshot import FENCE, Snapshot
from accord.core.docket.steps import Step
from accord.core.docket.words import Fault, Flag, Found, Kind, Policy, Tier
from accord.core.kernel.rulings import Agreement, Claim, Finding, Ran, Ruling

LONGEST_WORDS = 200
# A room waits while its batch is ruled on.
MOST_ITEMS = 100
LARGEST_TEXT = 256 * 1024
STEP = re.compile(r"[sS]?(\d{1,3})")
# What is no judgement, although it stands in one: what was seen.
REPORTS = frozenset({"step_results", "probe_results"})
# An item that only tells what happened has no more than these.
NEWS = ("id", "line", "missing", "ok", "mode", "prev", "evidence", "changed", "results", "judge")


class Bench:
    """Rules by the text alone; holds nothing."""

    def rule(self, text: str, before: str, day: str) -> Ruling:
        """Decide a batch; `before` is the snapshot it goes on from, or nothing."""
        config = Config(policy=Policy.GUARDED, now=date.fromisoformat(day))
        if why := unfit(text):
            return Ruling("", "", problem=why)
        batch = grammar.parse(f"{text}\n\n{before}" if before else text, config)
        if (count := len(batch.items) + len(batch.nameless)) > MOST_ITEMS:
            return Ruling("", "", problem=f"{count} items; a session decides {MOST_ITEMS} at once")
        # Read before it is run, which fills in what nobody wrote.
        said = tuple(claim(each, new=bool(before)) for each in batch.items if each.line)
        rules = grammar.parse(text, config).header != Header()
        return ruling(docket.run(batch, config), said, rules=rules)

    def after(self, before: str, ran: Ran, day: str) -> Ruling:
        """Decide once more, because a step was run."""
        news = told(before, ran)
        if not news:
            return Ruling("", "", problem=f"{ran.step} is no step of {ran.item} any more")
        return self.rule(news, before, day)

    def compare(self, snapshots: Sequence[str]) -> tuple[tuple[Agreement, ...], str]:
        """Independent snapshots of one question, and the table for people."""
        snaps = [read(each) for each in snapshots]
        peers = convergence.compare(snaps, Policy.GUARDED)
        found = (Agreement(p.id, p.kind, p.next_action, holds=p.kind == HARD) for p in peers)
        return tuple(found), "\n".join(convergence.shown(peers, len(snaps)))


def unfit(text: str) -> str:
    """Why a text is not for a session, which alone remembers what was decided in it."""
    if len(text) > LARGEST_TEXT:
        return f"a session decides a batch of {LARGEST_TEXT >> 10} KiB"
    if line := grammar.pasted(text):
        return f"line {line}: the session keeps what was decided; leave snapshots and PREV out"
    return ""


def ruling(outcome: Outcome, claims: tuple[Claim, ...], *, rules: bool) -> Ruling:
    """What came out, or why nothing did."""
    block, hashed = emit.fenced(outcome), emit.snapshot_hash(outcome)
    if not outcome.valid:
        return Ruling(block, hashed, problem=problem(outcome))
    snap = read(block)
    items = {row.id: finding(snap, row.id) for row in snap.queue}
    return Ruling(block, hashed, items, claims=claims, rules=rules)


def problem(outcome: Outcome) -> str:
    """The first thing that was wrong, with its line where it has one."""
    lines = (
        " ".join(filter(None, (place(d.line), d.code, d.detail, f"({d.hint})")))
        for d in outcome.diags[:1]
    )
    return " ".join((f"This cannot be decided ({outcome.invalid});", *lines))


def place(line: int) -> str:
    """Where it stands, if it stands on a line."""
    return f"line {line}:" if line else ""


def read(block: str) -> Snapshot:
    """A block as the snapshot it is."""
    return snapshot.parse([line for line in block.split("\n") if not line.startswith(FENCE)])


def finding(snap: Snapshot, item: str) -> Finding:
    """One item as people and gates need it."""
    row, it = snap.rows[item], snap.items[item]
    token = it.next.output if it.next else ""
    answer = executor.allow(snap, item, token, Policy.GUARDED)
    sure = it.confidence.value if it.confidence else ""
    allowed = token if answer.allowed else ""
    shows = tier_of(it.next) if it.next else ""
    return Finding(row.verdict, row.state, sure, token, allowed, answer.why, shows)


def tier_of(step: Step) -> Tier:
    """What a run shows: of a trial how it went, of anything else what is so now."""
    return Tier.EXPERIMENT if step.kind in TRIALS else Tier.REAL


# What a text says


def claim(inp: Input, *, new: bool) -> Claim:
    """What is written of an item; `new` where there is a decision that it would be added to."""
    tiers = [*inp.evidence, *(each.evidence_tier for each in inp.results)]
    tiers += [tier for judge in parts(inp.judge) for tier in judged(judge)]
    best = max((each for each in tiers if each is not None), default=None)
    tried = any(judge.probe_results for judge in parts(inp.judge))
    saw = [*(output(inp, each.step or "") for each in inp.results), *([""] if tried else ())]
    return Claim(inp.id, best or "", tuple(saw), judges=judges(inp, new=new))


def parts(judge: Judge) -> Iterator[Judge]:
    """A judgement, and those of the parts that it splits an item into."""
    yield judge
    for each in judge.split or ():
        yield from parts(each)


def judged(judge: Judge) -> Iterator[Tier | None]:
    """The evidence that a judgement says it rests on; what is provable was proven."""
    yield from (each.evidence_tier for each in (judge.binding or {}).values())
    yield from (each.evidence_tier for each in judge.probe_results or ())
    yield from (each.evidence_tier for each in judge.step_results or ())
    yield judge.probe.evidence_tier if judge.probe else None
    yield Tier.REAL if judge.provable is Flag.YES else None


def output(inp: Input, name: str) -> str:
    """The step that a result is about, by its output; nothing where it is none that was there."""
    found = STEP.fullmatch(name.strip())
    steps = inp.prev.steps if inp.prev and inp.judge.steps is None else []
    at = int(found[1]) if found else 0
    return steps[at - 1].output if 0 < at <= len(steps) else ""


def judges(inp: Input, *, new: bool) -> bool:
    """Whether it says anything beyond what happened: of the item, or that there is one."""
    blank = Input(inp.id)
    others = any(
        getattr(inp, name) != getattr(blank, name)
        for name in Input.__dataclass_fields__
        if name not in NEWS
    )
    thinks = any(
        getattr(inp.judge, n) is not None for n in Judge.__struct_fields__ if n not in REPORTS
    )
    return others or thinks or (new and inp.prev is None)


# What was run


def told(before: str, ran: Ran) -> str:
    """A result as the kernel reads it; that it was run here is an observation."""
    item = read(before).items.get(ran.item)
    steps = enumerate(item.steps if item else (), 1)
    number, step = next((each for each in steps if each[1].output == ran.step), (0, None))
    if item is None or step is None:
        return ""
    tier = tier_of(step)
    status = "COMPLETED" if ran.success else "FAILED"
    fault = None if ran.success else Fault.read(ran.fault)
    if fault:
        status = f"FAILED_EXCEPTION token={fault}"
    words = plain(" ".join(ran.words.split())[:LONGEST_WORDS] or status)
    return "\n".join(
        (
            f"<<<I id={ran.item}>>>",
            f'<<<RESULT step=S{number} status={status} evidence_tier={tier} result="{words}">>>',
            f"<<<NEW_EVIDENCE evidence_tier={tier}>>>",
            f"Run here: {words}",
            *trial(item, step, ran, words),
            "<<<END>>>",
        )
    )


def trial(item: Previous, step: Step, ran: Ran, words: str) -> Iterator[str]:
    """A probe that was run and passed has shown what it was for; failing, its step says so."""
    runs = [each for each in item.log if each.status is Found.ACTIVE and each.kept]
    mine = [each.probe_id for each in runs if each.target_driver == item.critical]
    if step.kind is not Kind.PROBE or not ran.success or not mine:
        return
    shown: dict[str, Any] = {"probe_id": mine[-1], "status": Found.VALIDATED}
    shown |= {"evidence_tier": Tier.EXPERIMENT, "result_summary": words}
    if ran.value:
        shown["kill_switch_value"] = ran.value
    yield "<<<JUDGE>>>"
    yield json.dumps({"probe_results": [shown]})


def plain(words: str) -> str:
    """Words that no reader of the grammar takes for a tag."""
    return words.replace('"', "'").replace("<<<", "‹").replace(">>>", "›")
