"""A commit message, written."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from accord.core.kernel.refusal import Refused
from accord.core.provenance.build import WIDEST, Draft, build, header, trailers_of, wrapped
from accord.core.provenance.check import check
from accord.core.provenance.decision import context
from accord.core.provenance.message import Alternative, parse
from accord.core.provenance.trailers import Trailer
from tests.core.provenance.messages import DRAFTS, NAMES
from tests.core.provenance.samples import DECISION
from tests.spec import proves


@proves("GIT-PRINC-1", "GIT-PRINC-2", "GIT-PRINC-4", "GIT-BODY-4")
def test_a_whole_message() -> None:
    draft = Draft(
        type="feat",
        scope="auth",
        description="implement JWT validation",
        ref="msg-01HX7K9P",
        rationale="Validate tokens early.\n\n" + "Long words wrap at the edge. " * 4,
        alternatives=(Alternative("Cookies", "no good for WebSockets"),),
        confidence=0.9,
        discussion="The team agreed.",
        trailers=trailers_of(context(DECISION)),
    )

    assert build(draft) == (
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
        "PVP-Decision: dec_01HX7K9P4QZCVD3N8MYW6R5T2B\n"
        "PVP-Messages: msg-01,msg-05,msg-12\n"
        "PVP-Confidence: 0.90\n"
        "PVP-Decision-Type: correction\n"
        "PVP-Tools: write_file\n"
        "Decision-By: ai:claude,human:alice\n"
        "Approved-By: human:alice,human:bob\n"
    )
    assert check(build(draft)) == []


@proves("GIT-HEADER-1", "OPEN-65", "GIT-PRINC-2")
@given(DRAFTS)
def test_what_is_written_is_read(draft: Draft) -> None:
    text = build(draft)
    message = parse(text)
    found = message.sections

    assert [each[:2] for each in message.trailers] == [each[:2] for each in draft.trailers]
    assert len(message.header.text) <= WIDEST
    assert (message.header.type, message.header.scope) == (draft.type, draft.scope)
    assert message.header.breaking is draft.breaking
    assert message.header.ref in (draft.ref, None)
    assert found.rationale.split() == draft.rationale.split()
    assert found.alternatives == draft.alternatives
    assert (found.confidence and found.confidence.score) == draft.confidence
    assert found.discussion.split() == draft.discussion.split()


@proves("GIT-BODY-4")
@given(DRAFTS)
def test_lines_are_no_wider_than_they_may_be(draft: Draft) -> None:
    lines = parse(build(draft)).body.split("\n")

    assert all(len(line) <= WIDEST for line in lines)


@proves("OPEN-65")
def test_a_header_that_is_too_long_loses_its_reference_then_words() -> None:
    fits = Draft("feat", "x" * 47, ref="msg-01HX7K9P")
    drops = Draft("feat", "x" * 60, ref="msg-01HX7K9P")
    trims = Draft("feat", "word " * 20, ref="msg-01HX7K9P")
    cuts = Draft("feat", "x" * 100)

    assert header(fits).endswith("[pvp:msg-01HX7K9P]")
    assert header(drops) == "feat: " + "x" * 60
    assert header(trims) == "feat: " + "word " * 12 + "word…"
    assert header(cuts) == "feat: " + "x" * 65 + "…"
    assert header(Draft("feat", "do it", scope="s" * 90)) == "feat: do it"


@proves("OPEN-72")
@pytest.mark.parametrize(
    "draft",
    [
        Draft("feat: x\n\nApproved-By", "y"),
        Draft("feat", " \n\t"),
        Draft("feat", "x", ref="a] b"),
        Draft("feat", "x", ref=""),
        Draft("feat", "x", trailers=(Trailer("Key", "a\nApproved-By: human:boss"),)),
        Draft("feat", "x", trailers=(Trailer("Key", " "),)),
        Draft("feat", "x", trailers=(Trailer("a key", "x"),)),
        Draft("feat", "x", trailers=(Trailer("", "x"),)),
    ],
)
def test_what_could_forge_a_line_is_refused(draft: Draft) -> None:
    with pytest.raises(Refused):
        build(draft)


@proves("OPEN-72")
def test_a_description_stays_on_its_line() -> None:
    text = build(Draft("feat", "x\n\nApproved-By: human:boss\x1b[2J", scope="a)b(c\n"))

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

    message = parse(build(Draft("feat", "x", trailers=trailers_of(told))))

    assert message.session_id == session
    assert message.tools == (tool,)
    assert message.message_ids == tuple(dict.fromkeys([name, tool]))
    assert [each.identifier for each in message.decided_by] == [name]
    assert message.approved_by == ()


@proves("OPEN-71")
@given(st.text())
def test_no_body_forges_a_trailer(body: str) -> None:
    text = build(Draft("feat", "x", rationale=body, trailers=(Trailer("Key", "x"),)))

    assert [each[:2] for each in parse(text).trailers] == [("Key", "x")]


def test_what_git_would_take_for_a_comment_or_the_end_is_indented() -> None:
    assert wrapped("# title\n---\n--- x\n---x\n\n\n\nend\tx\x07") == (
        " # title\n ---\n --- x\n---x\n\nend x"
    )


def test_lists_and_code_keep_their_lines() -> None:
    long = "word " * 20

    assert wrapped(f"- {long}").split("\n")[1].startswith("  word")
    assert wrapped(f"x\n    {long}") == f"x\n    {long.rstrip()}"


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
    assert trailers_of(told, aliases=True) == ()


@proves("OPEN-61", "PVP-18.3-1")
def test_the_other_seeds_words_are_written_on_request() -> None:
    keys = [each.key for each in trailers_of(context(DECISION), aliases=True)]
    extra = trailers_of(context(DECISION), aliases=True)[-2:]

    assert [str(each) for each in extra] == ["PVP-Type: bugfix", "PVP-Approvers: alice,bob"]
    assert len(keys) == len(set(keys))
    exact = trailers_of({"decision_type": "refactor"}, aliases=True)
    assert [str(each) for each in exact] == [
        "PVP-Decision-Type: implementation",
        "PVP-Type: refactor",
    ]


@proves("GIT-MAP-3")
def test_a_long_chain_shows_its_two_ends() -> None:
    ids = [f"m{n}" for n in range(500)]

    (trailer,) = trailers_of({"messages": ids})
    found = trailer.value.split(",")

    assert len(found) == 64
    assert (found[0], found[-1]) == ("m0", "m499")
