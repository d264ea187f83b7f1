"""What is wrong with a commit message."""

from functools import partial

import pytest
from hypothesis import given

from accord.core.provenance.commit_message.lint import LintRules, lint, strip_comments
from accord.core.provenance.commit_message.trailers import SCISSORS_LINE
from tests.core.provenance.message_samples import EXAMPLES, TEXTS
from tests.helpers.measure.cpu_time import measure_cpu
from tests.spec import proves


def problems(text: str, rules: LintRules | None = None) -> list[str]:
    return [str(each) for each in lint(text, rules)]


@proves("GIT-EX-1", "OPEN-65", "OPEN-66")
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_are_right_but_for_two_long_headers(name: str) -> None:
    long = {"explore": ["line 1: error: The header has 74 characters; 72 are allowed"]}

    assert problems(EXAMPLES[name]) == long.get(name, [])


@proves("GIT-COMPAT-1", "OPEN-66", "OPEN-67", "GIT-HOOK-CM-1")
@pytest.mark.parametrize(
    "text",
    [
        "fix: x\n",
        "feat(api)!: drop it\n\nBREAKING CHANGE: all of it\n",
        "Merge branch 'x' into y\n",
        "Merge branch '" + "x" * 90 + "' into y\n",
        'Revert "feat: x"\n\nThis reverts commit abc.\n',
        "fixup! feat: x\n",
        "squash! feat: x\n",
        "amend! feat: x\n",
        "fix: x\n\nhttps://example.org/" + "x" * 90 + "\n",
        "fix: x\n\n    " + "code " * 20 + "\n",
        "fix: x\n\nReviewed-by: Jane Doe <jane@example.org>\n",
    ],
)
def test_lint_finds_nothing_in_a_correct_message(text: str) -> None:
    assert problems(text) == []


@proves("GIT-HOOK-CM-1", "GIT-TYPE-4", "OPEN-67")
@pytest.mark.parametrize(
    ("text", "words", "mend"),
    [
        ("just words\n", "The header is 'just words', not <type>(<scope>): ", "Start with one of"),
        ("feat:x\n", "The header is 'feat:x'", "Start with one of"),
        ("wip: x\n", "'wip' is not a commit type", "Use one of feat, fix,"),
        ("feature: x\n", "'feature' is not a commit type", "Use feat"),
        ("perf: x\n", "'perf' is not a commit type", "PVP-Type: optimization"),
        ("", "The message is empty", "Write <type>"),
        ("\n \n", "The message is empty", "Write <type>"),
    ],
)
def test_a_header_that_is_none_says_what_is_expected_and_what_is_there(
    text: str, words: str, mend: str
) -> None:
    (finding,) = lint(text)

    assert finding.error
    assert words in finding.problem
    assert mend in finding.mend


@proves("GIT-HOOK-CM-2", "GIT-HEADER-1", "OPEN-65")
def test_a_long_header_tells_its_length_and_a_repository_may_allow_it() -> None:
    text = "fix: " + "é" * 68 + "\n"

    assert problems(text) == ["line 1: error: The header has 73 characters; 72 are allowed"]
    assert problems(text, LintRules(widest=100)) == []
    assert [each.error for each in lint(text, LintRules(too_long_is_error=False))] == [False]
    assert lint("fix: " + "x" * 60 + " [pvp:msg-1]")[0].mend == "Remove the reference"


@proves("GIT-HEADER-4")
def test_lint_only_advises_on_the_imperative_mood() -> None:
    (finding,) = lint("fix: Fixed the lock\n")

    assert (finding.error, finding.mend) == (False, "Write 'fix'")


@proves("GIT-STRUCT-1")
def test_a_body_needs_a_blank_line_before_it() -> None:
    assert problems("fix: x\nwhy\n") == [
        "line 2: error: There is no empty line between header and body",
    ]


@proves("GIT-BODY-4")
def test_a_wide_line_is_a_warning() -> None:
    assert problems("fix: x\n\n" + "word " * 20 + "\n") == [
        "line 3: warning: The line has 100 characters; wrap the body at 72",
    ]


@proves("OPEN-71", "GIT-EX-4")
def test_a_trailer_in_the_wrong_place_is_found() -> None:
    text = "fix: x\n\nPVP-Session: s\n\n  PVP-Fork: indented\n\nwords\n"

    assert problems(text) == [
        "line 3: warning: git does not recognize PVP-Session here as a trailer"
    ]


@proves("GIT-HOOK-CM-3", "OPEN-68")
@pytest.mark.parametrize("value", ["1.5", "high", "-1"])
def test_a_confidence_out_of_range_is_an_error(value: str) -> None:
    text = f"fix: x\n\nPVP-Confidence: {value}\nDecision-By: human:a\n"

    assert problems(text) == [
        f"line 3: error: PVP-Confidence is {value!r}, not a number from 0.00 to 1.00"
    ]


