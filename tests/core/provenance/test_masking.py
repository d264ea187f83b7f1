"""What was masked once stays masked."""

from accord.core.kernel.redaction import REDACTED, redactor
from accord.core.provenance.decision_commit import (
    MAX_MASKED_LENGTH,
    ConversationThread,
    Utterance,
    masked_messages,
    reapply_masks,
)

VALUE = "correct horse"
TOKEN = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


def thread(**said: str) -> ConversationThread:
    told = (Utterance(id, "prompt.submit", "human:alice", text, "") for id, text in said.items())
    return ConversationThread("r", tuple(told))


def test_only_what_the_value_alone_gives_away_is_kept_masked() -> None:
    whole = thread(a=f"Use {VALUE} here", b="Nothing of it", c=f"And {TOKEN}")

    assert masked_messages(whole, redactor([VALUE])) == {"a": f"Use {REDACTED} here"}
    assert masked_messages(whole, redactor()) == {}


def test_it_is_told_as_before_when_nobody_knows_the_value_any_more() -> None:
    whole = thread(a=f"Use {VALUE} here", b="Nothing of it")

    told = reapply_masks(whole, masked_messages(whole, redactor([VALUE])))

    assert [each.content for each in told.messages] == [f"Use {REDACTED} here", "Nothing of it"]
    assert told.id == whole.id


def test_of_a_long_message_the_beginning_is_kept() -> None:
    whole = thread(a=f"{VALUE} {'x' * 10_000}")

    assert len(masked_messages(whole, redactor([VALUE]))["a"]) == MAX_MASKED_LENGTH
