"""The tables of the room agree with each other and with the functions they name."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

import pytest

from accord.core.attention import context as attention
from accord.core.dialects.pvp import BODIES, PRIMITIVES
from accord.core.dialects.stored_records import EVENTS
from accord.core.kernel.context import unchanged
from accord.core.kernel.messages import Body
from accord.core.kernel.records import Event, UnknownEvent
from accord.core.people import context
from accord.core.provenance import commit_links
from accord.core.room import DECIDE, EVOLVE, threads
from accord.core.room.approval.gate_timeouts import GateTimeout
from accord.core.room.permission_listing import INTERNAL_BODIES
from accord.core.work import mirror

Row = tuple[type, Callable[..., Any]]


@pytest.mark.parametrize("row", DECIDE.items(), ids=lambda row: row[0].type)
def test_a_decider_takes_the_body_that_its_row_names(row: Row) -> None:
    body, decider = row
    names = list(inspect.signature(decider).parameters)

    assert names == ["room", "command", "body"]
    assert get_type_hints(decider)["body"] is body


@pytest.mark.parametrize("row", EVOLVE.items(), ids=lambda row: row[0].name)
def test_an_evolver_takes_the_event_that_its_row_names(row: Row) -> None:
    event, evolver = row
    names = list(inspect.signature(evolver).parameters)

    assert names[1:] == ["event", "record"]
    assert evolver is unchanged or get_type_hints(evolver)["event"] is event


@pytest.mark.parametrize("body", DECIDE, ids=lambda body: body.type)
def test_a_body_says_that_it_names_others_exactly_when_it_can_cite_them(body: type[Body]) -> None:
    assert body.cites_others is (body.cited_ids is not Body.cited_ids)


def named_events(base: type[Event]) -> Iterator[type[Event]]:
    """The subclasses that have a name; a base class of several events has none."""
    for event in base.__subclasses__():
        if "name" in vars(event):
            yield event
        yield from named_events(event)


def test_every_event_has_its_row_and_a_name_of_its_own() -> None:
    ours = {event for event in named_events(Event) if event.__module__.startswith("accord.")}
    classes = ours - {UnknownEvent}

    others = (context, commit_links, mirror, threads, attention)
    rows = EVOLVE.keys() | {event for each in others for event in each.CONTEXT.evolve}
    assert classes == rows == set(EVENTS.values())
    assert len({event.name for event in classes}) == len(classes)


def test_every_body_on_the_wire_has_its_row_but_those_that_the_server_says_to_itself() -> None:
    inward = {body.type for body in INTERNAL_BODIES}
    assert BODIES.keys() == {body.type for body in DECIDE} - inward | {GateTimeout.type}
    assert BODIES.keys() <= PRIMITIVES
    assert len(BODIES) == len({*DECIDE, GateTimeout} - INTERNAL_BODIES)