@proves("OPEN-68")
@pytest.mark.parametrize("said", ["high (0.80)", "medium (0.90)", "low", "0.89"])
def test_a_body_that_says_another_confidence_is_a_warning(said: str) -> None:
    text = f"fix: x\n\nConfidence: {said}\n\nPVP-Confidence: 0.90\nDecision-By: human:a\n"

    (finding,) = lint(text)

    assert (finding.line, finding.error) == (3, False)
    assert finding.mend == "Write 'Confidence: high (0.90)'"


@proves("GIT-TRAILER-7", "OPEN-62")
@pytest.mark.parametrize(
    ("trailers", "found"),
    [
        ("PVP-Decision-Type: refactor", []),
        ("PVP-Type: correction", []),
        ("PVP-Decision-Type: correction\nPVP-Type: bugfix", []),
        ("PVP-Decision-Type: whim", ["line 4: error: 'whim' is not a decision type"]),
        ("PVP-Type: whim", ["line 4: error: 'whim' is not a decision type"]),
        (
            "PVP-Decision-Type: exploration\nPVP-Type: bugfix",
            ["line 5: warning: PVP-Type bugfix contradicts PVP-Decision-Type exploration"],
        ),
    ],
)
def test_a_decision_has_a_known_type(trailers: str, found: list[str]) -> None:
    assert problems(f"fix: x\n\nDecision-By: human:a\n{trailers}\n") == found


@proves("GIT-TRAILER-8", "OPEN-70")
@pytest.mark.parametrize(
    "text", ["fix: x [pvp:msg-1]\n", "fix: x\n\nPVP-Session: s\n", "fix: x\n\npvp-tools: t\n"]
)
def test_with_context_somebody_decided(text: str) -> None:
    (finding,) = lint(text)

    assert finding.error
    assert finding.problem == "There is PVP metadata, but no Decision-By"
    assert "Decision-By: human:<name>" in finding.mend


@proves("GIT-PART-1")
def test_who_cannot_be_named_is_a_warning() -> None:
    text = "fix: x\n\nDecision-By: human:a, bob\nApproved-By: boss\n"

    assert problems(text) == [
        "line 3: warning: 'bob' in Decision-By is not a participant",
        "line 4: warning: 'boss' in Approved-By is not a participant",
    ]


def test_a_key_without_value_is_an_error() -> None:
    assert problems("fix: x\n\nApproved-By:\nSee:\n") == [
        "line 3: error: Approved-By has no value",
    ]


def test_every_finding_is_told_by_line() -> None:
    text = "added stuff\nmore\n\nPVP-Confidence: 7\nPVP-Type: whim\nDecision-By:\n"

    found = lint(text)

    assert [each.line for each in found] == [1, 2, 4, 5, 6, 6]
    assert all(each.mend for each in found)


def test_what_git_leaves_out_is_not_checked() -> None:
    file = f"fix: x\n\n# Please enter\n; not\n{SCISSORS_LINE}diff\n"

    assert strip_comments("fix: x\n") == "fix: x\n"
    assert strip_comments(file) == "fix: x\n\n; not\n"
    assert strip_comments(file.replace("# ", "; "), ";") == "fix: x\n\n"


@given(TEXTS)
def test_any_text_can_be_checked(text: str) -> None:
    assert lint(text) == sorted(lint(text))


@proves("GIT-COMPAT-3")
@pytest.mark.parametrize("phase", [1, 2, 3])
def test_a_team_can_begin_with_who_decided_and_add_the_rest_later(phase: int) -> None:
    trailers = ("Decision-By: human:a", "PVP-Session: s", "PVP-Confidence: 0.80")[:phase]

    assert problems("fix: x\n\n" + "\n".join(trailers) + "\n") == []


@pytest.mark.parametrize(
    "line", [SCISSORS_LINE, SCISSORS_LINE.rstrip(), SCISSORS_LINE.rstrip() + " \t\r\n"]
)
def test_scissors_cut_wherever_their_line_ends(line: str) -> None:
    near = f"{SCISSORS_LINE.rstrip()}!\n x {SCISSORS_LINE}"

    assert strip_comments(f"x\n {near}{line}") == f"x\n {near}"
    assert strip_comments(line) == ""
    assert strip_comments(f"{near}y\n") == f" x {SCISSORS_LINE}y\n"


def lint_stripped(text: str) -> None:
    """What a hook does with a message."""
    lint(strip_comments(text))


def test_what_nobody_can_have_written_is_not_read_for_long() -> None:
    for part in (
        "a\n",
        "PVP-Session: s\n",
        " b\n",
        "#\n",
        SCISSORS_LINE.rstrip() + " x\n",
        "word ",
    ):
        text = f"feat: x\n\n{part * (10_000_000 // len(part))}"
        (found,) = lint(strip_comments(text))

        assert (found.error, found.mend) == (True, "Shorten it")
        assert measure_cpu(partial(lint_stripped, text)) < 1
    text = f"feat: x\n{SCISSORS_LINE}" + "+a\n" * 3_000_000
    assert lint(strip_comments(text)) == []
    assert measure_cpu(partial(lint_stripped, text)) < 1


def test_a_message_of_the_first_pvp_hooks_is_history_and_not_checked() -> None:
    assert lint("Add a login\n\n---\nPVP-META: true\nPVP-SESSION: 01HQXYZ\n") == []
