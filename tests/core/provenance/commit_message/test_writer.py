"""A commit message, written."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from accord.core.kernel.refusal import Refused
from accord.core.provenance.commit_message.lint import lint
from accord.core.provenance.commit_message.parser import BodyAlternative, parse_message
from accord.core.provenance.commit_message.trailers import (
    FULL,
    LINK,
    MAX_LINE_WIDTH,
    SHORT,
    Trailer,
    split_trailer,
    trailer_line,
    trailers_from_context,
)
from accord.core.provenance.commit_message.writer import (
    MessageDraft,
    wrap_text,
    write_header,
    write_message,
)
from accord.core.provenance.decision_commit import trailer_context
from tests.core.provenance.decision_samples import DECISION
from tests.core.provenance.message_samples import DRAFTS, NAMES
from tests.spec import proves


@proves("GIT-PRINC-1", "GIT-PRINC-2", "GIT-PRINC-4", "GIT-BODY-4")
def test_writer_makes_the_whole_message_as_shown() -> None:
    draft = MessageDraft(
        type="feat",
        scope="auth",
        description="implement JWT validation",
        ref="msg-01HX7K9P",
        rationale="Validate tokens early.\n\n" + "Long words wrap at the edge. " * 4,
        alternatives=(BodyAlternative("Cookies", "no good for WebSockets"),),
        confidence=0.9,
        discussion="The team agreed.",
        trailers=trailers_from_context(trailer_context(DECISION)),
    )

    assert write_message(draft) == (
        "feat(auth): implement JWT validation [pvp:msg-01HX7K9P]\n"
        "\n"
        "Validate tokens early.\n"
        "\n"
        "Long words wrap at the edge. Long words wrap at the edge. Long words\n"
        "wrap at the edge. Long words wrap at the edge.\n"
        "\n"
        "Alternatives considered:\n"
        "- Cookies: no good for WebSockets\n"
        "\n"
        "Confidence: high (0.90)\n"
        "\n"
        "Discussion context:\n"
        "The team agreed.\n"
        "\n"
        "PVP-Session: 01HX7K9P4QZCVD3N8MYW6R5T2B\n"
        "PVP-Messages: msg-01,msg-12\n"
        "PVP-Decision: dec_01HX7K9P4QZCVD3N8MYW6R5T2B\n"
        "PVP-Decision-Type: correction\n"
        "PVP-Confidence: 0.90\n"
        "Decision-By: ai:claude,human:alice\n"
        "Approved-By: human:alice,human:bob\n"
    )
    assert lint(write_message(draft)) == []


@proves("GIT-HEADER-1", "OPEN-65", "GIT-PRINC-2")
@given(DRAFTS)
def test_written_message_is_parsed_to_the_same_parts(draft: MessageDraft) -> None:
    text = write_message(draft)
    message = parse_message(text)
    found = message.sections

    assert [each[:2] for each in message.trailers] == [each[:2] for each in draft.trailers]
    assert len(message.header.text) <= MAX_LINE_WIDTH
    assert (message.header.type, message.header.scope) == (draft.type, draft.scope)
    assert message.header.breaking is draft.breaking
    assert message.header.ref in (draft.ref, None)
    assert found.rationale.split() == draft.rationale.split()
    assert found.alternatives == draft.alternatives
    assert (found.confidence and found.confidence.score) == draft.confidence
    assert found.discussion.split() == draft.discussion.split()


@proves("GIT-BODY-4")
@given(DRAFTS)
def test_lines_are_no_wider_than_they_may_be(draft: MessageDraft) -> None:
    lines = parse_message(write_message(draft)).body.split("\n")

    assert all(len(line) <= MAX_LINE_WIDTH for line in lines)


@proves("OPEN-65")
def test_a_header_that_is_too_long_loses_its_reference_then_words() -> None:
    fits = MessageDraft("feat", "x" * 47, ref="msg-01HX7K9P")
    drops = MessageDraft("feat", "x" * 60, ref="msg-01HX7K9P")
    trims = MessageDraft("feat", "word " * 20, ref="msg-01HX7K9P")
    cuts = MessageDraft("feat", "x" * 100)

    assert write_header(fits).endswith("[pvp:msg-01HX7K9P]")
    assert write_header(drops) == "feat: " + "x" * 60
    assert write_header(trims) == "feat: " + "word " * 12 + "word…"
    assert write_header(cuts) == "feat: " + "x" * 65 + "…"
    assert write_header(MessageDraft("feat", "do it", scope="s" * 90)) == "feat: do it"


@proves("OPEN-72")
@pytest.mark.parametrize(
    "draft",
    [
        MessageDraft("feat: x\n\nApproved-By", "y"),
        MessageDraft("feat", " \n\t"),
        MessageDraft("feat", "x", ref="a] b"),
        MessageDraft("feat", "x", ref=""),
        MessageDraft("feat", "x", trailers=(Trailer("Key", "a\nApproved-By: human:boss"),)),
        MessageDraft("feat", "x", trailers=(Trailer("Key", " "),)),
        MessageDraft("feat", "x", trailers=(Trailer("a key", "x"),)),
        MessageDraft("feat", "x", trailers=(Trailer("", "x"),)),
    ],
)
def test_what_could_forge_a_line_is_refused(draft: MessageDraft) -> None:
    with pytest.raises(Refused):
        write_message(draft)


@proves("OPEN-72")
def test_a_description_stays_on_its_line() -> None:
    text = write_message(
        MessageDraft("feat", "x\n\nApproved-By: human:boss\x1b[2J", scope="a)b(c\n")
    )

    assert text == "feat(a b c): x Approved-By: human:boss [2J\n"


@proves("OPEN-72")
@given(NAMES, NAMES, NAMES)
def test_no_name_forges_a_trailer(session: str, name: str, tool: str) -> None:
    told = {
        "session": session,
        "messages": [name, tool],
        "tools": [tool],
        "decision_by": [f"human:{name}"],
    }
    assume(name.strip() == name and "%" not in name and not (name + tool).isdecimal())

    message = parse_message(
        write_message(MessageDraft("feat", "x", trailers=trailers_from_context(told, style=FULL)))
    )

    assert message.session_id == session
    assert message.tools == (tool,)
    assert message.message_ids == tuple(dict.fromkeys([name, tool]))
    assert [each.identifier for each in message.decided_by] == [name]
    assert message.approved_by == ()


@proves("OPEN-71")
@given(st.text())
def test_no_body_forges_a_trailer(body: str) -> None:
    text = write_message(MessageDraft("feat", "x", rationale=body, trailers=(Trailer("Key", "x"),)))

    assert [each[:2] for each in parse_message(text).trailers] == [("Key", "x")]


def test_what_git_would_take_for_a_comment_or_the_end_is_indented() -> None:
    assert wrap_text("# title\n---\n--- x\n---x\n\n\n\nend\tx\x07") == (
        " # title\n ---\n --- x\n---x\n\nend x"
    )


def test_lists_and_code_keep_their_lines() -> None:
    long = "word " * 20

    assert wrap_text(f"- {long}").split("\n")[1].startswith("  word")
    assert wrap_text(f"x\n    {long}") == f"x\n    {long.rstrip()}"


@proves("GIT-HOOK-PCM-3", "OPEN-60")
@pytest.mark.parametrize(
    "told",
    [
        {},
        {"session": "", "messages": [], "confidence": None, "decision_by": []},
        {"session": 3, "messages": "x", "confidence": "0.9", "decision_by": ["nobody"]},
        {"confidence": True, "decision_type": "whim", "tools": [1]},
        {"confidence": 1.2},
        {"confidence": float("nan")},
    ],
)
def test_what_is_unknown_is_not_written(told: dict[str, object]) -> None:
    assert trailers_from_context(told, aliases=True) == ()


@proves("OPEN-61", "PVP-18.3-1")
def test_the_other_seeds_words_are_written_on_request() -> None:
    keys = [each.key for each in trailers_from_context(trailer_context(DECISION), aliases=True)]
    plain = trailers_from_context(trailer_context(DECISION))
    extra = [
        each
        for each in trailers_from_context(trailer_context(DECISION), aliases=True)
        if each not in plain
    ]

    assert [str(each) for each in extra] == ["PVP-Type: bugfix", "PVP-Approvers: alice,bob"]
    assert len(keys) == len(set(keys))
    exact = trailers_from_context({"decision_type": "refactor"}, aliases=True)
    assert [str(each) for each in exact] == [
        "PVP-Decision-Type: implementation",
        "PVP-Type: refactor",
    ]


@proves("GIT-MAP-3")
def test_a_chain_shows_its_two_ends_or_all_of_it() -> None:
    ids = [f"m{n}" for n in range(500)]
    context = {"messages": ids, "ends": ["m0", "m400"]}

    short = trailers_from_context(context)
    full = parse_message(
        write_message(
            MessageDraft("feat", "x", trailers=trailers_from_context(context, style=FULL))
        )
    )
    named = trailers_from_context(context, named={"messages"})

    assert [str(each) for each in short] == ["PVP-Messages: m0,m400"]
    assert full.message_ids == tuple(ids)
    assert named == trailers_from_context(context, style=FULL)


STYLE_CONTEXT = {
    "session": "s1",
    "decision": "dec_1",
    "messages": ["m1", "m2", "m3"],
    "ends": ["m1", "m3"],
    "fork": "f1",
    "confidence": 0.5,
    "decision_type": "refactor",
    "decision_by": ["human:alice", "ai:claude"],
    "reviewed_by": ["human:carol"],
    "approved_by": ["human:bob"],
    "assisted_by": ["claude:opus 4", "linter"],
    "tools": ["shell"],
}


@pytest.mark.parametrize(
    ("style", "expected"),
    [
        (
            SHORT,
            (
                "PVP-Session: s1|PVP-Messages: m1,m3|PVP-Decision: dec_1"
                "|PVP-Decision-Type: implementation|PVP-Fork: f1|PVP-Confidence: 0.50"
                "|Decision-By: human:alice,ai:claude|Reviewed-By: human:carol"
                "|Approved-By: human:bob|Assisted-by: claude:opus%204,linter"
            ),
        ),
        (
            FULL,
            (
                "PVP-Session: s1|PVP-Messages: m1,m2,m3|PVP-Decision: dec_1"
                "|PVP-Decision-Type: implementation|PVP-Type: refactor|PVP-Fork: f1"
                "|PVP-Confidence: 0.50|PVP-Tools: shell|Decision-By: human:alice,ai:claude"
                "|Reviewed-By: human:carol|Approved-By: human:bob|PVP-Approvers: bob"
                "|Assisted-by: claude:opus%204,linter"
            ),
        ),
        (LINK, "PVP-Session: s1|PVP-Decision: dec_1|Decision-By: human:alice,ai:claude"),
    ],
)
def test_each_style_writes_its_trailers(style: str, expected: str) -> None:
    trailers = trailers_from_context(STYLE_CONTEXT, style=style)

    assert "|".join(map(str, trailers)) == expected


def test_an_unknown_style_is_short_and_what_the_environment_names_is_written_in_every_style() -> (
    None
):
    unknown = trailers_from_context(STYLE_CONTEXT, style="tiny")
    linked = trailers_from_context(
        STYLE_CONTEXT, style=LINK, named={"fork", "messages", "decision_type"}
    )

    assert unknown == trailers_from_context(STYLE_CONTEXT)
    assert "|".join(map(str, linked)) == (
        "PVP-Session: s1|PVP-Messages: m1,m2,m3|PVP-Decision: dec_1"
        "|PVP-Decision-Type: implementation|PVP-Type: refactor|PVP-Fork: f1"
        "|Decision-By: human:alice,ai:claude"
    )


def test_a_key_repeats_where_a_line_would_be_too_long_and_one_long_value_is_folded() -> None:
    people = [f"human:{'p' * 20}{number}" for number in range(4)]
    long = f"human:{'x' * 80}"

    repeated = [str(each) for each in split_trailer("Decision-By", people)]
    folded = trailer_line(Trailer("Decision-By", long))
    text = write_message(
        MessageDraft("feat", "x", trailers=tuple(split_trailer("Decision-By", [*people, long])))
    )

    assert repeated == [
        f"Decision-By: {people[0]},{people[1]}",
        f"Decision-By: {people[2]},{people[3]}",
    ]
    assert all(len(line) <= MAX_LINE_WIDTH for line in repeated)
    assert folded == f"Decision-By:\n {long}"
    assert [str(each) for each in parse_message(text).decided_by] == [*people, long]
    assert list(split_trailer("Decision-By", [])) == []
