"""The tables of the room agree with each other and with the functions they name."""

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest

from accord.core import people
from accord.core.dialects.canonical import EVENTS
from accord.core.dialects.pvp import BODIES, PRIMITIVES
from accord.core.kernel.log import Body, Event, Unknown, stay
from accord.core.provenance import commits
from accord.core.room import DECIDE, EVOLVE
from accord.core.room.permissions import INWARD
from accord.core.room.timeouts import GateTimeout
from accord.core.work import mirror

Row = tuple[type, Callable[..., Any]]


@pytest.mark.parametrize("row", DECIDE.items(), ids=lambda row: row[0].type)
def test_a_decider_takes_the_body_that_its_row_names(row: Row) -> None:
    body, decider = row
    names = list(inspect.signature(decider).parameters)

    assert names == ["room", "ask", "body"]
    assert get_type_hints(decider)["body"] is body


@pytest.mark.parametrize("row", EVOLVE.items(), ids=lambda row: row[0].name)
def test_an_evolver_takes_the_event_that_its_row_names(row: Row) -> None:
    event, evolver = row
    names = list(inspect.signature(evolver).parameters)

    assert names[1:] == ["event", "record"]
    assert evolver is stay or get_type_hints(evolver)["event"] is event


@pytest.mark.parametrize("body", DECIDE, ids=lambda body: body.type)
def test_a_body_says_that_it_names_others_exactly_when_it_can_cite_them(body: type[Body]) -> None:
    assert body.names_others is (body.cites is not Body.cites)


def test_every_event_has_its_row_and_a_name_of_its_own() -> None:
    ours = {event for event in Event.__subclasses__() if event.__module__.startswith("accord.")}
    classes = ours - {Unknown}

    rows = EVOLVE.keys() | people.EVOLVE.keys() | commits.EVOLVE.keys() | mirror.EVOLVE.keys()
    assert classes == rows == set(EVENTS.values())
    assert len({event.name for event in classes}) == len(classes)


def test_every_body_on_the_wire_has_its_row_but_those_that_the_server_says_to_itself() -> None:
    inward = {body.type for body in INWARD}
    assert BODIES.keys() == {body.type for body in DECIDE} - inward | {GateTimeout.type}
    assert BODIES.keys() <= PRIMITIVES
    assert len(BODIES) == len({*DECIDE, GateTimeout} - INWARD)
