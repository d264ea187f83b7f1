"""How sure somebody is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.provenance import confidence
from accord.core.provenance.confidence import Answers, Band, Grade, Stated, assess, band, grade
from tests.spec import proves

SCORES = st.floats(0, 1)


@proves("GIT-CONF-1", "OPEN-68")
@pytest.mark.parametrize(
    ("score", "word"),
    [
        (1.0, Band.HIGH),
        (0.80, Band.HIGH),
        (0.795, Band.MEDIUM),
        (0.50, Band.MEDIUM),
        (0.49, Band.LOW),
        (0.0, Band.LOW),
    ],
)
def test_every_number_has_a_band(score: float, word: Band) -> None:
    assert band(score) is word


@proves("GIT-HOOK-CM-3", "GIT-TRAILER-6", "OPEN-68")
@pytest.mark.parametrize(
    ("text", "score"),
    [("0", 0.0), ("1", 1.0), ("1.0", 1.0), ("1.00", 1.0), ("0.85", 0.85), (".5", 0.5)],
)
def test_any_decimal_in_the_range_will_do(text: str, score: float) -> None:
    assert confidence.parse(text) == score


@proves("GIT-HOOK-CM-3", "OPEN-68")
@pytest.mark.parametrize(
    "text", ["1.01", "2", "-0.1", "high", "", "90%", "1e-1", "0,9", "0." + "1" * 40]
)
def test_anything_else_is_no_confidence(text: str) -> None:
    assert confidence.parse(text) is None


@proves("GIT-BODY-3", "GIT-EX-2", "OPEN-68")
@pytest.mark.parametrize(
    ("line", "word", "score"),
    [
        ("Confidence: high (0.90)", Band.HIGH, 0.9),
        ("[Confidence]: Medium (55%)", Band.MEDIUM, 0.55),
        ("Confidence: high (0.95) for revert decision", Band.HIGH, 0.95),
        ("Confidence: 0.4", None, 0.4),
        ("confidence: low", Band.LOW, None),
        ("Confidence: high (150%)", Band.HIGH, None),
        ("Confidence: high (1.5)", Band.HIGH, None),
    ],
)
def test_the_body_may_say_it_in_words_and_percent(
    line: str, word: Band | None, score: float | None
) -> None:
    assert confidence.stated(line) == Stated(word, score)


@pytest.mark.parametrize(
    "line", ["Confidence: highly likely", "Confidence:", "We have confidence: yes"]
)
def test_other_lines_say_nothing_of_confidence(line: str) -> None:
    assert confidence.stated(line) is None


@proves("GIT-BODY-3", "OPEN-68")
@given(SCORES)
def test_what_is_written_is_read_and_word_and_number_agree(score: float) -> None:
    stated = confidence.stated(confidence.line(score))

    assert stated is not None
    assert stated.score == confidence.parse(confidence.write(score))
    assert stated.score is not None
    assert stated.word is band(stated.score)


@proves("UNI-28")
@pytest.mark.parametrize(
    ("score", "word"),
    [
        (0.24, Grade.VERY_LOW),
        (0.25, Grade.LOW),
        (0.49, Grade.LOW),
        (0.50, Grade.MED),
        (0.79, Grade.MED),
        (0.80, Grade.HIGH),
    ],
)
def test_the_kernels_words_are_numbers(score: float, word: Grade) -> None:
    assert grade(score) is word
    assert grade(confidence.SCORES[word]) is word


@proves("UNI-28")
@given(SCORES)
def test_the_two_vocabularies_agree(score: float) -> None:
    low = grade(score) in {Grade.VERY_LOW, Grade.LOW}

    assert low == (band(score) is Band.LOW)
    assert (grade(score) is Grade.HIGH) == (band(score) is Band.HIGH)


@proves("GIT-CONF-2", "GIT-CONF-3", "OPEN-68")
@pytest.mark.parametrize(
    ("answers", "score"),
    [
        (Answers(), 0.40),
        (Answers(validated=True, agreed=True, reversible=True, tested=True), 1.00),
        (Answers(validated=True), 0.60),
        (Answers(agreed=True), 0.60),
        (Answers(reversible=True), 0.50),
        (Answers(tested=True), 0.50),
        (Answers(risk=0.01), 0.30),
        (Answers(risk=1), 0.10),
        (Answers(risk=99), 0.10),
    ],
)
def test_the_questions_lead_to_a_number(answers: Answers, score: float) -> None:
    assert assess(answers) == pytest.approx(score, abs=0.01)
