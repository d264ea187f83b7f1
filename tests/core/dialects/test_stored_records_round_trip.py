"""What goes out comes back as it was, whatever it is."""

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from accord.core.dialects import pvp, stored_records
from accord.core.dialects.stored_records import EVENTS, decode_record, encode_record
from accord.core.kernel.messages import Message
from accord.core.kernel.records import Event, Record
from tests.core.dialects.envelopes import QUICK, messages, records
from tests.spec import proves


def spoken(message: Message) -> Record:
    """A record that says just this message."""
    return Record(
        stream=f"room/{message.room}",
        version=1,
        seq=7,
        id=message.id,
        at=0,
        actor=message.sender,
        cause=message.id,
        ts=message.ts,
        sender=message.sender,
        event=Event(),
        said=message.body,
        ref=message.ref,
        causal_refs=message.causal_refs,
        fork=message.fork,
    )


@proves("PVP-4.1-7", "UNI-7")
@pytest.mark.parametrize("name", sorted(pvp.BODIES))
@QUICK
@for_all(st.data())
def test_what_is_sent_decodes_to_the_message_it_was(name: str, data: st.DataObject) -> None:
    message = data.draw(messages(pvp.BODIES[name]))

    frame = pvp.encode_frame(spoken(message))

    assert frame is not None
    assert pvp.decode(frame) == pvp.decode(pvp.encode_relayed(message)) == message


@proves("PVP-1.2-1", "UNI-7")
@pytest.mark.parametrize("name", sorted(EVENTS))
@QUICK
@for_all(st.data())
def test_a_sealed_record_is_read_back_as_it_was_sealed(name: str, data: st.DataObject) -> None:
    record = data.draw(records(EVENTS[name]))

    sealed = encode_record(record)

    assert decode_record(record.stream, record.version, sealed.body) == sealed
    assert sealed.frame == pvp.encode_frame(record)
    if sealed.frame is not None:
        assert sealed.record == record
        assert sealed.body.endswith(stored_records.SAID_MARKER + sealed.frame + b"}")
