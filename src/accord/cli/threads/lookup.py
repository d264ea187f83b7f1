"""Finds the thread that the command line names."""

from typing import TYPE_CHECKING

from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.threads.state import ID_PREFIX
from accord.show.text import one_line

if TYPE_CHECKING:
    from accord.api.threads import ThreadDetail
    from accord.client import Client

# `th_` and the 26 characters of an id; a complete id is never ambiguous.
ID_LENGTH = len(ID_PREFIX) + 26
MAX_NAMED = 3


async def find_thread(client: "Client", name: str) -> "ThreadDetail":
    """The thread with this id, or the only one whose id begins like this; raises Refused."""
    if len(name) >= ID_LENGTH or not name.startswith(ID_PREFIX):
        return await client.threads.get(name)
    found = [each for each in await client.threads.list() if each.thread_id.startswith(name)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise Refused(
            Reason.NO_ROOM,
            f"None of your threads begins with {name}; `accord thread list` shows them",
        )
    likely = ", ".join(f"{each.thread_id} ({one_line(each.title)})" for each in found[:MAX_NAMED])
    raise Refused(
        Reason.MALFORMED, f"{len(found)} threads begin with {name}: {likely}; write more of the id"
    )
