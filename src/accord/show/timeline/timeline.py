"""Turn the messages of a session into a conversation: streamed chunks become one turn each.

Handlers read payloads only through `foreign_json`, because a payload may have any shape.
"""

from collections.abc import Iterable

from accord.show.foreign_json import as_text
from accord.show.timeline import approval, conversation, forking, membership, shared_context
from accord.show.timeline.state import MessageHandler, TimelineState, Turn, WireEnvelope

HANDLERS_BY_TYPE: dict[str, MessageHandler] = {
    **membership.HANDLERS,
    **conversation.HANDLERS,
    **shared_context.HANDLERS,
    **forking.HANDLERS,
    **approval.HANDLERS,
}


class Timeline(TimelineState):
    """Builds turns from envelopes."""

    def add(self, envelope: WireEnvelope) -> None:
        """Add one envelope; types without a handler, such as heartbeats, are not shown."""
        message_type = as_text(envelope.get("type"))
        handler = HANDLERS_BY_TYPE.get(message_type)
        if handler is None:
            return
        payload = envelope.get("payload")
        if isinstance(payload, dict):
            handler(self, envelope, payload)
        else:
            title = f"sent {message_type} with content that Accord cannot read"
            self.add_turn(envelope, "note", title, text=as_text(payload))


def turns_of(envelopes: Iterable[WireEnvelope]) -> list[Turn]:
    """All turns of a conversation."""
    timeline = Timeline()
    for envelope in envelopes:
        timeline.add(envelope)
    return timeline.turns
