"""The kernel for sessions: decides under the guarded policy and rules on each item."""

from collections.abc import Iterator, Sequence
from datetime import date

from accord.core import docket
from accord.core.docket import convergence, executor_contract, judgement
from accord.core.docket.convergence import HARD_DIVERGENCE
from accord.core.docket.executor_contract import KINDS_WHILE_PROBING
from accord.core.docket.judgement import Judgement
from accord.core.docket.model import Batch, DecisionOutcome, ItemInput, KernelConfig, PreviousItem
from accord.core.docket.parsing import batch_parser, snapshot_parser
from accord.core.docket.parsing.snapshot_parser import FENCE
from accord.core.docket.rendering import snapshot_writer
from accord.core.docket.snapshot import DecisionSnapshot
from accord.core.docket.steps import Step, number_in
from accord.core.docket.text_values import to_one_line
from accord.core.docket.vocabulary import (
    EvidenceTier,
    ExceptionToken,
    KernelPolicy,
    ProbeStatus,
    StepKind,
    StepStatus,
    YesNo,
)
from accord.core.kernel.decision_port import (
    Agreement,
    EvidenceClaim,
    ItemRuling,
    Ruling,
    StepResult,
)

MAX_RESULT_CHARS = 200
# The room is blocked while its batch is decided.
MAX_BATCH_ITEMS = 100
MAX_BATCH_BYTES = 256 * 1024
# Fields of a judgement that report observations rather than judge.
OBSERVATION_FIELDS = frozenset({"step_results", "probe_results"})
# An item that only reports observations sets no other fields.
OBSERVATION_INPUT_FIELDS = (
    "id",
    "line",
    "missing_fields",
    "parsed_ok",
    "mode",
    "prev",
    "evidence",
    "change_declared",
    "results",
    "judgement",
)


class SessionKernel:
    """Stateless: every ruling follows from its arguments."""

    def decide(self, text: str, before: str, day: str) -> Ruling:
        """Decide a batch; `before` is the previous snapshot, or empty."""
        if why := batch_objection(text):
            return Ruling("", "", problem=why)
        snap = read_snapshot(before) if before else None
        return rule_on(batch_parser.parse_batch(text, snap), day, continued=bool(before))

    def decide_after_step(self, before: str, ran: StepResult, day: str) -> Ruling:
        """Decide again after a step was run."""
        snap = read_snapshot(before)
        news = input_of_result(snap, ran)
        if news is None:
            return Ruling("", "", problem=f"{ran.step} is no longer a step of {ran.item}")
        batch = Batch(items=[news])
        batch_parser.continue_from(snap, batch)
        return rule_on(batch, day, continued=True)

    def compare(self, snapshots: Sequence[str]) -> tuple[tuple[Agreement, ...], str]:
        """Compare independent snapshots of one question; also returns the table for people."""
        snaps = [read_snapshot(each) for each in snapshots]
        peers = convergence.compare_snapshots(snaps, KernelPolicy.GUARDED)
        found = (
            Agreement(p.id, p.kind, p.next_action, holds=p.kind == HARD_DIVERGENCE) for p in peers
        )
        return tuple(found), "\n".join(convergence.render_convergence(peers, len(snaps)))


def batch_objection(text: str) -> str:
    """Why a session refuses the text, or empty; only the session may supply earlier state."""
    if len(text) > MAX_BATCH_BYTES:
        return f"a session decides a batch of {MAX_BATCH_BYTES >> 10} KiB"
    if line := batch_parser.first_pasted_line(text):
        return f"line {line}: the session keeps what was decided; leave snapshots and PREV out"
    return ""


def rule_on(batch: Batch, day: str, *, continued: bool) -> Ruling:
    """The ruling on a batch, or its first problem if it cannot be decided."""
    if (count := len(batch.items) + len(batch.items_without_id)) > MAX_BATCH_ITEMS:
        return Ruling("", "", problem=f"{count} items; a session decides {MAX_BATCH_ITEMS} at once")
    # Before the run, which fills in missing values.
    claims = tuple(claim_of(each, new=continued) for each in batch.items if each.line)
    config = KernelConfig(policy=KernelPolicy.GUARDED, now=date.fromisoformat(day))
    outcome = docket.run(batch, config)
    text = snapshot_writer.render_block(outcome)
    fenced, hashed = snapshot_writer.fence(text), snapshot_writer.hash_of(text)
    if not outcome.is_valid:
        return Ruling(fenced, hashed, problem=first_problem(outcome))
    snap = docket.snapshot_of(outcome)
    items = {name: finding_of(snap, name) for name in snap.items}
    return Ruling(fenced, hashed, items, claims=claims, rules=batch.sets_header)


def first_problem(outcome: DecisionOutcome) -> str:
    """The first diagnostic as a sentence, with its line if it has one."""
    words = [f"This cannot be decided ({outcome.invalid_reason});"]
    for first in outcome.diagnostics[:1]:
        where = f"line {first.line}:" if first.line else ""
        words += [where, first.code, first.detail, f"({first.hint})"]
    return " ".join(filter(None, words))


def read_snapshot(block: str) -> DecisionSnapshot:
    """Parse a fenced block."""
    return snapshot_parser.parse_snapshot(
        [line for line in block.split("\n") if not line.startswith(FENCE)]
    )


