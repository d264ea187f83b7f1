"""Compares two or more snapshots of the same question by fixed measures."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

from accord.core.docket.rendering.reports import markdown_table
from accord.core.docket.snapshot import DecisionSnapshot
from accord.core.docket.steps import Step
from accord.core.docket.vocabulary import (
    RUNNING_STATES,
    Confidence,
    ItemState,
    KernelPolicy,
    Verdict,
)

CONVERGED, SOFT_DIVERGENCE, HARD_DIVERGENCE = "CONVERGED", "SOFT_DIVERGENCE", "HARD_DIVERGENCE"
TABLE_HEADS = ("id", "VA", "GA", "SO", "CD", "class", "next_action")
RANKED_STEPS = 3
MAX_CONFIDENCE_DISTANCE = 3
ACQUIRE_EVIDENCE = "ACQUIRE_EVIDENCE"


@dataclass(slots=True)
class HostView:
    """What one host decided about an item."""

    verdict: str
    gate: str
    confidence: Confidence | None
    state: ItemState | None
    next_output: str = ""
    output_ranks: dict[str, int] = field(default_factory=dict)
    pending_steps: list[Step] = field(default_factory=list)

    @property
    def would_run_now(self) -> bool:
        return self.state in RUNNING_STATES


class PeerConvergence(NamedTuple):
    """How far the hosts agree about an item, and what to do next."""

    id: str
    va: int
    ga: int
    so: str
    cd: int
    kind: str
    next_action: str
    share: str


def compare_snapshots(
    snaps: Sequence[DecisionSnapshot], policy: KernelPolicy = KernelPolicy.UPSTREAM
) -> list[PeerConvergence]:
    """One comparison for every item that any host names."""
    names = {name for snap in snaps for name in (*snap.row_by_id, *snap.items)}
    asked = ((name, [host_view(snap, name) for snap in snaps]) for name in sorted(names))
    return [_compare_item(name, sides, policy) for name, sides in asked if any(sides)]


def host_view(snap: DecisionSnapshot, name: str) -> HostView | None:
    """A host's view of an item, or None if its snapshot does not contain it."""
    row, it = snap.row_by_id.get(name), snap.items.get(name)
    if row:
        made = HostView(row.verdict, row.gate, None, ItemState.parse(row.state))
    elif it and it.verdict:
        made = HostView(it.verdict, it.dominant_gate or "", None, it.state)
    else:
        return None
    if it:
        made.confidence = it.confidence
        made.pending_steps = [each for each in it.steps if each.is_pending]
        for place, each in enumerate(it.steps[:RANKED_STEPS], 1):
            made.output_ranks.setdefault(each.output, place)
        made.next_output = it.next_step.output if it.next_step else ""
    if made.next_output:
        made.output_ranks[made.next_output] = 0
    return made


def _compare_item(name: str, sides: list[HostView | None], policy: KernelPolicy) -> PeerConvergence:
    there = [each for each in sides if each]
    whole = len(there) == len(sides)
    votes = Counter(each.verdict for each in there)
    verdict, most = max(votes.items(), key=lambda vote: (vote[1], vote[0]))
    agreed = whole and len(votes) == 1
    gates = whole and len({each.gate for each in there}) == 1
    shared = set.intersection(*(set(each.output_ranks) for each in there)) if whole else set()
    union = {token for each in there for token in each.output_ranks}
    empty = not union and not policy.overrides.divergence_holds
    same = agreed and gates and (bool(shared) or empty)
    majority = 2 * most > len(sides)
    kind = (
        CONVERGED
        if same
        else SOFT_DIVERGENCE
        if majority and (agreed or len(sides) > 2)
        else HARD_DIVERGENCE
    )
    case = _Comparison(there, sides, shared, union, kind, verdict if majority else "", policy)
    return PeerConvergence(
        name,
        int(agreed),
        int(gates),
        _ratio(len(shared), len(union), full=empty and whole),
        _confidence_distance(there) if whole else MAX_CONFIDENCE_DISTANCE,
        kind,
        _next_action(case),
        f"{most}/{len(sides)}",
    )


