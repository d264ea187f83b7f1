"""What signatures prove, and what they do not."""

from typing import Any

import pytest

from accord.core.kernel.refusal import Reason
from accord.core.work import verbs
from accord.core.work.format import log_lines
from accord.core.work.signatures import (
    bytes_to_sign,
    find_unproven,
    is_key,
    is_signed_by_reviewer,
    with_signature,
    with_signed_context,
)
from accord.core.work.verbs import ActingSeat
from tests.core.work.story import ANN, BOB, SEATS, assigned, folded, line, log, refused

ONE, TWO = ("A" * 43 + "=", "B" * 42 + "A=")


def signs(key: str, found: dict[str, Any]) -> dict[str, Any]:
    """A stand-in for a key: whoever has the word can sign with it."""
    return with_signature(found, f"{key}:{bytes_to_sign(found)!r}")


def verify(key: str, data: bytes, signature: str) -> bool:
    return signature == f"{key}:{data!r}"


def opening(*keys: str) -> dict[str, Any]:
    seats = [
        {"id": id, "roles": ["worker"], "entry": id, "key": key}
        for id, key in zip((ANN, BOB), keys or (ONE, TWO), strict=True)
    ]
    return signs(ONE, line("init", seats=seats))


def signed(
    *said: tuple[str, dict[str, Any]], init: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """A log in which each event is linked to the one before and signed with the key beside it."""
    lines = [init or opening()]
    for key, found in said:
        before = log(lines[-1]).strip()
        lines.append(signs(key, with_signed_context(found, before, folded(*lines))))
    return lines


def told(*lines: dict[str, Any]) -> list[tuple[int, str]]:
    data = log(*lines)
    numbered = list(enumerate(lines, 1))
    found = find_unproven(folded(*lines), numbered, log_lines.split_lines(data), verify)
    return [(each.line, each.sentence) for each in found]


ASSIGNED = (ONE, assigned(at=1))
SHOWN = (TWO, line("checkpoint", BOB, "T1", evidence="x", at=2))
ACCEPTED = (ONE, line("accept", ANN, "T1", at=3))


def test_what_each_seat_signed_is_proven() -> None:
    lines = signed(ASSIGNED, SHOWN, ACCEPTED)

    assert told(*lines, line("start", BOB, at=4)) == []


def test_what_nobody_or_somebody_else_signed_is_not() -> None:
    lines = signed(ASSIGNED, SHOWN, (ONE, SHOWN[1]))
    changed = lines[2] | {"ts": "2026-01-01T00:00:03Z"}

    assert told(
        *lines[:2],
        SHOWN[1],
        lines[3],
        changed,
        line("join", "eve", at=3),
        line("join", BOB, at=3) | {"payload": []},
        line("join", BOB, at=3) | {"agent_id": 4},
    ) == [
        (3, "bob did not sign this checkpoint"),
        (4, "The signature does not match the key of bob"),
        (5, "The signature does not match the key of bob"),
        (6, "eve has no key in the roster, so nothing proves who wrote this"),
        (7, "bob did not sign this join"),
        (8, "4 has no key in the roster, so nothing proves who wrote this"),
    ]


GONE = "The line before it was removed or changed, or it was signed for another log"


def test_an_event_that_was_taken_out_is_missed_by_the_one_behind_it() -> None:
    asked = (ONE, line("changes_requested", ANN, "T1", reason="more", at=3))
    again = (TWO, line("checkpoint", BOB, "T1", evidence="y", at=4))
    lines = signed(ASSIGNED, SHOWN, asked, again)

    assert told(*lines) == []
    assert told(*lines[:3], *lines[4:]) == [(4, GONE)]


def test_an_event_of_another_log_is_not_of_this_one() -> None:
    """The same seats with the same keys, elsewhere: the very same accept is worth nothing here."""
    there = signed(ASSIGNED, SHOWN, ACCEPTED)
    here = signed(ASSIGNED, SHOWN, init=signs(ONE, opening() | {"event_id": "another"}))

    assert told(*here, there[3]) == [(4, GONE)]


def test_what_does_not_say_what_came_before_may_be_from_anywhere() -> None:
    said = "Its signature does not cover the previous line, so it may come from another log"

    assert told(opening(), signs(ONE, assigned(at=1))) == [(2, said)]
    assert told(opening(), signs(ONE, assigned(at=1) | {"payload": {"after": 3}})) == [(2, said)]


def test_evidence_that_is_changed_under_an_accept_is_found_out() -> None:
    """Its owner can sign it anew, and whatever lines are theirs; but not the accept."""
    elsewhere = (ONE, line("join", ANN, at=2))
    lines = signed(ASSIGNED, SHOWN, elsewhere, ACCEPTED)
    # As after a merge: the accept is behind a line that does not lead to what it accepted.
    lines[3] = signs(ONE, with_signed_context(elsewhere[1], log(lines[1]).strip(), folded()))
    lines[4] = signs(
        ONE, with_signed_context(ACCEPTED[1], log(lines[3]).strip(), folded(*lines[:3]))
    )
    assert told(*lines) == []

    better = line("checkpoint", BOB, "T1", evidence="better", at=2)
    lines[2] = signs(TWO, with_signed_context(better, log(lines[1]).strip(), folded()))

    assert told(*lines) == [(5, "ann accepted other evidence for T1 than the log has")]


def test_two_names_with_one_key_may_be_one() -> None:
    lines = signed(ASSIGNED, (ONE, SHOWN[1]), ACCEPTED, init=opening(ONE, ONE))

    assert told(*lines) == [
        (0, "T1: bob and ann have the same key, so they may be the same person")
    ]


def test_a_key_in_another_spelling_is_none() -> None:
    """Base64 has spare bits: two texts for one key would be two seats for one person."""
    again = ONE[:-2] + "B="
    lines = signed(ASSIGNED, (again, SHOWN[1]), ACCEPTED, init=opening(ONE, again))

    assert not is_key(again)
    assert told(*lines) == [(3, "bob has no key in the roster, so nothing proves who wrote this")]


def test_what_has_no_canonical_form_is_not_signed() -> None:
    assert bytes_to_sign({"payload": {"number": 1 << 70}}) is None
    assert bytes_to_sign({"payload": 3}) is None


@pytest.mark.parametrize("text", ["", "short", "A" * 44, "ä" * 44])
def test_a_key_has_32_bytes(text: str) -> None:
    assert is_key(ONE)
    assert not is_key(text)


def test_keys_are_declared_with_the_seats_and_are_part_of_the_pact() -> None:
    (draft,) = verbs.init(folded(), ActingSeat(ANN), "p", SEATS, "", [f"ann={ONE}"])
    work = folded(line("init", **draft.payload))

    assert [seat.key for seat in work.seats] == [ONE, "", ""]
    assert verbs.init(work, ActingSeat(ANN), "p", SEATS, "", [f"ann={ONE}"]) == []
    assert refused(verbs.init, work, ActingSeat(ANN), "p", SEATS, "")[0] is Reason.WRONG_STATE
    for bad in ([f"eve={ONE}"], ["ann=x"], ["ann"], [f"ann={ONE}", f"bob={ONE}"]):
        assert (
            refused(verbs.init, folded(), ActingSeat(ANN), "p", SEATS, "", bad)[0]
            is Reason.MALFORMED
        )


def test_one_verdict_alone_can_be_looked_at() -> None:
    lines = signed(ASSIGNED, SHOWN, ACCEPTED)
    work = folded(*lines)
    changed = lines[-1] | {"ts": "2026-01-01T00:00:09Z"}

    assert is_signed_by_reviewer(lines[-1], work, verify)
    assert not is_signed_by_reviewer(changed, work, verify)
    assert not is_signed_by_reviewer(signs(TWO, line("accept", ANN, "T1", at=3)), work, verify)


def test_a_verdict_on_other_evidence_or_with_the_owner_s_key_seals_nothing() -> None:
    lines = signed(ASSIGNED, SHOWN, ACCEPTED)
    other = [*lines[:2], signs(TWO, line("checkpoint", BOB, "T1", evidence="y", at=2)), lines[-1]]
    assert not is_signed_by_reviewer(lines[-1], folded(*other), verify)

    one = signed(ASSIGNED, (ONE, SHOWN[1]), ACCEPTED, init=opening(ONE, ONE))
    assert not is_signed_by_reviewer(one[-1], folded(*one), verify)