def finding_of(snap: DecisionSnapshot, item: str) -> ItemRuling:
    """The ruling on one item, as gates and people read it."""
    row, it = snap.row_by_id[item], snap.items[item]
    token = it.next_step.output if it.next_step else ""
    answer = executor_contract.allow_step(snap, item, token, KernelPolicy.GUARDED)
    sure = it.confidence.value if it.confidence else ""
    allowed = token if answer.allowed else ""
    shows = evidence_tier_of(it.next_step) if it.next_step else ""
    verdict, state = str(row.verdict), str(row.state)
    return ItemRuling(verdict, state, sure, token, allowed, answer.reason, shows)


def evidence_tier_of(step: Step) -> EvidenceTier:
    """The evidence that running the step yields: EXPERIMENT for a probe, REAL for anything else."""
    return EvidenceTier.EXPERIMENT if step.kind in KINDS_WHILE_PROBING else EvidenceTier.REAL


# The claims of a text


def claim_of(inp: ItemInput, *, new: bool) -> EvidenceClaim:
    """What the input claims about an item; `new` if it would be added to an existing decision."""
    tiers = [*inp.evidence, *(each.evidence_tier for each in inp.results)]
    tiers += [
        tier for judge in judgement_and_splits(inp.judgement) for tier in claimed_tiers(judge)
    ]
    best = max((each for each in tiers if each is not None), default=None)
    tried = any(judge.probe_results for judge in judgement_and_splits(inp.judgement))
    saw = [
        *(output_of_step(inp, each.step or "") for each in inp.results),
        *([""] if tried else ()),
    ]
    return EvidenceClaim(inp.id, best or "", tuple(saw), judges=contains_judgement(inp, new=new))


def judgement_and_splits(judge: Judgement) -> Iterator[Judgement]:
    """The judgement and, recursively, those of its split parts."""
    yield judge
    for each in judge.split or ():
        yield from judgement_and_splits(each)


def claimed_tiers(judge: Judgement) -> Iterator[EvidenceTier | None]:
    """The evidence tiers that a judgement claims; `provable` claims REAL."""
    yield from (each.evidence_tier for each in (judge.binding or {}).values())
    yield from (each.evidence_tier for each in judge.probe_results or ())
    yield from (each.evidence_tier for each in judge.step_results or ())
    yield judge.probe.evidence_tier if judge.probe else None
    yield EvidenceTier.REAL if judge.provable is YesNo.YES else None


def output_of_step(inp: ItemInput, name: str) -> str:
    """The output of the previous step that a result names, or empty if there is no such step."""
    steps = inp.prev.steps if inp.prev and inp.judgement.steps is None else []
    at = number_in(name)
    return steps[at - 1].output if 0 < at <= len(steps) else ""


def contains_judgement(inp: ItemInput, *, new: bool) -> bool:
    """Whether the input does more than report observations: it judges the item or adds it."""
    blank = ItemInput(inp.id)
    others = any(
        getattr(inp, name) != getattr(blank, name)
        for name in ItemInput.__dataclass_fields__
        if name not in OBSERVATION_INPUT_FIELDS
    )
    thinks = any(
        getattr(inp.judgement, n) is not None
        for n in Judgement.__struct_fields__
        if n not in OBSERVATION_FIELDS
    )
    return others or thinks or (new and inp.prev is None)


# The results of steps


def input_of_result(snap: DecisionSnapshot, ran: StepResult) -> ItemInput | None:
    """The result of a step as input about its item; None if the item has no such step any more."""
    item = snap.items.get(ran.item)
    steps = enumerate(item.steps if item else (), 1)
    number, step = next((each for each in steps if each[1].output == ran.step), (0, None))
    if item is None or step is None:
        return None
    tier = evidence_tier_of(step)
    fault = None if ran.success else ExceptionToken.parse(ran.fault)
    status = StepStatus.FAILED_EXCEPTION if fault else StepStatus.FAILED
    status = StepStatus.COMPLETED if ran.success else status
    words = to_one_line(ran.output)[:MAX_RESULT_CHARS].strip() or status
    result = judgement.StepResult(
        step=f"S{number}", status=status, evidence_tier=tier, result=words, token=fault
    )
    judged = Judgement(probe_results=passed_probes(item, step, ran, words) or None)
    return ItemInput(ran.item, 1, evidence=(tier,), results=(result,), judgement=judged)


def passed_probes(
    item: PreviousItem, step: Step, ran: StepResult, words: str
) -> list[judgement.ProbeReport]:
    """The probe that a passed probe step validates; a failed step falsifies it by itself."""
    running = [
        each.probe_id
        for each in item.probe_log
        if each.status is ProbeStatus.ACTIVE
        and each.is_adopted_or_own
        and each.target_driver == item.critical_driver
    ]
    if step.kind is not StepKind.PROBE or not ran.success or not running:
        return []
    shown = judgement.ProbeReport(
        probe_id=running[-1],
        status=ProbeStatus.VALIDATED,
        evidence_tier=EvidenceTier.EXPERIMENT,
        result_summary=words,
        kill_switch_value=to_one_line(ran.value) or None,
    )
    return [shown]
