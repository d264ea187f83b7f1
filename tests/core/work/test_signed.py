"""What signatures prove, and what they do not."""

import pytest

from accord.core.kernel.refusal import Why
from accord.core.work import verbs
from accord.core.work.signed import is_key, signed_bytes, unproven, with_signature
from accord.core.work.verbs import Caller
from tests.core.work.story import ANN, BOB, SEATS, assigned, folded, line, refused

ONE, TWO = ("A" * 43 + "=", "B" * 42 + "A=")


def signs(key: str, found: dict[str, object]) -> dict[str, object]:
    """A stand-in for a key: whoever has the word can sign with it."""
    return with_signature(found, f"{key}:{signed_bytes(found)!r}")


def verify(key: str, data: bytes, signature: str) -> bool:
    return signature == f"{key}:{data!r}"


def told(*lines: dict[str, object], keys: tuple[str, str] = (ONE, TWO)) -> list[tuple[int, str]]:
    seats = [
        {"id": id, "roles": ["worker"], "entry": id, "key": key}
        for id, key in zip((ANN, BOB), keys, strict=True)
    ]
    init = signs(ONE, line("init", seats=seats))
    numbered = list(enumerate((init, *lines), 1))
    work = folded(init, *lines)
    return [(found.line, found.sentence) for found in unproven(work, numbered, verify)]


def test_what_each_seat_signed_is_proven() -> None:
    shown = line("checkpoint", BOB, "T1", evidence="x", at=2)

    assert told(signs(ONE, assigned(at=1)), signs(TWO, shown), line("start", BOB, at=3)) == []


def test_what_nobody_or_somebody_else_signed_is_not() -> None:
    shown = line("checkpoint", BOB, "T1", evidence="x", at=2)
    changed = signs(TWO, shown) | {"ts": "2026-01-01T00:00:03Z"}

    assert told(
        signs(ONE, assigned(at=1)),
        shown,
        signs(ONE, shown),
        changed,
        line("join", "eve", at=3),
        line("join", BOB, at=3) | {"payload": []},
        line("join", BOB, at=3) | {"agent_id": 4},
    ) == [
        (3, "bob did not sign this checkpoint"),
        (4, "This is not signed by the key of bob"),
        (5, "This is not signed by the key of bob"),
        (6, "eve has no key in the roster; nothing proves who this was"),
        (7, "bob did not sign this join"),
        (8, "4 has no key in the roster; nothing proves who this was"),
    ]


def test_two_names_with_one_key_may_be_one() -> None:
    lines = [
        signs(ONE, assigned(at=1)),
        signs(ONE, line("checkpoint", BOB, "T1", evidence="x", at=2)),
        signs(ONE, line("accept", ANN, "T1", at=3)),
    ]

    assert told(*lines, keys=(ONE, ONE)) == [
        (0, "T1: bob and ann have one key, so they may be one")
    ]


def test_what_has_no_canonical_form_is_not_signed() -> None:
    assert signed_bytes({"payload": {"number": 1 << 70}}) is None
    assert signed_bytes({"payload": 3}) is None


@pytest.mark.parametrize("text", ["", "short", "A" * 44, "ä" * 44])
def test_a_key_has_32_bytes(text: str) -> None:
    assert is_key(ONE)
    assert not is_key(text)


def test_keys_are_declared_with_the_seats_and_are_part_of_the_pact() -> None:
    (draft,) = verbs.init(folded(), Caller(ANN), "p", SEATS, "", [f"ann={ONE}"])
    work = folded(line("init", **draft.payload))

    assert [seat.key for seat in work.seats] == [ONE, "", ""]
    assert verbs.init(work, Caller(ANN), "p", SEATS, "", [f"ann={ONE}"]) == []
    assert refused(verbs.init, work, Caller(ANN), "p", SEATS, "")[0] is Why.WRONG_STATE
    for bad in ([f"eve={ONE}"], ["ann=x"], ["ann"], [f"ann={ONE}", f"bob={ONE}"]):
        assert refused(verbs.init, folded(), Caller(ANN), "p", SEATS, "", bad)[0] is Why.MALFORMED
