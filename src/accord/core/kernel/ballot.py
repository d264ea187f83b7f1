"""One ballot for every approval: quorum rules, who may vote, and when the votes suffice."""

# How a ballot works
# ------------------
#
# Tools, merges and explicit gates all ask one question: do enough people approve? A `Ballot` is the
# state of one such question. It is pure data; the room creates it, records votes in it and asks
# `tally` after each vote whether it has passed.
#
# Quorum. A quorum is a rule, or `all_of` several rules that must all hold. Each simple rule reduces
# to a `Requirement`: at least `count` votes out of a set of `candidates`. One vote counts for every
# rule whose candidates include the voter, so one person can satisfy several rules at once.
#
# Voters. The caller passes `voters`: the humans who hold the permission to approve right now, with
# their roles and labels. Agents are never in it (OPEN-12). `barred` excludes people for this ballot
# only, for example the initiator where self-approval is not allowed. What remains are the eligible
# voters. `any`, `role` and `label` are evaluated against them at the time of the tally, so a person
# who joins or is promoted later can still help.
#
# Electorate. `all` and `majority` need a fixed denominator, otherwise people could change the
# result by joining or leaving. So the electorate (`roll`) is settled once, at the first moment at
# which there is at least one eligible voter (OPEN-17). It never grows afterwards. Members of it who
# lose the permission to approve are removed; where the session's policy skips absent members, those
# who are absent and have not voted do not count either, unless no one would be left (OPEN-18).
# `specific` names its people and ignores the electorate.
#
# Votes. `yes` holds the ids of those who approved. There are no negative votes to count: a
# rejection closes the gate at once, which is the room's business. A vote counts only while its
# voter is eligible, which is checked by every tally and not when the vote is cast.
#
# Departures. A member who approved and then leaves the session stays counted, with the roles and
# labels held at that moment (`gone`, OPEN-17): leaving does not take an approval back. Losing the
# role or label that a rule asks for while staying does, see `lost_qualification`. A voter who
# leaves without having voted is no longer eligible and drops out of the electorate.
#
# Invariants
# - No quorum is met by zero votes. An empty electorate requires one vote that cannot be given, so
#   the gate waits or times out (OPEN-15).
# - A departure never passes a gate. It may reduce what is required to what is already there; the
#   next vote then passes the gate (OPEN-17). Without a vote only a timeout can pass it, where the
#   policy says so and every rule had at least one eligible voter.
# - `tally` depends on its arguments only: folding the same records gives the same result anywhere.
# - `required` is for display. It is the size of the smallest set of voters that meets all rules;
#   with overlapping rules that is a covering problem, so the search is bounded and may then return
#   a larger number than necessary. Whether a ballot passes never depends on it.

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.ids import is_id
from accord.core.kernel.messages import MemberIds
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role

Count = Annotated[int, Meta(ge=1, le=10_000)]
MAX_QUORUM_DEPTH = 3
MAX_QUORUM_RULES = 8
MAX_QUORUM_COUNT = 1_000
# `required` is only displayed: past this many steps the best result so far is good enough.
MAX_SEARCH_STEPS = 500


class _Rule(msgspec.Struct, frozen=True, tag_field="type"):
    pass


class AnyOf(_Rule, frozen=True, tag="any"):
    """Any `count` people who may approve."""

    count: Count


class Everyone(_Rule, frozen=True, tag="all"):
    """Every member of the electorate."""


class OfRole(_Rule, frozen=True, tag="role"):
    """`count` people who hold the role and may approve."""

    role: Role
    count: Count


class OfLabel(_Rule, frozen=True, tag="label"):
    """`count` people whose credential carries the label and who may approve."""

    label: Annotated[str, Meta(min_length=1, max_length=128)]
    count: Count


class Named(_Rule, frozen=True, tag="specific"):
    """All of the people named, whether they are members or not."""

    participants: Annotated[tuple[str, ...], Meta(min_length=1, max_length=256)]


class Majority(_Rule, frozen=True, tag="majority"):
    """More than half of the electorate."""


