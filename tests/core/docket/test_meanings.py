"""Whoever meets a trigger is told what it says."""

from accord.core.docket.meanings import MEANING
from accord.core.docket.words import Trigger


def test_every_trigger_has_a_sentence_of_its_own() -> None:
    assert list(MEANING) == list(Trigger)
    assert len(set(MEANING.values())) == len(MEANING)
    assert not [each for each in MEANING.values() if each.endswith(".") or each[0].isupper()]
