"""A signed policy on a real server: what is gated, refused, granted beforehand, and recorded."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from accord.api.policies import StandingGrantRequest
from accord.client import ServerRefused
from accord.core.policy.reported_call import (
    CallKind,
    Place,
    ReportedCall,
    reported_metadata,
)
from accord.core.policy.starter_policies import starter_policy
from accord.core.room.approval.grants import ToolExecute
from accord.core.room.approval.tool_proposals import ToolPropose
from accord.core.room.approval.votes import GateApprove
from accord.core.room.room_settings import Category
from accord.core.room.state import Risk
from accord.real_paths import resolve
from accord.shell_parser import parse_shell
from tests.helpers.clients.cli import CommandRun, run_accord
from tests.helpers.clients.three_member_session import ThreeMemberSession, make_client, open_session
from tests.helpers.git.repositories import create_repository
from tests.helpers.servers.server_process import ServerProcess, run_server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with run_server(tmp_path_factory.mktemp("server")) as running:
        yield running


class Shop:
    """A repository with an id, and the people who work on it."""

    def __init__(self, folder: Path, server: ServerProcess) -> None:
        self.folder, self.server = folder, server
        self.id = f"repo-{folder.parent.name}"
        create_repository(folder, {"pyproject.toml": ""}).try_text("config", "accord.repo", self.id)

    def accord(self, *words: str, who: str = "alice", kind: str = "human") -> CommandRun:
        roles = {"alice": ("admin", "driver"), "bob": ("driver", "approver")}
        token = self.server.issue_token(who, kind, roles.get(who, ("driver",)))
        return run_accord(*words, cwd=self.folder, ACCORD_URL=self.server.url, ACCORD_TOKEN=token)

    def call(self, command: str) -> ToolPropose:
        """What a hook sends before this command runs; the agent calls it harmless."""
        place = Place(str(self.folder), str(self.folder), str(self.folder.parent))
        call = ReportedCall(CallKind.SHELL, "Bash", {"command": command}, place)
        return ToolPropose(
            tool_name="Bash",
            arguments={"command": command},
            agent="claude",
            risk_level=Risk.LOW,
            description="harmless",
            requires_approval=False,
            category=Category.FILE_READ,
            metadata=reported_metadata(resolve(call, parse_shell), self.id, "claude-code"),
        )


@pytest.fixture
def shop(tmp_path: Path, server: ServerProcess) -> Shop:
    folder = tmp_path / "shop"
    folder.mkdir()
    return Shop(folder, server)


@pytest.fixture
async def room(server: ServerProcess) -> AsyncIterator[ThreeMemberSession]:
    async with open_session(server) as opened:
        yield opened


async def proposed(room: ThreeMemberSession, server: ServerProcess, body: ToolPropose) -> Any:
    """The proposal as the session has it, and whether it may run."""
    receipt = await room.claude.send(body)
    detail = await make_client(server, "alice").session(room.alice.id)
    return next(tool for tool in detail.tools if tool.id == receipt.id)


async def test_without_a_signed_policy_only_reads_pass(
    room: ThreeMemberSession, server: ServerProcess, shop: Shop
) -> None:
    read = await proposed(room, server, shop.call("git status"))
    tests = await proposed(room, server, shop.call("pytest -q"))

    assert (read.approved, read.computed.policy) == (True, None)
    assert (tests.approved, tests.category) == (False, "shell_execute")
    assert tests.computed.claimed_category == "file_read"


async def test_the_server_classes_by_the_newest_signed_text_and_not_by_the_file(
    room: ThreeMemberSession, server: ServerProcess, shop: Shop
) -> None:
    assert shop.accord("policy", "init").code == 0
    file = shop.folder / ".accord/policy.toml"
    assert file.read_text() == starter_policy(["python"])
    signed = shop.accord("policy", "sign", "--yes", "--json")
    assert (signed.code, signed.json["by"]) == (0, "alice")
    rule = 'run = ["git push **"]\ncategory = "file_read"\nrisk = "low"\n'
    file.write_text(f"version = 1\n[[command]]\n{rule}")

    push = await proposed(room, server, shop.call("git push origin main"))
    older = (await make_client(server, "bob").signed_policy(shop.id)).digest

    assert (push.approved, push.category, push.risk_level) == (False, "deploy", "high")
    assert push.computed.policy == signed.json["digest"] == older
    assert "sends commits to a remote" in push.computed.explanation
    card = shop.accord("gates", "--json", who="bob").json
    assert card
    shown = shop.accord("gates", who="bob").out
    assert "found by the server by the signed policy" in " ".join(shown.replace("│", " ").split())


async def test_an_agent_and_a_person_without_an_admin_token_sign_nothing(shop: Shop) -> None:
    shop.accord("policy", "init")

    for who, kind in (("bob", "human"), ("claude", "agent")):
        done = shop.accord("policy", "sign", "--yes", who=who, kind=kind)
        assert done.code == 3, done
    with pytest.raises(ServerRefused, match="No policy is signed"):
        await make_client(shop.server, "alice").signed_policy(shop.id)


@pytest.mark.parametrize(
    "command", ["accord approve 01JZ0Q6Y", "bash", "python -m accord policy sign --yes", "ssh host"]
)
async def test_what_agents_may_never_do_is_refused_and_leaves_no_trace(
    room: ThreeMemberSession, server: ServerProcess, shop: Shop, command: str
) -> None:
    with pytest.raises(ServerRefused, match="no approval changes that") as refused:
        await room.claude.send(shop.call(command))

    assert refused.value.code == "UNAUTHORIZED"
    assert not (await make_client(server, "alice").session(room.alice.id)).tools


async def test_a_command_that_the_parser_fails_on_is_refused_and_leaves_no_trace(
    room: ThreeMemberSession, server: ServerProcess, shop: Shop
) -> None:
    body = shop.call("ls")

    with pytest.raises(ServerRefused, match="cannot be analysed") as refused:
        await room.claude.send(replace(body, arguments={"command": "@(a|b) " * 6700}))

    assert refused.value.code == "INVALID_MESSAGE"
    assert not (await make_client(server, "alice").session(room.alice.id)).tools
    assert (await proposed(room, server, shop.call("git status"))).approved


async def test_a_forged_class_and_a_malformed_report_are_refused(
    room: ThreeMemberSession, shop: Shop
) -> None:
    body = shop.call("rm -rf x")
    forged: tuple[dict[str, Any], ...] = (
        {"computed": {}},
        {"reported": {"kind": "read"}},
        {"reported": None},
    )
    for metadata in forged:
        with pytest.raises(ServerRefused) as refused:
            await room.claude.send(replace(body, metadata=metadata))
        assert refused.value.code == "INVALID_MESSAGE"


async def test_a_standing_grant_lets_calls_alike_run_and_approves_no_commit(
    room: ThreeMemberSession, server: ServerProcess, shop: Shop
) -> None:
    shop.accord("policy", "init")
    shop.accord("policy", "sign", "--yes")
    session = room.alice.id
    words = ("--run", "pytest **", "--count", "2", "--session", session)
    given = shop.accord("policy", "grant", "claude", *words, "--json", who="bob")
    assert given.code == 0, given.err
    at_rest = shop.accord("policy", "list", "--json", who="alice").json["standing_grants"]
    assert [each["used"] for each in at_rest] == [0], "also where no gate is open"

    run = await proposed(room, server, shop.call("pytest -q"))
    other = await proposed(room, server, shop.call("pytest -q && rm -rf x"))
    listed = shop.accord("policy", "list", "--json", who="alice").json["standing_grants"]

    shown = shop.accord("session", "show", session).out

    assert (run.approved, other.approved) == (True, False)
    assert "Granted  bob to claude: pytest **; used 1 of 2, until " in shown
    assert [(each["grantor"], each["used"]) for each in listed] == [("bob", 1)]
    cleared = await room.bob_listener.wait_for(lambda each: isinstance(each.body, ToolExecute))
    assert isinstance(cleared.body, ToolExecute)
    assert (cleared.body.approved_by, cleared.body.standing) == ((), ("bob",))
    vote = await room.bob_listener.wait_for(lambda each: isinstance(each.body, GateApprove))
    assert isinstance(vote.body, GateApprove)
    assert (vote.sender, vote.body.approver) == ("system", "bob")
    assert "by the standing grant" in (vote.body.comment or "")

    ended = shop.accord("policy", "revoke", listed[0]["id"], "--reason", "enough")
    assert ended.code == 0, ended.err
    assert not (await proposed(room, server, shop.call("pytest -q"))).approved


async def test_an_agent_gives_no_standing_grant(room: ThreeMemberSession, shop: Shop) -> None:
    wanted = StandingGrantRequest(agent="claude", run=("rm **",), count=1, seconds=60)

    with pytest.raises(ServerRefused):
        await make_client(shop.server, "claude").give_standing_grant(room.alice.id, wanted)
    with pytest.raises(ServerRefused):
        await make_client(shop.server, "olga").give_standing_grant(room.alice.id, wanted)


async def test_past_sessions_show_what_would_have_waited(
    room: ThreeMemberSession, server: ServerProcess, shop: Shop
) -> None:
    for command in ("git status", "ls", "pytest -q", "git push"):
        await room.claude.send(shop.call(command))
    shop.accord("policy", "init")

    told = shop.accord("policy", "test", "--session", room.alice.id)
    counted = shop.accord("policy", "test", "--session", room.alice.id, "--json").json

    assert "2 of 4 calls on record would have waited" in told.out
    assert "only the signed text counts" in told.out
    assert counted["outcomes"] == {"passes": 2, "approval": 2}


def test_one_command_is_explained(shop: Shop) -> None:
    told = shop.accord("policy", "test", "git push").out
    assert "deploy, high: needs approval because git push" in told
    assert "refused to agents" in shop.accord("policy", "test", "accord approve x").out
    assert json.loads(shop.accord("policy", "test", "ls", "--json").out)["outcome"] == "passes"
