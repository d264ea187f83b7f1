"""Participants and ids in trailers."""

import pytest
from hypothesis import given

from accord.core.kernel.refusal import Refused
from accord.core.provenance.commit_message.trailer_values import (
    Participant,
    ParticipantList,
    decode_name,
    encode_name,
    parse_participant,
    parse_participants,
    participant_for,
)
from tests.core.provenance.message_samples import NAMES
from tests.spec import proves


@proves("GIT-PART-1", "GIT-PARSE-2")
@pytest.mark.parametrize("text", ["human:alice", "ai:claude", "agent:code-reviewer"])
def test_a_participant_is_written_as_it_is_read(text: str) -> None:
    found = parse_participant(text)

    assert found is not None
    assert str(found) == text


@proves("UNI-4", "OPEN-64")
def test_only_agents_that_declare_a_model_are_ai_and_readers_take_both_as_agents() -> None:
    alice = participant_for("alice", human=True, model=True)
    claude = participant_for("claude", human=False, model=True)
    script = participant_for("script", human=False)

    assert [str(each) for each in (alice, claude, script)] == [
        "human:alice",
        "ai:claude",
        "agent:script",
    ]
    assert [each.is_agent for each in (alice, claude, script)] == [False, True, True]


@pytest.mark.parametrize(
    "text", ["alice", "robot:x", "human:", "human: ", ":x", "Human:alice", "", "human:a\x1bb"]
)
def test_what_has_no_known_kind_and_name_is_no_participant(text: str) -> None:
    assert parse_participant(text) is None


@proves("OPEN-72")
@given(NAMES)
def test_any_name_survives_and_cannot_leave_its_place(name: str) -> None:
    text = encode_name(name)

    assert decode_name(text) == name
    assert text.isascii()
    assert not set(text) & set(", :\n\r<>[]")
    assert parse_participant(f"human:{text}") == Participant("human", name)


@proves("OPEN-72")
@pytest.mark.parametrize(
    "name", ["a\nApproved-By: human:boss", "a\r", "\0", "\x1b[2J", "\u2028", ""]
)
def test_control_characters_are_refused(name: str) -> None:
    with pytest.raises(Refused):
        encode_name(name)


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(Refused, match="Unicode"):
        encode_name("\ud800")


@proves("OPEN-72")
@pytest.mark.parametrize("text", ["a%0AApproved-By", "%FF", "%1b[2J", "100%", "%zz"])
def test_what_would_hide_control_characters_stays_as_it_is_written(text: str) -> None:
    assert decode_name(text) == text


@proves("OPEN-71")
@pytest.mark.parametrize(
    ("value", "people", "raw"),
    [
        ("human:a, ai:b", ("human:a", "ai:b"), ()),
        ("human:a,,Jane <j@x>", ("human:a",), ("Jane <j@x>",)),
        ("Doe, Jane <j@x>", (), ("Doe, Jane <j@x>",)),
        ("", (), ()),
    ],
)
def test_what_is_no_participant_is_kept_raw(
    value: str, people: tuple[str, ...], raw: tuple[str, ...]
) -> None:
    found = parse_participants(value)

    assert found == ParticipantList(tuple(filter(None, map(parse_participant, people))), raw)
