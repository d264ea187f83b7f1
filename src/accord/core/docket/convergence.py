"""Two or more snapshots of the same question, compared by fixed measures."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import NamedTuple

from accord.core.docket.snapshot import Snapshot
from accord.core.docket.steps import Step
from accord.core.docket.tables import table
from accord.core.docket.words import RUNNING, Confidence, Policy, State, Verdict

CONVERGED, SOFT, HARD = "CONVERGED", "SOFT_DIVERGENCE", "HARD_DIVERGENCE"
HEADS = ("id", "VA", "GA", "SO", "CD", "class", "next_action")
RANKED = 3
FARTHEST = 3
EVIDENCE = "ACQUIRE_EVIDENCE"


@dataclass(slots=True)
class Side:
    """What one host says of an item."""

    verdict: str
    gate: str
    confidence: Confidence | None
    state: State | None
    next: str = ""
    ranks: dict[str, int] = field(default_factory=dict)
    pending: list[Step] = field(default_factory=list)

    @property
    def running(self) -> bool:
        """Whether this host would act now."""
        return self.state in RUNNING


class Peer(NamedTuple):
    """How far the hosts agree about an item, and what follows."""

    id: str
    va: int
    ga: int
    so: str
    cd: int
    kind: str
    next_action: str
    share: str


def compare(snaps: Sequence[Snapshot], policy: Policy = Policy.UPSTREAM) -> list[Peer]:
    """Every item that any host names."""
    names = {name for snap in snaps for name in (*snap.rows, *snap.items)}
    asked = ((name, [side(snap, name) for snap in snaps]) for name in sorted(names))
    return [_peer(name, sides, policy) for name, sides in asked if any(sides)]


def side(snap: Snapshot, name: str) -> Side | None:
    """A host's view of an item; None where it has none."""
    row, it = snap.row(name), snap.items.get(name)
    if row:
        made = Side(row.verdict, row.gate, None, State.read(row.state))
    elif it and it.verdict:
        made = Side(it.verdict, it.gate or "", None, it.state)
    else:
        return None
    if it:
        made.confidence = it.confidence
        made.pending = [each for each in it.steps if each.pending]
        for place, each in enumerate(it.steps[:RANKED], 1):
            made.ranks.setdefault(each.output, place)
        made.next = it.next.output if it.next else ""
    if made.next:
        made.ranks[made.next] = 0
    return made


def _peer(name: str, sides: list[Side | None], policy: Policy) -> Peer:
    there = [each for each in sides if each]
    whole = len(there) == len(sides)
    votes = Counter(each.verdict for each in there)
    verdict, most = max(votes.items(), key=lambda vote: (vote[1], vote[0]))
    agreed = whole and len(votes) == 1
    gates = whole and len({each.gate for each in there}) == 1
    shared = set.intersection(*(set(each.ranks) for each in there)) if whole else set()
    union = {token for each in there for token in each.ranks}
    empty = not union and policy is Policy.UPSTREAM
    same = agreed and gates and (bool(shared) or empty)
    majority = 2 * most > len(sides)
    kind = CONVERGED if same else SOFT if majority and (agreed or len(sides) > 2) else HARD
    case = _Case(there, sides, shared, union, kind, verdict if majority else "", policy)
    return Peer(
        name,
        int(agreed),
        int(gates),
        _share(len(shared), len(union), full=empty and whole),
        _distance(there) if whole else FARTHEST,
        kind,
        _next(case),
        f"{most}/{len(sides)}",
    )


def _share(part: int, all_of: int, *, full: bool) -> str:
    if not all_of:
        return "1.00" if full else "0.00"
    return str((Decimal(part) / all_of).quantize(Decimal("0.01"), ROUND_HALF_UP))


def _distance(sides: list[Side]) -> int:
    found = [each.confidence.rank for each in sides if each.confidence is not None]
    return max(found) - min(found) if len(found) == len(sides) else FARTHEST


class _Case(NamedTuple):
    there: list[Side]
    sides: list[Side | None]
    shared: set[str]
    union: set[str]
    kind: str
    majority: str
    policy: Policy


def _next(case: _Case) -> str:
    """What to do: the first of the rules that fits."""
    if not case.union and len(case.there) == len(case.sides):
        cut = case.majority == Verdict.DISCARD and len(case.sides) > 2
        return Verdict.DISCARD.value if cut else "NONE"
    return _of_two(case) if len(case.sides) == 2 else _of_many(case)


def _of_two(case: _Case) -> str:
    verdicts = {each.verdict for each in case.there}
    split = len(verdicts) > 1 and Verdict.DISCARD in verdicts
    if split or len(case.there) < 2:
        return EVIDENCE
    both = all(each.running for each in case.there)
    if case.shared:
        one = case.kind == HARD and any(each.running for each in case.there)
        # Guarded: hosts that disagree execute nothing, whatever they have in common.
        go = both or (one and case.policy is Policy.UPSTREAM)
        go = go and not (case.kind == HARD and case.policy is Policy.GUARDED)
        return _act(_ranked(case.shared, case.there, agreed=case.kind == CONVERGED), go=go)
    if case.kind == HARD:
        return EVIDENCE
    return _smallest(case.there, go=both)


def _of_many(case: _Case) -> str:
    if not case.majority:
        return EVIDENCE
    hosts = [each for each in case.there if each.verdict == case.majority]
    if case.majority == Verdict.DISCARD:
        return Verdict.DISCARD.value
    against = any(each.verdict == Verdict.DISCARD for each in case.there)
    go = all(each.running for each in hosts) and not against
    counts = Counter(token for each in hosts for token in each.ranks)
    most = max(counts.values(), default=0)
    if most >= 2:
        tokens = {token for token, count in counts.items() if count == most}
        return _act(_ranked(tokens, hosts, agreed=False), go=go)
    return _smallest(hosts, go=go)


def _ranked(tokens: set[str], hosts: list[Side], *, agreed: bool) -> str:
    nexts = {each.next for each in hosts}
    if agreed and len(nexts) == 1 and nexts <= tokens:
        return nexts.pop()

    def total(token: str) -> int:
        return sum(each.ranks[token] for each in hosts if token in each.ranks)

    return min(tokens, key=lambda token: (total(token), token))


def _smallest(hosts: list[Side], *, go: bool) -> str:
    steps = [(step.minutes, step.output) for each in hosts for step in each.pending]
    return _act(min(steps)[1], go=go) if steps else EVIDENCE


def _act(token: str, *, go: bool) -> str:
    return f"{'EXECUTE' if go else 'HOLD'} {token}"


def shown(peers: list[Peer], hosts: int) -> Iterator[str]:
    """[PEER_CONVERGENCE]; for more than two with the share of votes."""
    many = hosts > 2
    heads = (*HEADS, "votes") if many else HEADS
    rows = [
        (p.id, str(p.va), str(p.ga), p.so, str(p.cd), p.kind, p.next_action, p.share) for p in peers
    ]
    yield "[PEER_CONVERGENCE]"
    yield from table(heads, [row[: len(heads)] for row in rows])
