"""What may change a decision: something said that counts, or something that happened."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection

from accord.core.docket.judge import Judge
from accord.core.docket.model import Item, Previous
from accord.core.docket.probes import OVERRIDE, resolved
from accord.core.docket.text import driver, one_line
from accord.core.docket.words import Confidence, Found, Level, Match, State, Tier, Trigger

ONGOING = frozenset({State.ACTIVE, State.PROBING, State.STANDBY, State.DRAFT})
# An item under one of these is looked at again in every run, so that it goes on by itself.
OWN = frozenset({Trigger.DEPENDENCY_BLOCK, Trigger.CIRCULAR_DEPENDENCY, Trigger.DEBT_CEILING})
_RELATION = re.compile(
    r"\s*(.+?)(?:\s+(?:UP|DOWN))?\s*->\s*(.+?)(?:\s+(?:UP|DOWN))?(?:\s*\(\w+\))?\s*"
)
SHORT, LONG = 3, 5


def ongoing(item: Item) -> bool:
    """Whether an earlier run left it open."""
    return item.prev is not None and item.prev.state in ONGOING


def stirred(item: Item) -> bool:
    """Whether something happened to an item although nobody said anything."""
    prev = item.prev or Previous(item.id)
    capped = prev.confidence is not None and item.cap < prev.confidence
    own = prev.trigger in OWN and prev.state is not State.DRAFT
    return capped or item.expired_probe or (own and not any(each.failed for each in prev.steps))


def caused(item: Item) -> bool:
    """Whether what was said refers to something that counts."""
    said = item.inp.evidence or item.inp.changed or item.resulted or item.reported
    new = item.judge.probe or item.judge.binding
    return bool(said or new) or stirred(item) or stalled(item) or refers(item)


def refers(item: Item) -> bool:
    """Whether the change names something that is there."""
    refs = (item.judge.delta and item.judge.delta.refs) or ()
    there = {kind: find(item) for kind, (find, _) in REFS.items()} if refs else {}
    for each in refs:
        kind, _, name = one_line(each).partition(":")
        kind = kind.strip().lower()
        if kind in REFS and REFS[kind][1](name.strip()) in there[kind]:
            return True
    return False


def _drivers(item: Item) -> set[object]:
    bound = {each for rating in item.binding.values() for each in rating.drivers}
    return {*bound, item.critical}


def relation(text: str) -> tuple[str, str]:
    """Two ends of an arrow."""
    found = _RELATION.fullmatch(text[:300])
    return (found[1].strip(), found[2].strip()) if found else ("", text)


def relations(judge: Judge) -> set[tuple[str, str]]:
    """Every arrow of the impact graph."""
    return {relation(each) for each in judge.impact_graph or ()}


def independent(judge: Judge) -> list[str]:
    """Strong drivers of which no arrow leads to another, where there are several."""
    strong = [
        each.name for each in judge.drivers or () if each.strength is Level.HIGH and each.name
    ]
    if len(strong) < 2:
        return []
    return [] if _leads(set(strong), relations(judge)) else strong


def _leads(strong: set[str], arrows: set[tuple[str, str]]) -> bool:
    """Whether arrows lead from one of them to another."""
    after: defaultdict[str, list[str]] = defaultdict(list)
    for source, to in arrows:
        after[source].append(to)
    # Two origins are enough to know of a place: one of them is not the driver it leads to.
    origins: defaultdict[str, set[str]] = defaultdict(set)
    work = [(each, each) for each in strong]
    while work:
        place, origin = work.pop()
        if place in strong and place != origin:
            return True
        if origin not in origins[place] and len(origins[place]) < 2:
            origins[place].add(origin)
            work += [(to, origin) for to in after[place]]
    return False


# What a change may refer to: what there is of it, and how its name is read.
REFS: dict[str, tuple[Callable[[Item], Collection[object]], Callable[[str], object]]] = {
    "driver": (_drivers, driver),
    "probe": (lambda item: {each.probe_id for each in item.log_out}, str),
    "evidence": (lambda item: set(item.inp.evidence), Tier.read),
    "relation": (lambda item: relations(item.judge), relation),
}


def stalled(item: Item) -> bool:
    """Whether the last two probes ran where the decision will not live."""
    last = item.mine[-2:]
    return len(last) == 2 and all(
        each.status is Found.INCONCLUSIVE and each.context_match is not Match.YES for each in last
    )


def worn_out(item: Item) -> bool:
    """Whether more of the same probing will not tell."""
    last, count, weak = item.mine[-2:], item.counters, item.tier.weak
    dull = len(last) == 2 and all(each.status is Found.INCONCLUSIVE for each in last)
    window = LONG if item.impact is Level.HIGH or item.contested else SHORT
    early = list(dict.fromkeys(each.probe_id for each in item.mine))[:window]
    overridden = {each.probe_id for each in item.mine if OVERRIDE in each.representativeness}
    return (
        (count.pc >= 2 and item.confidence is not Confidence.HIGH and weak)
        or (dull and any(each.context_match is Match.YES for each in last))
        or (count.nm >= 2 and weak)
        or sum(each in overridden for each in early) > 1
        or item.redesign_stuck
        or _repeats(item)
    )


def _repeats(item: Item) -> bool:
    """Whether the same doubt is said again, as sure as before and on no better evidence."""
    prev, said = item.prev, item.judge.next_uncertainty
    if prev is None or not said or said != prev.uncertainty or said == "-":
        return False
    unsure = prev.confidence is Confidence.MED and item.confidence is Confidence.MED
    return unsure and item.tier <= prev.tier


def tippy(item: Item) -> bool:
    """Whether a small change of a rating would change the decision, and nobody has tried."""
    return item.fragile and item.impact is not Level.LOW and not resolved(item.mine)