class AllOf(_Rule, frozen=True, tag="all_of"):
    """All of these rules; one person may satisfy several of them."""

    rules: Annotated[
        tuple["Quorum", ...],
        Meta(min_length=1, max_length=MAX_QUORUM_RULES),
    ]


SimpleRule = AnyOf | Everyone | OfRole | OfLabel | Named | Majority
Quorum = AnyOf | Everyone | OfRole | OfLabel | Named | Majority | AllOf


class Voter(msgspec.Struct, frozen=True):
    """A human who may approve now, or who approved and then left."""

    roles: frozenset[Role] = frozenset()
    labels: frozenset[str] = frozenset()
    here: bool = True


class Ballot(msgspec.Struct, frozen=True):
    """Votes on one question; `roll` is the electorate, settled once `enrolled` is set."""

    quorum: Quorum
    barred: MemberIds = frozenset()
    roll: MemberIds = frozenset()
    enrolled: bool = False
    yes: MemberIds = frozenset()
    # OPEN-17: members who approved and left stay counted, with the roles they held on leaving.
    gone: Mapping[str, Voter] = {}


class Requirement(msgspec.Struct, frozen=True):
    """What one simple rule needs at this moment: `count` votes out of `candidates`."""

    candidates: MemberIds
    count: int
    open_to_newcomers: bool  # whether people who join later could become candidates


class Lack(msgspec.Struct, frozen=True):
    """A simple rule that is not met yet; `possible` if the current members could meet it.

    `candidates` are the members whose approval would count for it.
    """

    rule: Quorum
    missing: int
    possible: bool
    candidates: tuple[str, ...] = ()


class Tally(NamedTuple):
    """The current result of a ballot; `counted` are the voters whose approval counts."""

    passed: bool
    counted: MemberIds
    needs: tuple[Requirement, ...]

    @property
    def received(self) -> int:
        """Number of approvals that count."""
        return len(self.counted)

    @property
    def required(self) -> int:
        """Size of the smallest set of voters that would meet the quorum."""
        return _fewest_voters(self.needs)


Voters = Mapping[str, Voter]


def simple_rules(quorum: Quorum, depth: int = 1) -> Iterator[SimpleRule]:
    """The simple rules of a quorum; nesting deeper than three levels is refused."""
    if not isinstance(quorum, AllOf):
        yield quorum
        return
    if depth > MAX_QUORUM_DEPTH:
        raise Refused(
            Reason.MALFORMED, f"A quorum may nest at most {MAX_QUORUM_DEPTH} levels of all_of"
        )
    for rule in quorum.rules:
        yield from simple_rules(rule, depth + 1)


def check_quorum(quorum: Quorum) -> None:
    """Refuse a quorum with too many levels, rules or votes, or with unprintable names."""
    rules = list(simple_rules(quorum))
    if len(rules) > MAX_QUORUM_RULES:
        raise Refused(Reason.MALFORMED, f"A quorum may have at most {MAX_QUORUM_RULES} rules")
    if any(getattr(rule, "count", 0) > MAX_QUORUM_COUNT for rule in rules):
        raise Refused(Reason.MALFORMED, f"A quorum may ask for at most {MAX_QUORUM_COUNT} people")
    if not all(is_id(word) for rule in rules for word in names_in_rule(rule)):
        raise Refused(
            Reason.MALFORMED,
            "Labels and people in a quorum must be printable ids of up to 128 characters",
        )


def names_in_rule(rule: SimpleRule) -> tuple[str, ...]:
    """Labels and people that the rule refers to."""
    match rule:
        case OfLabel(label):
            return (label,)
        case Named(participants):
            return participants
        case _:
            return ()


def eligible_voters(ballot: Ballot, voters: Voters) -> Voters:
    """Everyone whose approval can count, including members who approved and then left."""
    known = {**ballot.gone, **voters}
    return {id: voter for id, voter in known.items() if id not in ballot.barred}


def fix_electorate(ballot: Ballot, voters: Voters) -> Ballot:
    """Settle the electorate as soon as there is at least one eligible voter (OPEN-17)."""
    if ballot.enrolled:
        return ballot
    roll = frozenset(eligible_voters(ballot, voters))
    return replace(ballot, roll=roll, enrolled=bool(roll))


