"""The one refusal."""

from accord.core.kernel.refusal import Reason, Refused


def test_a_refusal_has_a_reason_a_sentence_and_perhaps_details() -> None:
    plain = Refused(Reason.FULL, "The session is full")
    detailed = Refused(Reason.FULL, "The session is full", {"limit": 2})

    assert (plain.reason, plain.detail, plain.details) == (Reason.FULL, "The session is full", None)
    assert str(plain) == "The session is full"
    assert detailed.details == {"limit": 2}
