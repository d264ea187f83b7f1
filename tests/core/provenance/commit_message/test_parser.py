"""A commit message, read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.provenance.commit_message.parser import (
    BodyAlternative,
    commit_metadata,
    parse_header,
    parse_message,
    parse_sections,
)
from accord.core.provenance.commit_message.trailer_values import (
    ConfidenceBand,
    Participant,
    StatedConfidence,
)
from accord.core.provenance.commit_message.trailers import Trailer, trailers_in
from tests.core.provenance.message_samples import EXAMPLES, TEXTS
from tests.helpers.measure.cpu_time import measure_cpu
from tests.spec import proves

ALICE, BOB = Participant("human", "alice"), Participant("human", "bob")
CLAUDE = Participant("ai", "claude")


@proves("GIT-EX-1", "GIT-STRUCT-1", "GIT-TRAILER-3", "GIT-TRAILER-4", "GIT-TRAILER-8")
def test_parser_reads_the_example_of_a_feature() -> None:
    message = parse_message(EXAMPLES["feature"])

    assert message.header[1:] == (
        "feat",
        "auth",
        False,
        "implement JWT validation middleware",
        "msg-01HX7K9P",
    )
    assert message.session_id == "01HX7K9P4QZCVD3N8MYW6R5T2B"
    assert message.message_ids == ("msg-01", "msg-05", "msg-12")
    assert message.confidence == 0.90
    assert message.decision_type == "implementation"
    assert message.decided_by == (ALICE, CLAUDE)
    assert message.reviewed_by == (BOB,)
    assert message.approved_by == ()
    assert message.fork_id is None
    assert message.has_context
    assert not message.breaking


@proves("GIT-BODY-1", "GIT-BODY-2", "GIT-BODY-3", "GIT-BODY-5")
def test_the_sections_of_a_body_are_told_apart() -> None:
    found = parse_message(EXAMPLES["feature"]).sections

    assert found.rationale.startswith("Add JWT validation to WebSocket upgrade handler.")
    assert found.rationale.endswith("downstream use.")
    assert found.alternatives == (
        BodyAlternative("Session-level validation", "rejected for late error feedback"),
        BodyAlternative("Cookie-based tokens", "rejected for WebSocket compatibility issues"),
    )
    assert found.confidence == StatedConfidence(ConfidenceBand.HIGH, 0.90)


@proves("GIT-EX-1")
def test_parser_reads_the_example_of_a_fix() -> None:
    message = parse_message(EXAMPLES["fix"])

    assert (message.header.type, message.header.scope) == ("fix", "gates")
    assert message.decision_type == "correction"
    assert message.approved_by == (ALICE, BOB)
    assert "  T+1ms: approval handler sets approvals=1" in message.body


@proves("GIT-EX-1", "GIT-EX-5", "GIT-TRAILER-5")
def test_parser_reads_the_example_of_an_experiment() -> None:
    message = parse_message(EXAMPLES["explore"])

    assert message.header.type == "explore"
    assert len(message.header.text) == 74
    assert message.fork_id == "fork-perf-binary"
    assert message.confidence == 0.45
    assert "WARNING: This is exploratory code." in message.body


@proves("GIT-EX-1", "GIT-EX-2")
def test_parser_reads_the_example_of_a_revert() -> None:
    message = parse_message(EXAMPLES["revert"])

    assert message.header.type == "revert"
    assert message.body.startswith("This reverts commit a1b2c3d4e5f6g7h8i9j0.")
    assert message.sections.confidence == StatedConfidence(ConfidenceBand.HIGH, 0.95)
    assert message.decided_by == (ALICE, BOB, CLAUDE)


@proves("GIT-EX-1", "GIT-EX-3", "GIT-EX-4")
def test_the_merge_is_read_and_what_is_indented_is_no_trailer() -> None:
    message = parse_message(EXAMPLES["merge"])

    assert message.header.is_generated
    assert message.header.type is None
    assert message.decision_type == "merge-resolution"
    assert message.body.count("Decision-By:") == 3
    assert message.values("decision-by") == ("human:alice,human:bob,ai:claude",)


@proves("GIT-PARSE-1", "GIT-PARSE-2")
def test_the_metadata_has_the_names_that_others_know() -> None:
    found = commit_metadata(parse_message(EXAMPLES["fix"]))

    assert found.pop("body").startswith("The gate timeout timer")
    assert found == {
        "type": "fix",
        "scope": "gates",
        "description": "resolve race condition in quorum evaluation",
        "pvpRef": "msg-42",
        "confidence": 0.95,
        "sessionId": "01HX8A2M5RKVF7N9QYZ3W6P4C",
        "messageIds": ["msg-38", "msg-39", "msg-40", "msg-41", "msg-42"],
        "decisionType": "correction",
        "decisionBy": [
            {"type": "human", "identifier": "bob"},
            {"type": "ai", "identifier": "claude"},
        ],
        "reviewedBy": [{"type": "human", "identifier": "alice"}],
        "approvedBy": [
            {"type": "human", "identifier": "alice"},
            {"type": "human", "identifier": "bob"},
        ],
    }


@proves("GIT-HEADER-2", "GIT-HEADER-3", "GIT-PARSE-3", "OPEN-67", "GIT-PRINC-3")
@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("feat(auth): implement [pvp:msg-1]", ("feat", "auth", False, "implement", "msg-1")),
        ("refactor: extract router", ("refactor", None, False, "extract router", None)),
        ("feat!: drop it", ("feat", None, True, "drop it", None)),
        ("feat(api)!: drop it", ("feat", "api", True, "drop it", None)),
        ("wip: any word is a type", ("wip", None, False, "any word is a type", None)),
        ("fix: a [pvp:x] b", ("fix", None, False, "a [pvp:x] b", None)),
        ("fix: a[pvp:x]", ("fix", None, False, "a[pvp:x]", None)),
        ("fix: [pvp:x]", ("fix", None, False, "[pvp:x]", None)),
        ("fix: a [pvp:]", ("fix", None, False, "a [pvp:]", None)),
        ("fix: a [x]", ("fix", None, False, "a [x]", None)),
        ("fix: a [pvp:x] [pvp:y]", ("fix", None, False, "a [pvp:x]", "y")),
        ("fix: a x[pvp:b [pvp:c]", ("fix", None, False, "a x[pvp:b", "c")),
        ("fix: a [pvp:b [pvp:c]", ("fix", None, False, "a", "b [pvp:c")),
        ("fix:no blank", (None, None, False, "fix:no blank", None)),
        ("fix: ", (None, None, False, "fix:", None)),
        ("fix(): x", (None, None, False, "fix(): x", None)),
        ("Just words", (None, None, False, "Just words", None)),
        ("", (None, None, False, "", None)),
    ],
)
def test_a_header_is_taken_apart(line: str, parts: tuple[object, ...]) -> None:
    assert parse_header(line)[1:] == parts


@proves("OPEN-61", "PVP-18.3-1")
def test_the_other_seeds_trailers_are_read() -> None:
    message = parse_message(
        "feat(auth): implement JWT validation\n"
        "\n"
        "Added JWT token validation middleware with RS256 support.\n"
        "\n"
        "PVP-Session: ses_01HX7K9P4QZCVD3N8MYW6R5T2B\n"
        "PVP-Decision: dec_lz4k8m_a1b2c3\n"
        "PVP-Confidence: 0.85\n"
        "PVP-Type: implementation\n"
        "PVP-Tools: shell_execute,file_write\n"
        "PVP-Approvers: alice,bob\n"
    )

    assert message.session_id == "ses_01HX7K9P4QZCVD3N8MYW6R5T2B"
    assert message.decision_ids == ("dec_lz4k8m_a1b2c3",)
    assert message.decision_type == "implementation"
    assert message.tools == ("shell_execute", "file_write")
    assert message.approved_by == (ALICE, BOB)


@proves("OPEN-61")
@pytest.mark.parametrize(("value", "ids"), [("3", ()), ("3,msg-4", ("3", "msg-4"))])
def test_a_bare_number_counts_messages_and_names_none(value: str, ids: tuple[str, ...]) -> None:
    assert parse_message(f"x\n\nPVP-MESSAGES: {value}\n").message_ids == ids


@proves("OPEN-71", "GIT-TRAILER-1", "GIT-TRAILER-2", "GIT-TRAILER-9", "GIT-TRAILER-10")
def test_repeated_keys_and_comma_lists_are_one_and_foreign_trailers_stay() -> None:
    message = parse_message(
        "fix: x\n"
        "\n"
        "Decision-By: human:carol\n"
        "\n"
        "decision-by: human:alice, ai:claude\n"
        "Decision-By: human:alice,human:bob\n"
        "Reviewed-by: Jane Doe <jane@example.org>\n"
        "Reviewed-By: human:bob\n"
        "Co-authored-by: Robot <r@example.org>\n"
    )

    assert message.decided_by == (ALICE, CLAUDE, BOB)
    assert message.reviewed_by == (BOB,)
    assert message.participants_of("reviewed-by").raw == ("Jane Doe <jane@example.org>",)
    assert message.values("co-authored-by") == ("Robot <r@example.org>",)
    assert message.body == "Decision-By: human:carol"


@proves("OPEN-68")
@pytest.mark.parametrize(
    ("rest", "score"),
    [
        ("Confidence: low (0.1)\n\nPVP-Confidence: 0.9", 0.9),
        ("Confidence: low (0.1)\n\nDecision-By: human:a", 0.1),
        ("Confidence: low (10%)", 0.1),
        ("Confidence: maybe", None),
        ("PVP-Confidence: 7", None),
        ("words", None),
    ],
)
def test_the_trailers_confidence_comes_first(rest: str, score: float | None) -> None:
    assert parse_message(f"fix: x\n\n{rest}\n").confidence == score


@proves("OPEN-67")
@pytest.mark.parametrize(
    "text",
    ["feat!: x\n", "feat: x\n\nBREAKING CHANGE: y\n", "feat: x\n\nBREAKING-CHANGE: y\n"],
)
def test_a_breaking_change_is_known(text: str) -> None:
    assert parse_message(text).breaking


@proves("GIT-COMPAT-1", "GIT-COMPAT-2")
def test_a_message_without_metadata_is_as_good_as_one_with() -> None:
    message = parse_message("\n\nfix: x\n")

    assert commit_metadata(message) == {"type": "fix", "description": "x"}
    assert not message.has_context


@pytest.mark.parametrize("text", ["", "\n", " \n\n"])
def test_an_empty_message_says_nothing(text: str) -> None:
    assert commit_metadata(parse_message(text)) == {}


def test_trailers_know_their_lines() -> None:
    assert parse_message("\nfix: x\n\nKey: a\n  b\nOther: c").trailers == (
        Trailer("Key", "a b", 4),
        Trailer("Other", "c", 6),
    )


@proves("GIT-BODY-6")
@pytest.mark.parametrize("label", ["Alternatives considered:", "[Alternatives considered]:"])
def test_brackets_around_labels_are_optional(label: str) -> None:
    options = "- A: no\n  good\n* B: slow\n- nothing"
    body = f"Why.\n\n{label}\n{options}\n\nAnd more.\n\n[Discussion context]: in\nroom"

    found = parse_sections(body)

    assert found.alternatives == (BodyAlternative("A", "no good"), BodyAlternative("B", "slow"))
    assert found.rationale == "Why.\n\nAnd more."
    assert found.discussion == "in\nroom"


@given(TEXTS)
def test_any_text_can_be_read(text: str) -> None:
    message = parse_message(text)

    assert commit_metadata(message) is not None
    assert [each[:2] for each in message.trailers] == [
        each[:2] for each in trailers_in(text.lstrip("\n")) if message.header.text
    ] or text[:1] in " \t\r#\n"


@given(st.text())
def test_parser_accepts_any_message(text: str) -> None:
    commit_metadata(parse_message(text))


def test_of_a_message_of_any_length_header_and_trailers_are_read() -> None:
    many = "feat: x\n\n" + "a\n" * 5_000_000
    many += "\nPVP-Session: s\nDecision-By: human:a\n"
    wide = f"feat: {'x' * 5_000_000}\n\nPVP-Session: s\n"
    found, whole = parse_message(many), parse_message(wide)

    assert (found.header.text, found.session_id) == ("feat: x", "s")
    assert whole.session_id == "s"
    assert whole.header.type == "feat"
    assert measure_cpu(lambda: (parse_message(many), parse_message(wide))) < 3


FIRST_HOOKS_MESSAGE = """\
Add a login