def _ratio(part: int, all_of: int, *, full: bool) -> str:
    if not all_of:
        return "1.00" if full else "0.00"
    return str((Decimal(part) / all_of).quantize(Decimal("0.01"), ROUND_HALF_UP))


def _confidence_distance(sides: list[HostView]) -> int:
    found = [each.confidence.rank for each in sides if each.confidence is not None]
    return max(found) - min(found) if len(found) == len(sides) else MAX_CONFIDENCE_DISTANCE


class _Comparison(NamedTuple):
    present: list[HostView]
    sides: list[HostView | None]
    shared: set[str]
    union: set[str]
    kind: str
    majority: str
    policy: KernelPolicy


def _next_action(case: _Comparison) -> str:
    """What to do next: the first rule that applies decides."""
    if not case.union and len(case.present) == len(case.sides):
        cut = case.majority == Verdict.DISCARD and len(case.sides) > 2
        return Verdict.DISCARD.value if cut else "NONE"
    return _next_of_two(case) if len(case.sides) == 2 else _next_of_many(case)


def _next_of_two(case: _Comparison) -> str:
    verdicts = {each.verdict for each in case.present}
    split = len(verdicts) > 1 and Verdict.DISCARD in verdicts
    if split or len(case.present) < 2:
        return ACQUIRE_EVIDENCE
    both = all(each.would_run_now for each in case.present)
    if case.shared:
        one = case.kind == HARD_DIVERGENCE and any(each.would_run_now for each in case.present)
        holds = case.kind == HARD_DIVERGENCE and case.policy.overrides.divergence_holds
        go = (both or one) and not holds
        return _execute_or_hold(
            _best_ranked(case.shared, case.present, agreed=case.kind == CONVERGED), go=go
        )
    if case.kind == HARD_DIVERGENCE:
        return ACQUIRE_EVIDENCE
    return _shortest_step(case.present, go=both)


def _next_of_many(case: _Comparison) -> str:
    if not case.majority:
        return ACQUIRE_EVIDENCE
    hosts = [each for each in case.present if each.verdict == case.majority]
    if case.majority == Verdict.DISCARD:
        return Verdict.DISCARD.value
    against = any(each.verdict == Verdict.DISCARD for each in case.present)
    go = all(each.would_run_now for each in hosts) and not against
    counts = Counter(token for each in hosts for token in each.output_ranks)
    most = max(counts.values(), default=0)
    if most >= 2:
        tokens = {token for token, count in counts.items() if count == most}
        return _execute_or_hold(_best_ranked(tokens, hosts, agreed=False), go=go)
    return _shortest_step(hosts, go=go)


def _best_ranked(tokens: set[str], hosts: list[HostView], *, agreed: bool) -> str:
    nexts = {each.next_output for each in hosts}
    if agreed and len(nexts) == 1 and nexts <= tokens:
        return nexts.pop()

    def total(token: str) -> int:
        return sum(each.output_ranks[token] for each in hosts if token in each.output_ranks)

    return min(tokens, key=lambda token: (total(token), token))


def _shortest_step(hosts: list[HostView], *, go: bool) -> str:
    steps = [(step.minutes, step.output) for each in hosts for step in each.pending_steps]
    return _execute_or_hold(min(steps)[1], go=go) if steps else ACQUIRE_EVIDENCE


def _execute_or_hold(token: str, *, go: bool) -> str:
    return f"{'EXECUTE' if go else 'HOLD'} {token}"


def render_convergence(peers: list[PeerConvergence], hosts: int) -> Iterator[str]:
    """The lines of [PEER_CONVERGENCE]; with the share of votes if there are more than two hosts."""
    many = hosts > 2
    heads = (*TABLE_HEADS, "votes") if many else TABLE_HEADS
    rows = [
        (p.id, str(p.va), str(p.ga), p.so, str(p.cd), p.kind, p.next_action, p.share) for p in peers
    ]
    yield "[PEER_CONVERGENCE]"
    yield from markdown_table(heads, [row[: len(heads)] for row in rows])
