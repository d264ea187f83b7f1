"""The mirror of a ledger: each event once, in the order of the file, whatever git did to it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.dialects.canonical import seal, unseal
from accord.core.kernel.actor import POLICY, Actor
from accord.core.kernel.authority import Kind
from accord.core.kernel.log import Ask, Body, Elapsed, Event, Message, Record
from accord.core.kernel.log import fold as folded
from accord.core.kernel.refusal import Refused, Why
from accord.core.work.image import Image, Sorting, Source, Splice, keys
from accord.core.work.mirror import (
    CONTEXT,
    MOST_MOVED,
    Arranged,
    Mirror,
    Mirrored,
    PactArrange,
    PactMirror,
    key_of,
    mirror_id,
)
from tests.spec import proves

STREAM = "work/shop"
ANN = Actor(seat="ann", kind=Kind.HUMAN)


def asked(body: Body, actor: Actor = POLICY) -> Ask:
    return Ask(Message("m", "", "shop", "system", body), actor, 1, {}, None)


def when(mirror: Mirror, body: Body, actor: Actor = POLICY) -> list[Event]:
    ask = asked(body, actor)
    CONTEXT.admit(mirror, ask)
    return [e for e in CONTEXT.decide[type(body)](mirror, ask, body) if isinstance(e, Event)]


def after(*events: Event) -> Mirror:
    """Folded from their stored bytes."""
    records = [
        Record(STREAM, n, 0, f"r{n}", 1, "system", "c", "", "system", event)
        for n, event in enumerate(events, 1)
    ]
    stored = [unseal(STREAM, each.version, seal(each).body).record for each in records]
    assert [each.event for each in stored] == list(events)
    return folded(CONTEXT, CONTEXT.start(STREAM), stored)


def source(name: str, words: str = "") -> Source:
    return Source(key_of(name), f"{name} {words}", words)


def mirrored(each: Source) -> Mirrored:
    return Mirrored(key=each.key, line=each.line, digest=each.digest)


def image(*names: str) -> Image:
    made = Image()
    for name in names:
        made.take(mirrored(source(name)))
    return made


def names_in(made: Image, *names: str) -> list[str]:
    """The lines of the image, by the records of these events in this order."""
    sorting = Sorting(made)
    for name in names:
        sorting.take(mirrored(source(name)))
    return [line.split()[0] for line in sorting.lines()]


def follow(made: Image, names: list[str]) -> int:
    """Bring the image in step with a file, as the server does; the number of records."""
    sources = [source(name) for name in names]
    before = made.records
    for each in made.fresh(sources):
        made.take(mirrored(each))
    while step := made.splice(keys(sources)):
        made.take(Arranged(at=step.at, drop=step.drop, put=step.put))
    return made.records - before


# The context


@proves("UNI-7", "UNI-11")
def test_an_event_is_recorded_as_it_stands_under_an_id_that_follows_from_its_own() -> None:
    one = source("e1")

    facts = when(Mirror("shop"), PactMirror(one.key, one.line, one.digest))

    assert facts == [mirrored(one)]
    assert after(*facts) == Mirror("shop", 1)
    assert mirror_id(one.key) == mirror_id(key_of("e1")) != mirror_id(key_of("e2"))
    assert len({key_of("\ud800"), key_of(""), key_of("e1")}) == 3


def test_another_order_is_recorded_by_whoever_knows_everything() -> None:
    here = after(mirrored(source("a")), mirrored(source("b")))
    put = (key_of("b"), key_of("a"))

    assert when(here, PactArrange(2, 0, 2, put)) == [Arranged(at=0, drop=2, put=put)]
    assert after(mirrored(source("a")), Arranged(at=0, drop=1)) == Mirror("shop", 2)
    with pytest.raises(Refused, match="look again") as no:
        when(here, PactArrange(1, 0, 2, put))
    assert no.value.why is Why.WRONG_STATE


@pytest.mark.parametrize("body", [PactMirror("a" * 32, "{}", ""), PactArrange(0, 0, 0), Elapsed()])
def test_nobody_but_the_server_writes_to_a_mirror(body: Body) -> None:
    with pytest.raises(Refused, match="accord pact") as no:
        when(Mirror("shop"), body, ANN)
    assert no.value.why is Why.FORBIDDEN


def test_time_changes_nothing() -> None:
    assert when(Mirror("shop"), CONTEXT.tick) == []
    assert list(CONTEXT.deadlines(Mirror("shop"), None)) == []
    assert not CONTEXT.knows(Mirror("shop"), "id", "ann")


# The image


def test_what_is_appended_to_the_file_is_appended_here() -> None:
    made = image("a", "b")

    assert follow(made, ["a", "b", "c"]) == 1
    assert names_in(made, "a", "b", "c") == ["a", "b", "c"]
    assert follow(made, ["a", "b", "c"]) == 0


@proves("OPEN-137")
def test_lines_that_git_puts_between_others_are_between_them_here() -> None:
    made = image("a", "d")

    assert follow(made, ["a", "b", "c", "d"]) == 3
    assert names_in(made, "a", "d", "b", "c") == ["a", "b", "c", "d"]


@proves("OPEN-137")
def test_what_git_takes_away_is_gone_here_and_comes_back_without_being_recorded_again() -> None:
    made = image("a", "b", "c")

    assert made.lost(keys([source("a"), source("c")]))
    assert follow(made, ["a", "c"]) == 1
    assert names_in(made, "a", "b", "c") == ["a", "c"]
    assert made.fresh([source("b")]) == []
    assert not made.lost(keys([source("b"), source("a"), source("c")]))
    assert follow(made, ["b", "a", "c"]) == 1
    assert names_in(made, "a", "b", "c") == ["b", "a", "c"]


@proves("UNI-11")
def test_of_an_id_that_says_something_else_the_first_counts() -> None:
    made = image("a")
    sorting = Sorting(made)

    assert made.fresh([source("a", "other words"), source("b"), source("b")]) == [source("b")]
    assert not made.take(mirrored(source("a", "other words")))
    for words in ("", "other words"):
        sorting.take(mirrored(source("a", words)))
    assert sorting.lines() == ["a "]
    assert made.order == [key_of("a")]


def test_an_image_knows_about_how_much_its_records_take() -> None:
    made = image("a", "b")
    before = made.weight

    assert before > len("a b ")
    assert not made.take(Arranged(at=0, drop=2, put=(key_of("b"), key_of("a"))))
    assert made.weight > before + 2 * len(key_of("a"))


def test_a_long_way_is_gone_in_steps() -> None:
    names = [f"e{n}" for n in range(MOST_MOVED + 10)]
    made = image(*names)
    turned = names[::-1]

    assert follow(made, turned) == 2
    assert made.order == [key_of(name) for name in turned]


def test_a_place_in_the_order_whose_event_nobody_recorded_is_passed_by() -> None:
    made = image("a")
    made.take(Arranged(at=1, drop=0, put=("f" * 32,)))

    assert names_in(made, "a") == ["a"]


def test_the_same_order_needs_no_step() -> None:
    assert image("a").splice(keys([source("a")])) is None
    assert image("a").splice([]) == Splice(0, 1, ())
    assert image().splice([]) is None


@proves("OPEN-137")
@given(st.lists(st.lists(st.sampled_from("abcdefg"), unique=True, max_size=7), max_size=8))
@settings(deadline=None)
def test_whatever_becomes_of_the_file_the_image_is_the_file_and_each_event_is_there_once(
    files: list[list[str]],
) -> None:
    made = Image()
    for names in files:
        follow(made, names)
        assert made.order == [key_of(name) for name in names]
        assert follow(made, names) == 0
    assert set(made.known) == {key_of(name) for names in files for name in names}
