"""What was masked in a conversation when its commit was linked, so that it stays masked.

The value of a secret is known only while it is shared; what is told of a commit later must not be
more than was told first.
"""

from collections.abc import Mapping

from .redaction import Redact, redact
from .thread import ConversationThread

# Of a longer one the beginning is enough to see what it was about.
LONGEST = 4096


def masked(thread: ConversationThread, clean: Redact) -> dict[str, str]:
    """The messages in which `clean` finds a value that does not look like a secret, cleaned."""
    cleaned = {each.id: clean(each.content) for each in thread.messages}
    return {
        each.id: cleaned[each.id][:LONGEST]
        for each in thread.messages
        if cleaned[each.id] != redact(each.content)
    }


def still_masked(thread: ConversationThread, before: Mapping[str, str]) -> ConversationThread:
    """The conversation, with those messages as they were told before."""
    messages = (
        each._replace(content=before.get(each.id, each.content)) for each in thread.messages
    )
    return thread._replace(messages=tuple(messages))
