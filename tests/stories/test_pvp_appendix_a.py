"""PVP's own example, as printed: Alice and Claude over real WebSockets, and a server that dies."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.request import urlopen

from accord.client import Client, RetryPolicy
from accord.client.connection.router import MessageStamp, new_message_stamp
from accord.core.kernel.ballot import AnyOf
from accord.core.room.approval.grants import ToolExecute
from accord.core.room.approval.tool_proposals import ToolResult
from accord.core.room.room_settings import AbsencePolicy, Category, SessionConfig
from accord.core.room.state import Risk
from tests.helpers.clients.listener import RecordingListener
from tests.helpers.pvp_appendix_a import APPENDIX_MESSAGES, APPENDIX_SESSION_ID
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves

SOON = RetryPolicy(first_delay_s=0.01, max_delay_s=0.1)
CONFIG = SessionConfig(
    require_approval_for=(Category.SHELL_EXECUTE, Category.FILE_WRITE),
    default_gate_quorum=AnyOf(1),
    allow_forks=True,
    max_participants=5,
    ordering_mode="causal",
    on_participant_timeout=AbsencePolicy.SKIP,
    heartbeat_interval_seconds=30,
    idle_timeout_seconds=120,
    away_timeout_seconds=300,
)


def as_printed(sender: str) -> Callable[[], MessageStamp]:
    """Ids and times as in the example, then whatever comes."""
    mine = (
        MessageStamp(each["id"], each["ts"])
        for each in APPENDIX_MESSAGES
        if each["sender"] == sender
    )
    return lambda: next(mine, None) or new_message_stamp()


def transcript(server: ServerProcess, reader: str) -> Iterator[dict[str, Any]]:
    """What the server has kept, as it is on the wire."""
    where = f"{server.url}/sessions/{APPENDIX_SESSION_ID}/transcript?as={reader}"
    with urlopen(where) as page:  # noqa: S310 - our own address
        yield from json.load(page)["messages"]


@proves("PVP-A-1", "PVP-A-2", "PVP-19.1-3", "PVP-19.5-2", "OPEN-37")
async def test_alice_and_claude_go_through_the_example_and_a_crash(
    open_server: ServerProcess,
) -> None:
    server = open_server
    alice = Client(server.url, id="alice_01", stamp=as_printed("alice_01"), retry=SOON)
    claude = Client(
        server.url, id="claude_01", kind="agent", stamp=as_printed("claude_01"), retry=SOON
    )
    async with alice, claude:
        # 1. Alice creates a session. 2. Claude agent joins.
        here = await alice.create(CONFIG, name="Auth Feature", id=APPENDIX_SESSION_ID)
        there = await claude.join(
            APPENDIX_SESSION_ID, roles=["driver"], name="Claude Assistant", capabilities=["prompt"]
        )
        async with RecordingListener(here) as hers, RecordingListener(there) as its:
            # 3. Alice submits a prompt.
            prompt = await here.prompt(
                "Implement JWT authentication middleware",
                "claude_01",
                context_keys=["requirements"],
            )
            await its.wait_for(lambda said: said.id == prompt)

            # 4. Claude proposes a shell command (triggers gate).
            proposal = await there.propose(
                "shell_execute",
                {"command": ["npm", "install", "jsonwebtoken"]},
                category=Category.SHELL_EXECUTE,
                risk=Risk.MEDIUM,
                description="Install jsonwebtoken package",
                requires_approval=True,
            )
            gate = await hers.wait_for(lambda said: said.type == "gate.request")
            assert gate.ref == proposal

            # 5. Alice approves, and only now may it run.
            await here.approve(proposal, "Go ahead")
            granted = await there.decision(proposal)
            assert granted.approved_by == ("alice_01",)
            kept = {said["id"]: said for said in transcript(server, "alice_01")}
            for printed, seq in zip(APPENDIX_MESSAGES, PLACES, strict=True):
                said = kept[printed["id"]]
                assert {name: said[name] for name in printed} == printed
                assert said["seq"] == seq

            # The server dies; when it is back, so are they, and Claude reports.
            await there.execute(granted)
            await asyncio.to_thread(server.restart)
            await there.output(granted, "added 1 package\\n", complete=True)
            done = await there.result(granted, success=True, duration_ms=1830)
            await hers.wait_for_seq(done.seq)
            await its.wait_for_seq(done.seq)

            await here.end("The middleware is there")
            await hers.wait_for_end()
            await its.wait_for_end()

        for ear in (hers, its):
            ear.check_once_in_order()
            assert ids() <= {said.id for said in ear.received}
            assert [said.id for said in ear.received if isinstance(said.body, ToolResult)] == [
                done.id
            ]
        started = [said for said in its.sequenced if isinstance(said.body, ToolExecute)]
        assert [said.sender for said in started] == ["system", "claude_01"]
        assert {said.seq for said in hers.sequenced} == {
            said.seq for said in its.sequenced if said is not started[1]
        }


def ids() -> set[str]:
    """The five ids of the example; three of them are not ULIDs, and all are taken as they are."""
    return {each["id"] for each in APPENDIX_MESSAGES}


# Create and announce, join and announce, prompt, proposal and gate, approval.
PLACES = (1, 3, 5, 6, 8)
