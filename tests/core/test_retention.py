"""The pure part of retention: what a cut claims, what remains of a room, and who notices a gap."""

from dataclasses import dataclass
from typing import cast

import msgspec
import pytest
from hypothesis import given as having
from hypothesis import strategies as st
from msgspec.structs import replace

from accord.core.kernel.integrity.retention_cut import RetentionCut
from accord.core.kernel.records import Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Role
from accord.core.room.session_lifecycle import without_history
from accord.core.views.retention_gap import ensure_no_gap
from tests.helpers.room.scenario import (
    ALICE,
    CLAUDE,
    after,
    create_step,
    given,
    join_step,
    prompt_submit,
    script_step,
    session_end,
    when,
)

cuts = st.builds(
    RetentionCut,
    stream=st.text(),
    version=st.integers(1, 2**62),
    hash=st.binary(max_size=32),
    at=st.integers(0, 2**53),
    by=st.text(),
    reason=st.text(),
    state=st.binary(max_size=8),
    key=st.text(),
    signature=st.just(b""),
)


@having(one=cuts, other=cuts)
def test_two_cuts_that_differ_are_never_signed_with_the_same_bytes(
    one: RetentionCut, other: RetentionCut
) -> None:
    assert (one.signed_bytes() == other.signed_bytes()) == (one == other)


@having(cut=cuts)
def test_a_signature_is_not_part_of_what_it_signs(cut: RetentionCut) -> None:
    assert replace(cut, signature=b"mine").signed_bytes() == cut.signed_bytes()
    assert cut.signed_bytes().startswith(b"accord-cut-v1\n")


def test_what_remains_of_a_room_is_who_was_there_and_it_can_still_end() -> None:
    room = given(
        create_step(by=ALICE), join_step(CLAUDE, Role.DRIVER), script_step(ALICE, prompt_submit())
    )
    kept = without_history(room)

    assert (kept.members, kept.created_by, kept.config) == (
        room.members,
        room.created_by,
        room.config,
    )
    assert b"content" not in msgspec.json.encode(kept)
    over = after(kept, when(kept, ALICE, session_end()))
    assert over.ended == "completed"


@dataclass
class Placed:
    version: int
    seq: int


@pytest.mark.parametrize(
    ("version", "seq", "reached", "heard"),
    [(1, 1, 0, 0), (5, 3, 4, 2), (17, 14, 13, 13), (9, 4, 5, 5), (6, 0, 5, 5)],
    ids=["first", "next", "number follows", "heard before", "silent and next"],
)
def test_a_reader_that_missed_nothing_reads_on(
    version: int, seq: int, reached: int, heard: int
) -> None:
    ensure_no_gap("s", cast("Record", Placed(version, seq)), reached, heard)


@pytest.mark.parametrize(
    ("version", "seq", "reached", "heard", "where"),
    [(17, 14, 0, 0, 13), (17, 0, 3, 3, 16)],
    ids=["heard", "silent"],
)
def test_a_reader_that_missed_something_is_told_where_to_go_on(
    version: int, seq: int, reached: int, heard: int, where: int
) -> None:
    with pytest.raises(Refused, match="removed by retention") as no:
        ensure_no_gap("s", cast("Record", Placed(version, seq)), reached, heard)

    assert no.value.reason is Reason.REMOVED
    assert no.value.details == {"after": where}
