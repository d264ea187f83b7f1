"""What became of proposals, read from what the room hears."""

import asyncio

import pytest

from accord.client import Envelope, Rejected
from accord.client.decisions import Decisions, Recent
from accord.core.kernel.ballot import AnyOf
from accord.core.kernel.log import Body
from accord.core.room.gates import GateRequest
from accord.core.room.grants import ToolExecute
from accord.core.room.state import Category, Resolution, Risk
from accord.core.room.timeouts import GateTimeout
from accord.core.room.tools import ToolPropose
from accord.core.room.votes import GateReject
from accord.core.room.waiting import ToolReject

PROPOSAL = ToolPropose(
    "sh", {}, "claude", Risk.LOW, "", requires_approval=True, category=Category.DEPLOY
)
GATE = GateRequest("tool", "p", AnyOf(1), 300, "")
GRANT = ToolExecute("p", ("bob",))


def said(id: str, body: Body, sender: str = "system", ref: str | None = None) -> Envelope:
    return Envelope(id, "", "s", sender, body, ref)


def heard(*envelopes: Envelope) -> Decisions:
    """Decisions of a room where `p` was proposed and gate `g` asks about it."""
    decisions = Decisions(lambda: None)
    for envelope in (said("p", PROPOSAL, "claude"), said("g", GATE), *envelopes):
        decisions.hear(envelope)
    return decisions


@pytest.mark.parametrize(
    ("no", "reason", "by"),
    [
        (said("n", ToolReject("p", "bob", "No")), "No", "bob"),
        (said("n", ToolReject("g", "bob", "No")), "No", "bob"),
        (said("n", GateReject("g", "bob", "No")), "No", "bob"),
        (said("n", GateReject("p", "bob", "No")), "No", "bob"),
        (said("n", GateReject("?", "bob", "No"), ref="p"), "No", "bob"),
        (said("n", GateTimeout("g", 0, 1, Resolution.REJECTED)), "Nobody approved", "system"),
    ],
)
async def test_a_no_by_whatever_name_is_about_the_proposal(
    no: Envelope, reason: str, by: str
) -> None:
    with pytest.raises(Rejected, match=reason) as rejected:
        await heard(no).of("p")

    assert (rejected.value.proposal, rejected.value.by) == ("p", by)


@pytest.mark.parametrize(
    "other",
    [
        said("n", GateTimeout("g", 0, 1, Resolution.ESCALATED)),
        said("n", GateTimeout("g", 0, 1, Resolution.AUTO_APPROVED)),
        said("n", GateReject("another", "bob", "No")),
        said("n", ToolExecute("p", ()), sender="claude"),
        said("n", ToolExecute("q", ())),
    ],
)
async def test_what_does_not_settle_it_leaves_it_open(other: Envelope) -> None:
    decisions = heard(other)
    waiting = [asyncio.create_task(decisions.of("p")) for _ in range(2)]
    await asyncio.sleep(0)
    assert decisions

    decisions.hear(said("go", GRANT))

    assert [await each for each in waiting] == [GRANT, GRANT]
    assert not decisions


def test_only_what_is_recent_is_kept() -> None:
    recent: Recent[int] = Recent(most=3)
    for number in range(5):
        recent[str(number)] = number
    recent["4"] = 40

    assert recent == {"2": 2, "3": 3, "4": 40}
