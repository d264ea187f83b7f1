"""Pieces of an answer that are read together: the same messages as when they are read alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.dialects import pvp
from accord.core.kernel.messages import ChunkBatch
from accord.core.kernel.refusal import Refused
from accord.transports.rate_limit import CHUNK_TYPES
from tests.core.dialects.envelopes import wire

DEEP = "[" * 5000 + "]" * 5000
# What one piece among others may have different: each is taken alone, or changes nothing.
ODD: dict[str, dict[str, Any]] = {
    "another session": {"session": "elsewhere"},
    "another sender": {"sender": "mallory"},
    "another answer": {"ref": "s9"},
    "no answer": {"ref": None},
    "a fork": {"fork": "aside"},
    "a cause": {"causal_refs": ["c"]},
    "another version": {"v": 2},
    "a version that is no number": {"v": "1"},
    "no time": {"ts": "yesterday"},
    "an id with a line": {"id": "a\nb"},
    "an id that is not seen": {"id": "\u200b"},
    "an id of another script": {"id": "é"},
    "an empty id": {"id": ""},
    "an id too long": {"id": "x" * 129},
    "a number for words": {"payload": {"text": 1}},
    "no words": {"payload": {}},
    "more than words": {"payload": {"text": "t", "deep": {"er": [1, 2]}}},
    "half a letter": {"payload": {"text": "\ud800"}},
    "a field more": {"seq": 7},
}
KINDS = sorted(name for name, body in pvp.BODIES.items() if body.is_chunk)


def chunk(number: int, kind: str = "response.chunk", **fields: Any) -> bytes:
    known: dict[str, Any] = {"id": f"c{number}", "ref": "s", "payload": {"text": f"w{number}"}}
    return wire(kind, **known | fields)


def alone(frames: list[bytes], most: int = pvp.MAX_MESSAGE_BYTES) -> list[Any]:
    return [pvp.decode(each, most) for each in frames]


def together(frames: list[bytes], most: int = pvp.MAX_MESSAGE_BYTES) -> list[Any]:
    pieces = pvp.decode_chunks(frames, most)
    assert pieces is not None
    return list(pieces.messages())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 2, 100])
def test_pieces_are_read_as_they_are_alone(kind: str, count: int) -> None:
    frames = [chunk(number, kind) for number in range(count)]

    assert together(frames) == alone(frames)


def test_pieces_may_say_anything_in_any_script() -> None:
    words = ("", "ü\n", "𝄞", "\0")
    escaped = [chunk(n, payload={"text": text}) for n, text in enumerate(words)]
    as_it_is = [chunk(n, payload={"text": "?"}).replace(b"?", "é".encode()) for n in range(3)]

    assert together(escaped) == alone(escaped)
    assert together(as_it_is) == alone(as_it_is)


def test_a_letter_that_is_cut_in_half_is_found_wherever_it_is() -> None:
    bad = chunk(1, note="?").replace(b"?", b"\xc3")  # in what nobody reads
    assert pvp.decode_chunks([chunk(0), bad]) is None
    assert pvp.decode_chunks([bad, chunk(0)]) is None


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_that_is_not_like_the_others_is_not_taken_for_one(odd: str, place: int) -> None:
    frames = [chunk(number) for number in range(3)]
    frames[place] = chunk(place, **ODD[odd])

    pieces = pvp.decode_chunks(frames)

    if pieces is None:
        return
    assert list(pieces.messages()) == alone(frames)


@pytest.mark.parametrize("odd", sorted(set(ODD) - {"more than words", "a field more"}))
def test_fast_path_leaves_unusual_chunks_to_the_decoder(odd: str) -> None:
    assert pvp.decode_chunks([chunk(0), chunk(1, **ODD[odd])]) is None


def test_all_of_them_may_not_be_of_another_version() -> None:
    assert pvp.decode_chunks([chunk(number, v=2) for number in range(2)]) is None


def test_all_of_them_may_be_in_a_fork_or_have_a_cause() -> None:
    frames = [chunk(number, fork="aside", causal_refs=["c"]) for number in range(2)]
    assert together(frames) == alone(frames)


@pytest.mark.parametrize(
    "frame",
    [b"", b"{", b"null", b"[]", b"{}", b"\xff", wire("prompt.submit"), chunk(1)[:-1], chunk(1) * 2],
)
def test_fast_path_leaves_other_messages_to_the_decoder(frame: bytes) -> None:
    assert pvp.decode_chunks([frame, chunk(0)]) is None
    assert pvp.decode_chunks([chunk(0), frame]) is None


def test_fast_path_keeps_the_limit_on_depth() -> None:
    deep = chunk(1).replace(b'"v"', f'"deep": {DEEP}, "v"'.encode())
    assert pvp.decode_chunks([deep, chunk(0)]) is None
    assert pvp.decode_chunks([chunk(0), deep]) is None


def test_fast_path_keeps_the_limit_on_size() -> None:
    frames = [chunk(0), chunk(1, payload={"text": "x" * 100})]
    most = len(frames[1])

    assert together(frames, most) == alone(frames, most)
    assert pvp.decode_chunks(frames, most - 1) is None


def test_what_flows_is_counted_by_its_bytes_alone() -> None:
    """Whoever takes pieces together pays for them by their bytes."""
    assert set(KINDS) <= CHUNK_TYPES


def test_one_message_is_a_piece_of_itself() -> None:
    message = pvp.decode(chunk(1, fork="aside", causal_refs=["c"]))
    pieces = ChunkBatch(message, [message.id], [message.ts], [message.body])
    assert list(pieces.messages()) == [message]


values: st.SearchStrategy[dict[str, Any]] = st.sampled_from([*ODD.values(), {}, {}])
bytes_put_in = st.tuples(st.integers(0, 400), st.sampled_from([b"", b"}", b"{", b'"', b",", b"\n"]))


@given(st.lists(st.tuples(values, bytes_put_in), min_size=2, max_size=6))
def test_whatever_comes_is_read_as_it_is_alone_or_not_at_all(drawn: list[Any]) -> None:
    frames = []
    for number, (fields, (place, more)) in enumerate(drawn):
        whole = chunk(number, **fields)
        frames.append(whole[:place] + more + whole[place:])

    pieces = pvp.decode_chunks(frames)

    if pieces is not None:
        assert list(pieces.messages()) == alone(frames)
        return
    try:
        messages = alone(frames)
    except Refused:
        return
    same = {(m.room, m.sender, m.ref, m.causal_refs, m.fork) for m in messages}
    ids = "".join(message.id for message in messages)
    assert len(same) > 1 or not ids.isascii()