def current_electorate(ballot: Ballot, voters: Voters, *, skip_absent: bool) -> MemberIds:
    """The electorate without those who may no longer approve or are skipped as absent (OPEN-18)."""
    eligible = ballot.roll & frozenset(eligible_voters(ballot, voters))
    if not skip_absent:
        return eligible
    here = frozenset(id for id, voter in voters.items() if voter.here)
    return eligible & (here | ballot.yes) or eligible


def matches_rule(rule: SimpleRule, voter: Voter) -> bool:
    """Whether the voter has the role or label that the rule asks for."""
    match rule:
        case OfRole(role):
            return role in voter.roles
        case OfLabel(label):
            return label in voter.labels
        case _:
            return True


def lost_qualification(ballot: Ballot, before: Voter, now: Voter) -> bool:
    """Whether a voter lost a role or label that the quorum asks for (OPEN-17)."""
    return any(
        matches_rule(rule, before) and not matches_rule(rule, now)
        for rule in simple_rules(ballot.quorum)
    )


def _requirement_of(rule: SimpleRule, eligible: Voters, roll: MemberIds) -> Requirement:
    match rule:
        case AnyOf(count=count) | OfRole(count=count) | OfLabel(count=count):
            fit = frozenset(id for id, voter in eligible.items() if matches_rule(rule, voter))
            return Requirement(fit, count, open_to_newcomers=True)
        case Named(participants):
            named = frozenset(participants)
            return Requirement(named, len(named), open_to_newcomers=False)
        case Everyone():
            # OPEN-15: an empty electorate must not pass; it needs a vote that cannot be given.
            return Requirement(roll, max(1, len(roll)), open_to_newcomers=not roll)
        case Majority():  # pragma: no branch - the union is closed
            return Requirement(roll, len(roll) // 2 + 1, open_to_newcomers=not roll)


def tally(ballot: Ballot, voters: Voters, *, skip_absent: bool = False) -> Tally:
    """The result now; callers act on `passed` only after a vote (OPEN-17)."""
    eligible = eligible_voters(ballot, voters)
    roll = current_electorate(ballot, voters, skip_absent=skip_absent)
    needs = tuple(_requirement_of(rule, eligible, roll) for rule in simple_rules(ballot.quorum))
    yes = ballot.yes & frozenset(eligible)
    met = all(len(yes & need.candidates) >= need.count for need in needs)
    return Tally(met, yes & _all_candidates(needs), needs)


def unmet_rules(ballot: Ballot, voters: Voters, *, skip_absent: bool = False) -> tuple[Lack, ...]:
    """The rules that lack votes; empty if the next vote will pass the ballot."""
    eligible = frozenset(eligible_voters(ballot, voters))
    yes = ballot.yes & eligible
    needs = tally(ballot, voters, skip_absent=skip_absent).needs
    return tuple(
        Lack(
            rule,
            need.count - met,
            possible=len(need.candidates & eligible) >= need.count,
            candidates=tuple(sorted(need.candidates & eligible - yes)),
        )
        for rule, need in zip(simple_rules(ballot.quorum), needs, strict=True)
        if (met := len(yes & need.candidates)) < need.count
    )


def unmeetable_rules(ballot: Ballot, voters: Voters) -> tuple[str, ...]:
    """What the present members cannot meet even if all of them approve, and who could help."""
    eligible = frozenset(eligible_voters(ballot, voters))
    needs = tally(ballot, voters).needs
    return tuple(
        _unmeetable_sentence(rule, need, need.candidates & eligible)
        for rule, need in zip(simple_rules(ballot.quorum), needs, strict=True)
        if len(need.candidates & eligible) < need.count
    )


def _unmeetable_sentence(rule: SimpleRule, need: Requirement, able: MemberIds) -> str:
    if isinstance(rule, Named):
        return f"only {', '.join(sorted(need.candidates - able))} could complete {describe(rule)}"
    able_text = f"only {', '.join(sorted(able))} can approve" if able else "no member can approve"
    return f"{describe(rule)} needs {need.count - len(able)} more: {able_text}"


def describe(rule: SimpleRule) -> str:
    """The rule as people type it."""
    match rule:
        case AnyOf(count=count):
            return f"any {count}"
        case OfRole(role, count):
            return f"role {role} {count}"
        case OfLabel(label, count):
            return f"label {label} {count}"
        case Named(participants):
            return ",".join(participants)
        case Everyone() | Majority():  # pragma: no branch - the union is closed
            return "all" if isinstance(rule, Everyone) else "majority"


def skipped_voters(ballot: Ballot, voters: Voters) -> MemberIds:
    """Members of the electorate that a policy which skips the absent leaves out (OPEN-18)."""
    whole = current_electorate(ballot, voters, skip_absent=False)
    return whole - current_electorate(ballot, voters, skip_absent=True)


def counts_electorate(quorum: Quorum) -> bool:
    """Whether some rule counts the electorate, so that leaving a member out matters."""
    return any(isinstance(rule, Everyone | Majority) for rule in simple_rules(quorum))


def cannot_pass(ballot: Ballot, voters: Voters) -> bool:
    """Whether the ballot would fail even if every eligible voter approved."""
    eligible = frozenset(eligible_voters(ballot, voters))
    return any(len(need.candidates & eligible) < need.count for need in tally(ballot, voters).needs)


def has_rule_without_voters(ballot: Ballot, voters: Voters) -> bool:
    """Whether some rule has no eligible voter, so that a timeout must not approve (OPEN-15)."""
    eligible = frozenset(eligible_voters(ballot, voters))
    return any(not need.candidates & eligible for need in tally(ballot, voters).needs)


def _all_candidates(needs: Iterable[Requirement]) -> MemberIds:
    return frozenset().union(*(need.candidates for need in needs))


def _fewest_voters(needs: Sequence[Requirement]) -> int:
    """Size of the smallest set of voters that meets every requirement.

    Where the present candidates are too few, newcomers are assumed to fit every open rule.
    """
    if len(needs) == 1:
        return needs[0].count
    masks: dict[str, int] = {}
    for place, need in enumerate(needs):
        for id in need.candidates:
            masks[id] = masks.get(id, 0) | 1 << place
    groups = Counter(masks.values())
    newcomers = sum(1 << place for place, need in enumerate(needs) if need.open_to_newcomers)
    groups[newcomers] += max(0, *(need.count - len(need.candidates) for need in needs))
    useful_first = sorted(groups.items(), key=lambda group: -group[0].bit_count())
    return _minimum_cover(tuple(need.count for need in needs), useful_first)


def _minimum_cover(wanted: tuple[int, ...], groups: list[tuple[int, int]]) -> int:
    """Branch and bound over groups of like voters, those that satisfy most rules first."""
    best = sum(wanted)
    steps = 0
    after = _remaining_supply(len(wanted), groups)

    def search(left: tuple[int, ...], index: int, used: int) -> None:
        nonlocal best, steps
        steps += 1
        lacking = max(left)
        if lacking <= 0:
            best = min(best, used)
            return
        if index == len(groups):
            return
        mask, count = groups[index]
        places = [place for place in range(len(left)) if mask >> place & 1]
        useful = max((left[place] for place in places), default=0)
        # Votes that no later group can supply must come from this one.
        least = max((left[place] - after[index][place] for place in places), default=0)
        for take in range(min(count, max(0, useful)), max(0, least) - 1, -1):
            if used + lacking >= best or steps > MAX_SEARCH_STEPS:
                return
            rest = tuple(want - take * (mask >> p & 1) for p, want in enumerate(left))
            search(rest, index + 1, used + take)

    search(wanted, 0, 0)
    return best


def _remaining_supply(rules: int, groups: list[tuple[int, int]]) -> list[list[int]]:
    """For each group, how many voters of the later groups fit each rule."""
    after = [[0] * rules]
    for mask, count in reversed(groups[1:]):
        last = after[-1]
        after.append([last[p] + count * (mask >> p & 1) for p in range(rules)])
    return after[::-1]
