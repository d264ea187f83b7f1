"""The one refusal."""

from accord.core.kernel.refusal import Refused, Why


def test_a_refusal_has_a_reason_a_sentence_and_perhaps_details() -> None:
    plain = Refused(Why.FULL, "The session is full")
    detailed = Refused(Why.FULL, "The session is full", {"limit": 2})

    assert (plain.why, plain.detail, plain.details) == (Why.FULL, "The session is full", None)
    assert str(plain) == "The session is full"
    assert detailed.details == {"limit": 2}
