"""`[pvp:<ref>]`."""

import pytest

from accord.core.provenance.commit_message import trailer_values
from accord.core.provenance.commit_message.trailer_values import (
    PvpRef,
    matching_ids,
    parse_ref,
    shortest_ref,
)
from tests.spec import proves

IDS = ("01HX7K9PAAAA", "01HX7K9PBBBB", "msg-42", "ses_01HX7K9PAAAA", "dec_01HX7K9Z0000", "auth")


@proves("OPEN-73", "GIT-HEADER-5")
@pytest.mark.parametrize(
    ("text", "ref"),
    [
        ("msg-01HX7K9P", PvpRef("message", "01HX7K9P", "msg-01HX7K9P")),
        ("fork-abc", PvpRef("fork", "abc", "fork-abc")),
        ("ses-1", PvpRef("session", "1", "ses-1")),
        ("session-1", PvpRef("session", "1", "session-1")),
        ("dec-1", PvpRef("decision", "1", "dec-1")),
        ("see the chat", PvpRef(None, "see the chat", "see the chat")),
        ("msg-", PvpRef(None, "msg-", "msg-")),
        ("what-ever", PvpRef(None, "what-ever", "what-ever")),
    ],
)
def test_a_reference_tells_what_it_points_at(text: str, ref: PvpRef) -> None:
    assert parse_ref(text) == ref


@proves("OPEN-73")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("msg-01HX7K9PA", ("01HX7K9PAAAA", "ses_01HX7K9PAAAA")),
        ("msg-01HX7K9P", ("01HX7K9PAAAA", "01HX7K9PBBBB", "ses_01HX7K9PAAAA")),
        ("msg-01HX7K9", ()),
        ("msg-42", ("msg-42",)),
        ("fork-auth", ("auth",)),
        ("dec-01HX7K9Z", ("dec_01HX7K9Z0000",)),
        ("auth", ("auth",)),
        ("msg-nothing-like-it", ()),
    ],
)
def test_a_beginning_of_eight_characters_finds_and_an_ambiguous_one_lists(
    text: str, found: tuple[str, ...]
) -> None:
    assert matching_ids(parse_ref(text), IDS) == found


@proves("OPEN-73", "GIT-HEADER-6")
def test_the_shortest_reference_means_one_thing() -> None:
    others = ("01HX7K9PAAAA", "01HX7K9PAABB")

    assert shortest_ref("msg", "01HX7K9PAAAA") == "msg-01HX7K9P"
    assert shortest_ref("msg", "01HX7K9PAAAA", others) == "msg-01HX7K9PAAA"
    assert shortest_ref("dec", "dec_01HX7K9Z0000") == "dec-01HX7K9Z"
    assert shortest_ref("msg", "twin0000", ("twin00001",)) == "msg-twin0000"
    assert shortest_ref("fork", "abc") == "fork-abc"
    assert matching_ids(parse_ref(shortest_ref("msg", "01HX7K9PAAAA", others)), others) == (
        "01HX7K9PAAAA",
    )


@proves("OPEN-77", "UNI-20")
def test_a_fork_and_its_branch_find_each_other() -> None:
    forks = ("try-oauth", "fork x/1", "ä")

    assert [trailer_values.branch_of(each) for each in forks] == [
        "pvp/try-oauth",
        "pvp/fork_20_x_2f_1",
        "pvp/_e4_",
    ]
    assert [
        trailer_values.fork_of(trailer_values.branch_of(each), forks) for each in forks
    ] == list(forks)
    assert trailer_values.fork_of("main", forks) is None
    assert trailer_values.fork_of("try-oauth", forks) is None
