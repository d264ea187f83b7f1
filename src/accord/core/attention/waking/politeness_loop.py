"""Politeness loops: two agents that keep answering each other without any work being done."""

from collections.abc import Iterable

from accord.core.attention.waking.automatic_wakes import PostedMessage

# Metadata that shows work: a task, a commit.
WORK_FIELDS = frozenset({"task_id", "commit", "commits", "commit_sha"})
PAIR = 2


NOTICE = "politeness_loop"


def loop_was_noticed(newest_first: Iterable[PostedMessage]) -> bool:
    """Whether the server has said so already since the run began."""
    for message in newest_first:
        if message.kind == "system":
            if message.metadata.get("notice") == NOTICE:
                return True
        elif not _is_small_talk(message):
            break
    return False


def polite_run(newest_first: Iterable[PostedMessage]) -> int:
    """How many chat messages two agents have exchanged since anything else happened.

    An event, a task, a commit, a human or a third agent ends the run. Messages of the server do
    not: they say that no agent is woken, which must not start the loop again.
    """
    pair: set[str] = set()
    count = 0
    for message in newest_first:
        if message.kind == "system":
            continue
        if not _is_small_talk(message) or len(pair | {message.sender}) > PAIR:
            break
        pair.add(message.sender)
        count += 1
    return count if len(pair) == PAIR else 0


def _is_small_talk(message: PostedMessage) -> bool:
    return message.kind == "chat" and message.by_agent and WORK_FIELDS.isdisjoint(message.metadata)