The rationale, in a paragraph.

---
PVP-META: true
PVP-SESSION: 01HQXYZ
PVP-PARTICIPANTS: alice(human), claude(agent)
PVP-MESSAGES: 15
PVP-PROMPTS: 3
PVP-APPROVALS: 2
PVP-TOOLS: shell_execute:5, file_write:3
"""


def test_a_message_of_the_first_pvp_hooks_is_read() -> None:
    message = parse_message(FIRST_HOOKS_MESSAGE)

    assert message.is_from_first_hooks
    assert message.has_context
    assert (
        parse_message(f"{FIRST_HOOKS_MESSAGE}\nSigned-off-by: A <a@b.c>\n").session_id == "01HQXYZ"
    )
    assert message.session_id == "01HQXYZ"
    assert message.message_ids == ()  # a count
    assert message.tools == ("shell_execute", "file_write")
    assert message.present == ("alice(human)", "claude(agent)")
    assert message.decided_by == message.approved_by == ()  # it says neither
    assert message.body == "The rationale, in a paragraph."
    assert commit_metadata(message)["participants"] == ["alice(human)", "claude(agent)"]


@pytest.mark.parametrize(
    "text",
    [
        "Add a login\n\n---\nPVP-SESSION: 01HQXYZ\n",
        "Add a login\n\n---\nsome text\nPVP-META: true\n",
        "Add a login\n\n---\n",
        "PVP-META: true\n",
    ],
)
def test_a_rule_without_the_first_hooks_key_starts_no_block(text: str) -> None:
    assert not parse_message(text).is_from_first_hooks
