"""How sure somebody is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.core.provenance.commit_message import trailer_values
from accord.core.provenance.commit_message.trailer_values import (
    ConfidenceAnswers,
    ConfidenceBand,
    KernelGrade,
    StatedConfidence,
    band_of,
    grade_of,
    suggest_score,
)
from tests.spec import proves

SCORES = st.floats(0, 1)


@proves("GIT-CONF-1", "OPEN-68")
@pytest.mark.parametrize(
    ("score", "word"),
    [
        (1.0, ConfidenceBand.HIGH),
        (0.80, ConfidenceBand.HIGH),
        (0.795, ConfidenceBand.MEDIUM),
        (0.50, ConfidenceBand.MEDIUM),
        (0.49, ConfidenceBand.LOW),
        (0.0, ConfidenceBand.LOW),
    ],
)
def test_every_number_has_a_band(score: float, word: ConfidenceBand) -> None:
    assert band_of(score) is word


@proves("GIT-HOOK-CM-3", "GIT-TRAILER-6", "OPEN-68")
@pytest.mark.parametrize(
    ("text", "score"),
    [("0", 0.0), ("1", 1.0), ("1.0", 1.0), ("1.00", 1.0), ("0.85", 0.85), (".5", 0.5)],
)
def test_any_decimal_in_the_range_will_do(text: str, score: float) -> None:
    assert trailer_values.parse_score(text) == score


@proves("GIT-HOOK-CM-3", "OPEN-68")
@pytest.mark.parametrize(
    "text", ["1.01", "2", "-0.1", "high", "", "90%", "1e-1", "0,9", "0." + "1" * 40]
)
def test_confidence_refuses_other_words_and_numbers(text: str) -> None:
    assert trailer_values.parse_score(text) is None


@proves("GIT-BODY-3", "GIT-EX-2", "OPEN-68")
@pytest.mark.parametrize(
    ("line", "word", "score"),
    [
        ("Confidence: high (0.90)", ConfidenceBand.HIGH, 0.9),
        ("[Confidence]: Medium (55%)", ConfidenceBand.MEDIUM, 0.55),
        ("Confidence: high (0.95) for revert decision", ConfidenceBand.HIGH, 0.95),
        ("Confidence: 0.4", None, 0.4),
        ("confidence: low", ConfidenceBand.LOW, None),
        ("Confidence: high (150%)", ConfidenceBand.HIGH, None),
        ("Confidence: high (1.5)", ConfidenceBand.HIGH, None),
    ],
)
def test_the_body_may_say_it_in_words_and_percent(
    line: str, word: ConfidenceBand | None, score: float | None
) -> None:
    assert trailer_values.parse_confidence_line(line) == StatedConfidence(word, score)


@pytest.mark.parametrize(
    "line", ["Confidence: highly likely", "Confidence:", "We have confidence: yes"]
)
def test_other_lines_say_nothing_of_confidence(line: str) -> None:
    assert trailer_values.parse_confidence_line(line) is None


@proves("GIT-BODY-3", "OPEN-68")
@given(SCORES)
def test_what_is_written_is_read_and_word_and_number_agree(score: float) -> None:
    stated = trailer_values.parse_confidence_line(trailer_values.confidence_line(score))

    assert stated is not None
    assert stated.score == trailer_values.parse_score(trailer_values.format_score(score))
    assert stated.score is not None
    assert stated.word is band_of(stated.score)


@proves("UNI-28")
@pytest.mark.parametrize(
    ("score", "word"),
    [
        (0.24, KernelGrade.VERY_LOW),
        (0.25, KernelGrade.LOW),
        (0.49, KernelGrade.LOW),
        (0.50, KernelGrade.MED),
        (0.79, KernelGrade.MED),
        (0.80, KernelGrade.HIGH),
    ],
)
def test_the_kernels_words_are_numbers(score: float, word: KernelGrade) -> None:
    assert grade_of(score) is word
    assert grade_of(trailer_values.GRADE_SCORES[word]) is word


@proves("UNI-28")
@given(SCORES)
def test_the_two_vocabularies_agree(score: float) -> None:
    low = grade_of(score) in {KernelGrade.VERY_LOW, KernelGrade.LOW}

    assert low == (band_of(score) is ConfidenceBand.LOW)
    assert (grade_of(score) is KernelGrade.HIGH) == (band_of(score) is ConfidenceBand.HIGH)


@proves("GIT-CONF-2", "GIT-CONF-3", "OPEN-68")
@pytest.mark.parametrize(
    ("answers", "score"),
    [
        (ConfidenceAnswers(), 0.40),
        (ConfidenceAnswers(validated=True, agreed=True, reversible=True, tested=True), 1.00),
        (ConfidenceAnswers(validated=True), 0.60),
        (ConfidenceAnswers(agreed=True), 0.60),
        (ConfidenceAnswers(reversible=True), 0.50),
        (ConfidenceAnswers(tested=True), 0.50),
        (ConfidenceAnswers(risk=0.01), 0.30),
        (ConfidenceAnswers(risk=1), 0.10),
        (ConfidenceAnswers(risk=99), 0.10),
    ],
)
def test_the_questions_lead_to_a_number(answers: ConfidenceAnswers, score: float) -> None:
    assert suggest_score(answers) == pytest.approx(score, abs=0.01)
