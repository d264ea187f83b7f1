"""Three real servers on one PostgreSQL log."""

import asyncio
import shutil
from base64 import urlsafe_b64decode
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.request import Request, urlopen

import msgspec
import pytest

from accord.client import Client, RetryPolicy, ServerRefused, Session, SignedOut
from accord.core.room.shared_context.secrets import SecretShare
from tests.helpers.clients.cli import run_accord
from tests.helpers.clients.listener import RecordingListener
from tests.helpers.servers.postgres_server import SHARED_POSTGRES
from tests.helpers.servers.server_group import ServerGroup, run_servers
from tests.helpers.servers.server_process import ServerProcess
from tests.helpers.waiting import until

SOON = RetryPolicy(first_delay_s=0.01, max_delay_s=0.05)
ROLES = {
    "alice": ("admin", "driver", "approver"),
    "bob": ("driver", "approver"),
    "claude": ("driver",),
}


class Team:
    """People and an agent, who connect to any of the servers."""

    def __init__(self, servers: ServerGroup, stack: AsyncExitStack) -> None:
        self.servers = servers
        self.tokens = {
            id: servers[0].issue_token(id, "agent" if id == "claude" else "human", roles)
            for id, roles in ROLES.items()
        }
        self._stack = stack

    async def client(self, id: str, server: ServerProcess) -> Client:
        made = Client(server.url, token=self.tokens[id], retry=SOON)
        return await self._stack.enter_async_context(made)

    async def listen(self, session: Session) -> RecordingListener:
        return await self._stack.enter_async_context(RecordingListener(session))

    def presences(self, session: str, server: ServerProcess) -> dict[str, str]:
        """Who is there, as this server shows it."""
        detail = server.request_as(self.tokens["alice"], f"/sessions/{session}")
        return {member["id"]: member["presence"] for member in detail["members"]}

    async def until_presence(self, session: str, member: str, presence: str) -> None:
        """Wait until every running server shows this presence."""
        await until(
            lambda: all(
                self.presences(session, server)[member] == presence
                for server in self.servers.running()
            )
        )


@pytest.fixture(scope="module")
def database() -> str:
    return SHARED_POSTGRES.server().new_database()


@pytest.fixture(scope="module")
def servers(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerGroup]:
    with run_servers(tmp_path_factory.mktemp("servers"), [database] * 3) as group:
        yield group


@pytest.fixture
async def team(servers: ServerGroup) -> AsyncIterator[Team]:
    for server in servers.servers:
        if not server.is_running:
            server.start()
    await until(lambda: all(map(knows_all, servers.servers)))
    async with AsyncExitStack() as stack:
        yield Team(servers, stack)


def knows_all(server: ServerProcess) -> bool:
    """Whether it has noticed the others, which takes up to a second after they start."""
    headers = {"Authorization": f"Bearer {server.ready.admin_token}"}
    request = Request(f"{server.url}/metrics", headers=headers)  # noqa: S310 - our own
    with urlopen(request, timeout=10) as answer:  # noqa: S310 - the same
        return b"\naccord_servers 3.0\n" in answer.read()


async def test_session_spans_three_servers(team: Team) -> None:
    one, two, three = team.servers.servers
    alice = await (await team.client("alice", one)).create()
    bob = await (await team.client("bob", two)).join(alice.id)
    claude = await (await team.client("claude", three)).join(alice.id)
    hears = [await team.listen(each) for each in (alice, bob, claude)]

    asked = await alice.prompt("Build it", agent="claude")
    await hears[2].wait_for(lambda envelope: envelope.id == asked)
    proposal = await claude.propose("shell", {"command": "make"}, category="shell_execute")
    await hears[1].wait_for(lambda envelope: envelope.id == proposal)
    await bob.approve(proposal)
    granted = await claude.decision(proposal)
    await claude.execute(granted)
    done = await claude.result(granted, success=True, duration_ms=1)
    for hearer in hears:
        await hearer.wait_for(lambda envelope: envelope.id == done.id)

    orders = [[e.id for e in hearer.sequenced] for hearer in hears]
    shared = set.intersection(*map(set, orders))
    assert {asked, proposal, done.id} <= shared
    first, *others = [[id for id in order if id in shared] for order in orders]
    assert all(order == first for order in others)
    for hearer in hears:
        hearer.check_once_in_order()


