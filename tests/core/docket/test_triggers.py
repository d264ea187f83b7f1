from accord.core.docket.triggers import TRIGGER_TEXT, Trigger


def test_every_trigger_has_a_sentence_of_its_own() -> None:
    assert list(TRIGGER_TEXT) == list(Trigger)
    assert len(set(TRIGGER_TEXT.values())) == len(TRIGGER_TEXT)
    assert not [each for each in TRIGGER_TEXT.values() if each.endswith(".") or each[0].isupper()]
