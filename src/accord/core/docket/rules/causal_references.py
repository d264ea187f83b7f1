"""What may change a decision: a valid reference in the input, or an event in the kernel."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection

from accord.core.docket.judgement import Judgement
from accord.core.docket.model import DecisionItem, PreviousItem
from accord.core.docket.probes import OVERRIDE_PREFIX, has_validated_probe
from accord.core.docket.text_values import normalize_driver, to_one_line
from accord.core.docket.triggers import Trigger
from accord.core.docket.vocabulary import (
    Confidence,
    ContextMatch,
    EvidenceTier,
    ItemState,
    Level,
    ProbeStatus,
)

ONGOING_STATES = frozenset(
    {ItemState.ACTIVE, ItemState.PROBING, ItemState.STANDBY, ItemState.DRAFT}
)
# Items with these triggers are decided again in every run, so that they recover unaided.
REVIVING_TRIGGERS = frozenset(
    {Trigger.DEPENDENCY_BLOCK, Trigger.CIRCULAR_DEPENDENCY, Trigger.DEBT_CEILING}
)
_RELATION = re.compile(
    r"\s*(.+?)(?:\s+(?:UP|DOWN))?\s*->\s*(.+?)(?:\s+(?:UP|DOWN))?(?:\s*\(\w+\))?\s*"
)
SHORT_OVERRIDE_WINDOW, LONG_OVERRIDE_WINDOW = 3, 5


def is_ongoing(item: DecisionItem) -> bool:
    """Whether an earlier run left the item in a non-terminal state."""
    return item.prev is not None and item.prev.state in ONGOING_STATES


def has_kernel_change(item: DecisionItem) -> bool:
    """Whether something changed for the item although the input does not mention it."""
    prev = item.prev or PreviousItem(item.id)
    capped = prev.confidence is not None and item.confidence_cap < prev.confidence
    own = prev.trigger in REVIVING_TRIGGERS and prev.state is not ItemState.DRAFT
    return capped or item.probe_expired or (own and not any(each.has_failed for each in prev.steps))


def has_causal_reference(item: DecisionItem) -> bool:
    """Whether the input refers to a cause that may change the decision."""
    said = (
        item.input.evidence
        or item.input.change_declared
        or item.has_step_result
        or item.probe_reported
    )
    new = item.judgement.probe or item.judgement.binding
    return (
        bool(said or new)
        or has_kernel_change(item)
        or is_probe_stalled(item)
        or has_valid_ref(item)
    )


def has_valid_ref(item: DecisionItem) -> bool:
    """Whether the delta refers to something that exists."""
    refs = (item.judgement.delta and item.judgement.delta.refs) or ()
    there = {kind: find(item) for kind, (find, _) in REF_KINDS.items()} if refs else {}
    for each in refs:
        kind, _, name = to_one_line(each).partition(":")
        kind = kind.strip().lower()
        if kind in REF_KINDS and REF_KINDS[kind][1](name.strip()) in there[kind]:
            return True
    return False


def _known_drivers(item: DecisionItem) -> set[object]:
    bound = {each for rating in item.binding.values() for each in rating.drivers}
    return {*bound, item.critical_driver}


def parse_relation(text: str) -> tuple[str, str]:
    """The two ends of an arrow in the impact graph."""
    found = _RELATION.fullmatch(text[:300])
    return (found[1].strip(), found[2].strip()) if found else ("", text)


def impact_relations(judge: Judgement) -> set[tuple[str, str]]:
    return {parse_relation(each) for each in judge.impact_graph or ()}


def independent_drivers(judge: Judgement) -> list[str]:
    """Strong drivers without a path between any two of them, if there are several."""
    strong = [
        each.name for each in judge.drivers or () if each.strength is Level.HIGH and each.name
    ]
    if len(strong) < 2:
        return []
    return [] if _any_path(set(strong), impact_relations(judge)) else strong


def _any_path(strong: set[str], arrows: set[tuple[str, str]]) -> bool:
    """Whether there is a path from one of them to another."""
    after: defaultdict[str, list[str]] = defaultdict(list)
    for source, to in arrows:
        after[source].append(to)
    # Two origins for a node suffice: at least one of them is another driver.
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


# The kinds of references: the names that exist, and how a name is normalized.
REF_KINDS: dict[
    str, tuple[Callable[[DecisionItem], Collection[object]], Callable[[str], object]]
] = {
    "driver": (_known_drivers, normalize_driver),
    "probe": (lambda item: {each.probe_id for each in item.full_probe_log}, str),
    "evidence": (lambda item: set(item.input.evidence), EvidenceTier.parse),
    "relation": (lambda item: impact_relations(item.judgement), parse_relation),
}


def is_probe_stalled(item: DecisionItem) -> bool:
    """Whether the last two probes both ran in the wrong context."""
    last = item.critical_driver_entries[-2:]
    return len(last) == 2 and all(
        each.status is ProbeStatus.INCONCLUSIVE and each.context_match is not ContextMatch.YES
        for each in last
    )


def needs_redesign(item: DecisionItem) -> bool:
    """Whether repeating the present probe cannot give new evidence."""
    last, count, weak = (
        item.critical_driver_entries[-2:],
        item.counters,
        item.best_evidence_tier.is_weak,
    )
    dull = len(last) == 2 and all(each.status is ProbeStatus.INCONCLUSIVE for each in last)
    window = (
        LONG_OVERRIDE_WINDOW
        if item.impact is Level.HIGH or item.contested
        else SHORT_OVERRIDE_WINDOW
    )
    early = list(dict.fromkeys(each.probe_id for each in item.critical_driver_entries))[:window]
    overridden = {
        each.probe_id
        for each in item.critical_driver_entries
        if OVERRIDE_PREFIX in each.representativeness
    }
    return (
        (count.pc >= 2 and item.confidence is not Confidence.HIGH and weak)
        or (dull and any(each.context_match is ContextMatch.YES for each in last))
        or (count.nm >= 2 and weak)
        or sum(each in overridden for each in early) > 1
        or item.redesign_unchanged
        or _repeats_uncertainty(item)
    )


def _repeats_uncertainty(item: DecisionItem) -> bool:
    """Whether the uncertainty is the same as before, at the same confidence and evidence."""
    prev, said = item.prev, item.judgement.next_uncertainty
    if prev is None or not said or said != prev.next_uncertainty or said == "-":
        return False
    unsure = prev.confidence is Confidence.MED and item.confidence is Confidence.MED
    return unsure and item.best_evidence_tier <= prev.best_evidence_tier


def is_fragile_unresolved(item: DecisionItem) -> bool:
    """Whether a small change of a rating would tip the decision, and no probe settled that."""
    return (
        item.fragile
        and item.impact is not Level.LOW
        and not has_validated_probe(item.critical_driver_entries)
    )
