"""The mirror of a ledger: each event once, in the order of the file, whatever git did to it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.core.dialects.stored_records import decode_record, encode_record
from accord.core.kernel.actor import POLICY_ACTOR, Actor
from accord.core.kernel.context import Command
from accord.core.kernel.context import fold as folded
from accord.core.kernel.messages import Body, Elapsed, Message
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Kind
from accord.core.work.mirror import (
    CONTEXT,
    MAX_MOVED_EVENTS,
    Arranged,
    Mirrored,
    MirrorState,
    PactArrange,
    PactMirror,
    event_key,
    mirror_message_id,
)
from accord.core.work.mirror_order import MirrorOrder, SourceEvent, Splice
from tests.spec import proves

STREAM = "work/shop"
ANN = Actor(principal="ann", kind=Kind.HUMAN)


def asked(body: Body, actor: Actor = POLICY_ACTOR) -> Command:
    return Command(Message("m", "", "shop", "system", body), actor, 1, {}, None)


def when(mirror: MirrorState, body: Body, actor: Actor = POLICY_ACTOR) -> list[Event]:
    ask = asked(body, actor)
    CONTEXT.admit(mirror, ask)
    return [e for e in CONTEXT.decide[type(body)](mirror, ask, body) if isinstance(e, Event)]


def after(*events: Event) -> MirrorState:
    """Folded from their stored bytes."""
    records = [
        Record(STREAM, n, 0, f"r{n}", 1, "system", "c", "", "system", event)
        for n, event in enumerate(events, 1)
    ]
    stored = [
        decode_record(STREAM, each.version, encode_record(each).body).record for each in records
    ]
    assert [each.event for each in stored] == list(events)
    return folded(CONTEXT, CONTEXT.initial_state(STREAM), stored)


def source(name: str, words: str = "") -> SourceEvent:
    return SourceEvent(event_key(name), f"{name} {words}", words)


def mirrored(each: SourceEvent) -> Mirrored:
    return Mirrored(key=each.key, line=each.line, digest=each.digest)


def image(*names: str) -> MirrorOrder:
    made = MirrorOrder()
    for name in names:
        made.apply(mirrored(source(name)))
    return made


def names_in(made: MirrorOrder) -> list[str]:
    """The events of the image, by their lines."""
    return [line.split()[0] for line in made.current_lines()]


def keys_of(sources: list[SourceEvent]) -> list[str]:
    return [each.key for each in sources]


def follow(made: MirrorOrder, names: list[str]) -> int:
    """Bring the image in step with a file, as the server does; the number of records."""
    sources = [source(name) for name in names]
    before = made.records
    for each in made.unrecorded(sources):
        made.apply(mirrored(each))
    while step := made.next_splice(keys_of(sources)):
        made.apply(Arranged(at=step.at, drop=step.drop, put=step.put))
    return made.records - before


# The context


@proves("UNI-7", "UNI-11")
def test_an_event_is_recorded_as_it_stands_under_an_id_that_follows_from_its_own() -> None:
    one = source("e1")

    facts = when(MirrorState("shop"), PactMirror(one.key, one.line, one.digest))

    assert facts == [mirrored(one)]
    assert after(*facts) == MirrorState("shop", 1)
    assert (
        mirror_message_id(one.key)
        == mirror_message_id(event_key("e1"))
        != mirror_message_id(event_key("e2"))
    )
    assert len({event_key("\ud800"), event_key(""), event_key("e1")}) == 3


def test_another_order_is_recorded_by_whoever_knows_everything() -> None:
    here = after(mirrored(source("a")), mirrored(source("b")))
    put = (event_key("b"), event_key("a"))

    assert when(here, PactArrange(2, 0, 2, put)) == [Arranged(at=0, drop=2, put=put)]
    assert after(mirrored(source("a")), Arranged(at=0, drop=1)) == MirrorState("shop", 2)
    with pytest.raises(Refused, match="read the stream and try again") as no:
        when(here, PactArrange(1, 0, 2, put))
    assert no.value.reason is Reason.WRONG_STATE


@pytest.mark.parametrize("body", [PactMirror("a" * 32, "{}", ""), PactArrange(0, 0, 0), Elapsed()])
def test_nobody_but_the_server_writes_to_a_mirror(body: Body) -> None:
    with pytest.raises(Refused, match="accord pact") as no:
        when(MirrorState("shop"), body, ANN)
    assert no.value.reason is Reason.FORBIDDEN


def test_time_changes_nothing() -> None:
    assert when(MirrorState("shop"), CONTEXT.tick_body) == []
    assert list(CONTEXT.deadlines(MirrorState("shop"), None)) == []
    assert not CONTEXT.knows_id(MirrorState("shop"), "id", "ann")


# The image


def test_what_is_appended_to_the_file_is_appended_here() -> None:
    made = image("a", "b")

    assert follow(made, ["a", "b", "c"]) == 1
    assert names_in(made) == ["a", "b", "c"]
    assert follow(made, ["a", "b", "c"]) == 0


@proves("OPEN-137")
def test_lines_that_git_puts_between_others_are_between_them_here() -> None:
    made = image("a", "d")

    assert follow(made, ["a", "b", "c", "d"]) == 3
    assert names_in(made) == ["a", "b", "c", "d"]


@proves("OPEN-137")
def test_what_git_takes_away_is_gone_here_and_comes_back_without_being_recorded_again() -> None:
    made = image("a", "b", "c")

    assert made.has_removed(keys_of([source("a"), source("c")]))
    assert follow(made, ["a", "c"]) == 1
    assert names_in(made) == ["a", "c"]
    assert made.unrecorded([source("b")]) == []
    assert not made.has_removed(keys_of([source("b"), source("a"), source("c")]))
    assert follow(made, ["b", "a", "c"]) == 1
    assert names_in(made) == ["b", "a", "c"]


@proves("UNI-11")
def test_of_an_id_that_says_something_else_the_first_counts() -> None:
    made = image("a")

    assert made.unrecorded([source("a", "other words"), source("b"), source("b")]) == [source("b")]
    assert not made.apply(mirrored(source("a", "other words")))
    assert made.current_lines() == ["a "]
    assert made.order == [event_key("a")]


def test_an_image_knows_about_how_much_its_records_take() -> None:
    made = image("a", "b")
    before = made.size_bytes

    assert before > len("a b ")
    assert not made.apply(Arranged(at=0, drop=2, put=(event_key("b"), event_key("a"))))
    assert made.size_bytes > before + 2 * len(event_key("a"))


def test_a_long_way_is_gone_in_steps() -> None:
    names = [f"e{n}" for n in range(MAX_MOVED_EVENTS + 10)]
    made = image(*names)
    turned = names[::-1]

    assert follow(made, turned) == 2
    assert made.order == [event_key(name) for name in turned]


def test_a_place_in_the_order_whose_event_nobody_recorded_is_passed_by() -> None:
    made = image("a")
    made.apply(Arranged(at=1, drop=0, put=("f" * 32,)))

    assert names_in(made) == ["a"]


def test_the_same_order_needs_no_step() -> None:
    assert image("a").next_splice(keys_of([source("a")])) is None
    assert image("a").next_splice([]) == Splice(0, 1, ())
    assert image().next_splice([]) is None


@proves("OPEN-137")
@given(st.lists(st.lists(st.sampled_from("abcdefg"), unique=True, max_size=7), max_size=8))
@settings(deadline=None)
def test_whatever_becomes_of_the_file_the_image_is_the_file_and_each_event_is_there_once(
    files: list[list[str]],
) -> None:
    made = MirrorOrder()
    for names in files:
        follow(made, names)
        assert made.order == [event_key(name) for name in names]
        assert follow(made, names) == 0
    assert set(made.lines) == {event_key(name) for names in files for name in names}
