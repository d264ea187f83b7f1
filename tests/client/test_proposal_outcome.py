"""DecisionTracker settles proposals from the messages of a session."""

import asyncio

import pytest

from accord.client import Envelope, Rejected
from accord.client.proposal_outcome import BoundedDict, DecisionTracker
from accord.core.kernel.ballot import AnyOf
from accord.core.kernel.messages import Body
from accord.core.room.approval.gate_timeouts import GateTimeout
from accord.core.room.approval.gates import GateRequest
from accord.core.room.approval.grants import ToolExecute, ToolReject
from accord.core.room.approval.tool_proposals import ToolPropose
from accord.core.room.approval.votes import GateReject
from accord.core.room.room_settings import Category, GateResolution
from accord.core.room.state import Risk

PROPOSAL = ToolPropose(
    "sh", {}, "claude", Risk.LOW, "", requires_approval=True, category=Category.DEPLOY
)
GATE = GateRequest("tool", "p", AnyOf(1), 300, "")
GRANT = ToolExecute("p", ("bob",))


def envelope(id: str, body: Body, sender: str = "system", ref: str | None = None) -> Envelope:
    return Envelope(id, "", "s", sender, body, ref)


def tracker_after(*envelopes: Envelope) -> DecisionTracker:
    """The tracker of a session where `p` was proposed and gate `g` asks about it."""
    decisions = DecisionTracker(lambda: None)
    for item in (envelope("p", PROPOSAL, "claude"), envelope("g", GATE), *envelopes):
        decisions.receive(item)
    return decisions


@pytest.mark.parametrize(
    ("rejection", "reason", "by"),
    [
        (envelope("n", ToolReject("p", "bob", "No")), "No", "bob"),
        (envelope("n", ToolReject("g", "bob", "No")), "No", "bob"),
        (envelope("n", GateReject("g", "bob", "No")), "No", "bob"),
        (envelope("n", GateReject("p", "bob", "No")), "No", "bob"),
        (envelope("n", GateReject("?", "bob", "No"), ref="p"), "No", "bob"),
        (
            envelope("n", GateTimeout("g", 0, 1, GateResolution.REJECTED)),
            "was not approved in time",
            "system",
        ),
    ],
)
async def test_rejection_of_gate_or_proposal_settles_the_proposal(
    rejection: Envelope, reason: str, by: str
) -> None:
    with pytest.raises(Rejected, match=reason) as rejected:
        await tracker_after(rejection).wait_for("p")

    assert (rejected.value.proposal, rejected.value.by) == ("p", by)


@pytest.mark.parametrize(
    "other",
    [
        envelope("n", GateTimeout("g", 0, 1, GateResolution.ESCALATED)),
        envelope("n", GateTimeout("g", 0, 1, GateResolution.AUTO_APPROVED)),
        envelope("n", GateReject("another", "bob", "No")),
        envelope("n", ToolExecute("p", ()), sender="claude"),
        envelope("n", ToolExecute("q", ())),
    ],
)
async def test_unrelated_message_leaves_the_proposal_open(other: Envelope) -> None:
    decisions = tracker_after(other)
    waiting = [asyncio.create_task(decisions.wait_for("p")) for _ in range(2)]
    await asyncio.sleep(0)
    assert decisions

    decisions.receive(envelope("go", GRANT))

    assert [await item for item in waiting] == [GRANT, GRANT]
    assert not decisions


def test_bounded_dict_drops_the_oldest_entries() -> None:
    recent: BoundedDict[int] = BoundedDict(max_entries=3)
    for number in range(5):
        recent[str(number)] = number
    recent["4"] = 40

    assert recent == {"2": 2, "3": 3, "4": 40}