async def test_drafts_reach_other_servers_in_one_order_and_before_their_prompt(team: Team) -> None:
    one, two, three = team.servers.servers
    alice = await (await team.client("alice", one)).create()
    bob = await (await team.client("bob", two)).join(alice.id)
    claude = await (await team.client("claude", three)).join(alice.id)
    hears = [await team.listen(each) for each in (alice, bob, claude)]
    here = await claude.announce(name="Claude is here")
    for hearer in hears:
        await hearer.wait_for(lambda envelope: envelope.id == here.id)

    async def write(session: Session, name: str) -> None:
        draft = session.draft(agent="claude")
        for number in range(20):
            await draft.write(f"{name} {number}")
        await draft.submit()

    await asyncio.gather(write(alice, "alice"), write(bob, "bob"))
    last = await claude.announce(name="Claude")
    for hearer in hears:
        await hearer.wait_for(lambda envelope: envelope.id == last.id)

    def texts(hearer: RecordingListener, sender: str) -> list[str]:
        said = [e for e in hearer.received if e.type in {"prompt.draft", "prompt.submit"}]
        return [e.body.content for e in said if e.sender == sender]  # type: ignore[attr-defined]  # both have one

    for hearer in hears:
        for name in ("alice", "bob"):
            numbers = [int(text.split()[1]) for text in texts(hearer, name)]
            assert numbers == sorted(numbers), "in the order of their sender"
    heard = {e.sender for e in hears[2].received if e.type == "prompt.draft"}
    assert heard == {"alice", "bob"}
    drafts = [[e.id for e in h.received if e.type == "prompt.draft"] for h in hears]
    assert len(drafts[2]) > 20, "most arrive"
    common = set.intersection(*map(set, drafts))
    first, *others = [[id for id in order if id in common] for order in drafts]
    assert all(order == first for order in others)


async def test_killed_server_costs_a_reconnect_and_its_members_are_gone_once(team: Team) -> None:
    one, two, three = team.servers.servers
    alice = await (await team.client("alice", one)).create()
    await (await team.client("bob", three)).join(alice.id)
    await (await team.client("claude", three)).join(alice.id)
    hears = await team.listen(alice)
    three.kill()
    back = await (await team.client("claude", two)).join(alice.id)
    await back.announce(name="Claude is here")

    await team.until_presence(alice.id, "bob", "disconnected")
    await team.until_presence(alice.id, "claude", "active")
    await alice.announce(name="Alice again")
    await hears.wait_for(lambda e: e.sender == "alice" and e.type == "participant.announce")
    gone = [
        e.body.participant  # type: ignore[attr-defined]  # such a body has one
        for e in hears.received
        if e.type == "presence.update" and e.body.status == "disconnected"  # type: ignore[attr-defined]
    ]
    assert gone == ["bob"]


async def test_start_and_stop_of_one_server_leave_members_of_the_others_connected(
    team: Team,
) -> None:
    one, two, three = team.servers.servers
    alice = await (await team.client("alice", one)).create()
    await (await team.client("bob", two)).join(alice.id)
    hears = await team.listen(alice)

    three.stop()
    three.start()

    assert team.presences(alice.id, three) == {"alice": "active", "bob": "active"}
    assert "presence.update" not in {e.type for e in hears.received}


async def test_member_on_two_servers_is_present_until_both_connections_end(team: Team) -> None:
    one, two, _ = team.servers.servers
    alice = await (await team.client("alice", one)).create()
    hears = await team.listen(alice)
    async with Client(two.url, token=team.tokens["bob"], retry=SOON) as second:
        there = await second.join(alice.id)
        async with Client(one.url, token=team.tokens["bob"], retry=SOON) as first:
            await first.join(alice.id)
        said = await there.announce(name="still here")
        await hears.wait_for(lambda envelope: envelope.id == said.id)
        assert team.presences(alice.id, one)["bob"] == "active"
    await team.until_presence(alice.id, "bob", "disconnected")


async def test_revoked_token_ends_connections_to_every_server_within_a_second(team: Team) -> None:
    one, two, _ = team.servers.servers
    token = one.issue_token("eve")
    async with Client(two.url, token=token, retry=SOON) as eve:
        session = await eve.create()
        hears = await team.listen(session)
        jti = msgspec.json.decode(jwt_part(token))["jti"]
        began = asyncio.get_running_loop().time()
        one.admin_request("DELETE", f"/admin/tokens/{jti}")
        with pytest.raises(SignedOut):
            await hears.wait_for_end()
        assert asyncio.get_running_loop().time() - began < 1.0


async def test_secret_is_not_shared_with_a_member_on_another_server(team: Team) -> None:
    one, two, _ = team.servers.servers
    alice = await (await team.client("alice", one)).create()
    bob = await (await team.client("bob", two)).join(alice.id)
    hears = await team.listen(bob)
    await alice.announce(name="so that the claim of bob has arrived")
    await hears.wait_for(lambda envelope: envelope.type == "participant.announce")

    with pytest.raises(ServerRefused, match="bob is connected to another server"):
        await alice.send(SecretShare("key", ("bob",), "a value that stays here"))


async def test_server_with_other_keys_is_refused(
    servers: ServerGroup, database: str, tmp_path: Path
) -> None:
    flags = ("--port", "0", "--store", database, "--data-dir", str(tmp_path / "other"))
    ran = run_accord("serve", *flags)

    assert ran.code == 5, ran.err
    assert "Other servers on this log sign with the key" in ran.err
    assert not list((tmp_path / "other" / "keys").glob("*.pem"))
    shutil.copytree(servers[0].home / "keys", tmp_path / "same" / "home" / "keys")
    fourth = ServerProcess(tmp_path / "same", "token", "--store", database)
    try:
        fourth.start().stop()
    finally:
        if fourth.is_running:
            fourth.kill()


def jwt_part(token: str) -> bytes:
    """The claims of a token."""
    part = token.split(".")[1]
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))
