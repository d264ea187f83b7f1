"""One ballot for every approval: quorum kinds, who may vote, and when it is enough."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.authority import Role
from accord.core.kernel.ids import is_id
from accord.core.kernel.log import Seats
from accord.core.kernel.refusal import Refused, Why

Count = Annotated[int, Meta(ge=1, le=10_000)]
DEEPEST = 3
MOST_RULES = 8
MOST_PEOPLE = 1_000
# `required` is for people to read: past this many steps the best answer so far will do.
MOST_STEPS = 500


class _Rule(msgspec.Struct, frozen=True, tag_field="type"):
    pass


class AnyOf(_Rule, frozen=True, tag="any"):
    """Any `count` people who may approve."""

    count: Count


class Everyone(_Rule, frozen=True, tag="all"):
    """Each of those who could approve when the ballot was opened."""


class OfRole(_Rule, frozen=True, tag="role"):
    """`count` people who hold the role and may approve."""

    role: Role
    count: Count


class OfLabel(_Rule, frozen=True, tag="label"):
    """`count` people whose credential carries the label and who may approve."""

    label: Annotated[str, Meta(min_length=1, max_length=128)]
    count: Count


class Named(_Rule, frozen=True, tag="specific"):
    """All of the named people."""

    participants: Annotated[tuple[str, ...], Meta(min_length=1, max_length=256)]


class Majority(_Rule, frozen=True, tag="majority"):
    """More than half of those who could approve when the ballot was opened."""


class AllOf(_Rule, frozen=True, tag="all_of"):
    """Every rule at once; one person may satisfy several."""

    rules: Annotated[
        tuple["Quorum", ...],
        Meta(min_length=1, max_length=MOST_RULES),
    ]


Leaf = AnyOf | Everyone | OfRole | OfLabel | Named | Majority
Quorum = AnyOf | Everyone | OfRole | OfLabel | Named | Majority | AllOf


class Voter(msgspec.Struct, frozen=True):
    """A human who may approve now, or whose approval outlived their leaving."""

    roles: frozenset[Role] = frozenset()
    labels: frozenset[str] = frozenset()
    here: bool = True


class Ballot(msgspec.Struct, frozen=True):
    """Votes on one question. `roll` is whom `all` and `majority` count, fixed once non-empty."""

    quorum: Quorum
    barred: Seats = frozenset()
    roll: Seats = frozenset()
    enrolled: bool = False
    yes: Seats = frozenset()
    # OPEN-17: a leaver who had approved stays counted, with the roles held at that moment.
    gone: Mapping[str, Voter] = {}


class Need(msgspec.Struct, frozen=True):
    """One plain rule, solved for the present: `count` out of `seats`."""

    seats: Seats
    count: int
    open: bool  # whether people who come later could help


class Lack(msgspec.Struct, frozen=True):
    """A plain rule that is not met yet; `possible` by those who are members now."""

    rule: Quorum
    missing: int
    possible: bool


class Tally(NamedTuple):
    """How a ballot stands now, and by whose approvals."""

    passed: bool
    counted: Seats
    needs: tuple[Need, ...]

    @property
    def received(self) -> int:
        """How many approvals count."""
        return len(self.counted)

    @property
    def required(self) -> int:
        """The size of the smallest set of people that would do."""
        return _smallest(self.needs)


Voters = Mapping[str, Voter]


def leaves(quorum: Quorum, depth: int = 1) -> Iterator[Leaf]:
    """The plain rules of a quorum; a compound deeper than three levels is refused."""
    if not isinstance(quorum, AllOf):
        yield quorum
        return
    if depth > DEEPEST:
        raise Refused(Why.MALFORMED, f"A quorum may nest at most {DEEPEST} levels of all_of")
    for rule in quorum.rules:
        yield from leaves(rule, depth + 1)


def check(quorum: Quorum) -> None:
    """Refuse a quorum that is too deep, too wide, too large or not fit to be read."""
    rules = list(leaves(quorum))
    if len(rules) > MOST_RULES:
        raise Refused(Why.MALFORMED, f"A quorum may have at most {MOST_RULES} rules")
    if any(getattr(rule, "count", 0) > MOST_PEOPLE for rule in rules):
        raise Refused(Why.MALFORMED, f"A quorum may ask for at most {MOST_PEOPLE} people")
    if not all(is_id(word) for rule in rules for word in words(rule)):
        raise Refused(Why.MALFORMED, "A quorum names labels and people by printable ids")


def words(rule: Leaf) -> tuple[str, ...]:
    """What the rule calls people by."""
    match rule:
        case OfLabel(label):
            return (label,)
        case Named(participants):
            return participants
        case _:
            return ()


def eligible(ballot: Ballot, voters: Voters) -> Voters:
    """Everybody whose approval can count: may approve, is not barred; leavers who approved too."""
    known = {**ballot.gone, **voters}
    return {seat: voter for seat, voter in known.items() if seat not in ballot.barred}


def enrol(ballot: Ballot, voters: Voters) -> Ballot:
    """Fix the roll at the first moment at which somebody is on it (OPEN-17)."""
    if ballot.enrolled:
        return ballot
    roll = frozenset(eligible(ballot, voters))
    return replace(ballot, roll=roll, enrolled=bool(roll))


def roll_now(ballot: Ballot, voters: Voters, *, skip_absent: bool) -> Seats:
    """The roll less who lost the right, and less the absent where policy says skip (OPEN-18)."""
    able = ballot.roll & frozenset(eligible(ballot, voters))
    if not skip_absent:
        return able
    here = frozenset(seat for seat, voter in voters.items() if voter.here)
    return able & (here | ballot.yes) or able


def fits(rule: Leaf, voter: Voter) -> bool:
    """Whether the voter is of the kind that the rule asks for."""
    match rule:
        case OfRole(role):
            return role in voter.roles
        case OfLabel(label):
            return label in voter.labels
        case _:
            return True


def fails_now(ballot: Ballot, before: Voter, now: Voter) -> bool:
    """Whether a voter lost something that the quorum asks for (OPEN-17)."""
    return any(fits(rule, before) and not fits(rule, now) for rule in leaves(ballot.quorum))


def _need(rule: Leaf, able: Voters, roll: Seats) -> Need:
    match rule:
        case AnyOf(count=count) | OfRole(count=count) | OfLabel(count=count):
            fit = frozenset(seat for seat, voter in able.items() if fits(rule, voter))
            return Need(fit, count, open=True)
        case Named(participants):
            named = frozenset(participants)
            return Need(named, len(named), open=False)
        case Everyone():
            # OPEN-15: no vacuous truth; an empty roll needs somebody who is not there.
            return Need(roll, max(1, len(roll)), open=not roll)
        case Majority():  # pragma: no branch - the union is closed
            return Need(roll, len(roll) // 2 + 1, open=not roll)


def tally(ballot: Ballot, voters: Voters, *, skip_absent: bool = False) -> Tally:
    """How the ballot stands now. Passing is for whoever casts a vote to find out (OPEN-17)."""
    able = eligible(ballot, voters)
    roll = roll_now(ballot, voters, skip_absent=skip_absent)
    needs = tuple(_need(rule, able, roll) for rule in leaves(ballot.quorum))
    yes = ballot.yes & frozenset(able)
    met = all(len(yes & need.seats) >= need.count for need in needs)
    return Tally(met, yes & _anybody(needs), needs)


def lacks(ballot: Ballot, voters: Voters, *, skip_absent: bool = False) -> tuple[Lack, ...]:
    """What is still missing, rule by rule; nothing where the next vote passes it."""
    able = frozenset(eligible(ballot, voters))
    yes = ballot.yes & able
    needs = tally(ballot, voters, skip_absent=skip_absent).needs
    return tuple(
        Lack(rule, need.count - met, possible=len(need.seats & able) >= need.count)
        for rule, need in zip(leaves(ballot.quorum), needs, strict=True)
        if (met := len(yes & need.seats)) < need.count
    )


def hopeless(ballot: Ballot, voters: Voters) -> bool:
    """Whether those who are here could not pass it even if all of them said yes."""
    able = frozenset(eligible(ballot, voters))
    return any(len(need.seats & able) < need.count for need in tally(ballot, voters).needs)


def vacant(ballot: Ballot, voters: Voters) -> bool:
    """Whether there is a rule that nobody can answer: silence says nothing then (OPEN-15)."""
    able = frozenset(eligible(ballot, voters))
    return any(not need.seats & able for need in tally(ballot, voters).needs)


def _anybody(needs: Iterable[Need]) -> Seats:
    return frozenset().union(*(need.seats for need in needs))


def _smallest(needs: Sequence[Need]) -> int:
    """The size of the smallest set of people that satisfies every need.

    Where those who are here could not, people who may yet come are taken to fit every open rule.
    """
    if len(needs) == 1:
        return needs[0].count
    kinds: dict[str, int] = {}
    for place, need in enumerate(needs):
        for seat in need.seats:
            kinds[seat] = kinds.get(seat, 0) | 1 << place
    people = Counter(kinds.values())
    comers = sum(1 << place for place, need in enumerate(needs) if need.open)
    people[comers] += max(0, *(need.count - len(need.seats) for need in needs))
    useful_first = sorted(people.items(), key=lambda kind: -kind[0].bit_count())
    return _cover(tuple(need.count for need in needs), useful_first)


def _cover(wanted: tuple[int, ...], people: list[tuple[int, int]]) -> int:
    """Branch and bound over kinds of people, those who satisfy most rules first."""
    best = sum(wanted)
    steps = 0
    after = _supply(len(wanted), people)

    def search(left: tuple[int, ...], kind: int, used: int) -> None:
        nonlocal best, steps
        steps += 1
        most = max(left)
        if most <= 0:
            best = min(best, used)
            return
        if kind == len(people):
            return
        mask, count = people[kind]
        places = [place for place in range(len(left)) if mask >> place & 1]
        useful = max((left[place] for place in places), default=0)
        # What nobody behind them could give, these must.
        least = max((left[place] - after[kind][place] for place in places), default=0)
        for take in range(min(count, max(0, useful)), max(0, least) - 1, -1):
            if used + most >= best or steps > MOST_STEPS:
                return
            rest = tuple(want - take * (mask >> p & 1) for p, want in enumerate(left))
            search(rest, kind + 1, used + take)

    search(wanted, 0, 0)
    return best


def _supply(rules: int, people: list[tuple[int, int]]) -> list[list[int]]:
    """For each kind, how many of the kinds behind it fit each rule."""
    after = [[0] * rules]
    for mask, count in reversed(people[1:]):
        last = after[-1]
        after.append([last[p] + count * (mask >> p & 1) for p in range(rules)])
    return after[::-1]
