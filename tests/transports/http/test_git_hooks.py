"""`POST /git/{action}`: the git bridge for members of a session on other machines."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.helpers.clients.http_client import HttpClient
from tests.helpers.servers.server_process import ServerProcess

REPO, OTHER_REPO = "01M7GMJP1Y4T7CP7A3QNGAT9X2", "01M7GMJP1Y4T7CP7A3QNGAT9X3"
PROMPT = {
    "content": "Add a login",
    "target_agent": "bot",
    "contributors": [],
    "context_keys": [],
}
SHA = "a" * 40


async def ask(who: HttpClient, action: str, **facts: Any) -> httpx.Response:
    return await who.http.post(f"/git/{action}", json=facts)


async def answered(who: HttpClient, action: str, **facts: Any) -> dict[str, Any]:
    response = await ask(who, action, **facts)
    assert response.status_code == 200, response.text
    content: dict[str, Any] = response.json()
    return content


@pytest.fixture
async def bot(signed: ServerProcess) -> AsyncIterator[HttpClient]:
    web = HttpClient.with_token(signed, "bot", kind="agent", roles=["driver"])
    yield web
    await web.close()


@pytest.fixture
async def session(alice: HttpClient, bot: HttpClient) -> str:
    """A session of Alice's with an agent and a prompt."""
    id = await alice.create()
    await bot.join(id, kind="agent")
    await alice.send("prompt.submit", id, PROMPT)
    return id


async def test_a_member_elsewhere_binds_a_session_and_records_a_commit(
    alice: HttpClient, session: str
) -> None:
    bound = await answered(alice, "session-started", repo=REPO, session=session)
    context = await answered(alice, "commit-context", repo=REPO)
    made = await answered(alice, "commit-created", repo=REPO, sha=SHA, changes=[])
    listed = await answered(alice, "commits", repo=REPO)

    assert bound["sessions"] == [session]
    assert context["session"] == session
    assert made["decision"] == context["decision"]
    assert "Add a login" in str(made["note"])
    assert [link["sha"] for link in listed["commits"]] == [SHA]
    assert (await answered(alice, "session-ended", repo=REPO, session=session))["sessions"] == []


async def test_a_commit_is_known_in_every_clone_to_members_of_its_session(
    alice: HttpClient, bob: HttpClient, session: str
) -> None:
    """Clones have ids of their own, and a commit is reported by the one it was made in."""
    sha = "d" * 40
    await answered(
        alice, "commit-created", repo="clone-of-alice", session=session, sha=sha, changes=[]
    )
    stranger = await ask(bob, "extended-metadata", repo="clone-of-bob", sha=sha)
    await bob.join(session)
    member = await answered(bob, "extended-metadata", repo="clone-of-bob", sha=sha)

    assert (stranger.status_code, "Add a login" in stranger.text) == (404, False)
    assert member == await answered(alice, "extended-metadata", repo="clone-of-alice", sha=sha)
    assert "Add a login" in str(member["note"])


async def test_a_later_report_of_a_commit_does_not_replace_the_first_elsewhere(
    alice: HttpClient, bob: HttpClient, session: str
) -> None:
    sha = "e" * 40
    first = await answered(
        alice, "commit-created", repo="clone-of-alice", session=session, sha=sha, changes=[]
    )
    await bob.join(session)
    later = await answered(
        bob, "commit-created", repo="0-clone", session=session, sha=sha, changes=[]
    )
    told = await answered(bob, "extended-metadata", repo="clone-of-carol", sha=sha)

    assert told["decision"] == first["decision"] != later["decision"]
    own = await answered(bob, "extended-metadata", repo="0-clone", sha=sha)
    assert own["decision"] == later["decision"]


async def test_a_stranger_learns_nothing_about_a_repository(
    alice: HttpClient, bob: HttpClient, session: str
) -> None:
    await answered(alice, "session-started", repo=OTHER_REPO, session=session)
    await answered(alice, "commit-created", repo=OTHER_REPO, sha=SHA, changes=[])

    assert (await answered(bob, "status", repo=OTHER_REPO))["sessions"] == []
    for after in (0, 1, 7):
        listed = await answered(bob, "commits", repo=OTHER_REPO, after=after)
        assert listed == {"commits": [], "next": after}
    for action, facts in {
        "commit-context": {},
        "commit-coverage": {},
        "commit-created": {"sha": SHA},
        "extended-metadata": {"sha": SHA},
        "session-started": {},
        "session-ended": {},
    }.items():
        for named in ({"session": session}, {}):
            response = await ask(bob, action, repo=OTHER_REPO, **facts, **named)
            assert response.status_code in {400, 404}, (action, response.text)
            assert "Add a login" not in response.text
    assert (await answered(alice, "status", repo=OTHER_REPO))["sessions"] == [session]


async def test_a_fork_is_recorded_by_its_readers_alone(
    alice: HttpClient, bob: HttpClient, session: str
) -> None:
    await bob.join(session)
    prompted = await alice.send("prompt.submit", session, PROMPT)
    fork = {"name": "aside", "reason": "To see", "from_point": prompted["id"]}
    members = {"copy_context": False, "participants": ["bot"]}
    await alice.send("fork.create", session, fork | members)
    detail = (await alice.http.get(f"/sessions/{session}")).json()
    (id,) = [each["id"] for each in detail["forks"]]
    await alice.send("prompt.submit", session, PROMPT | {"content": "Only here"}, fork=id)
    facts = {"repo": REPO, "session": session, "fork": id}

    assert (await answered(alice, "commit-context", **facts))["fork"] == id
    assert (await ask(bob, "commit-context", **facts)).status_code == 404
    await answered(alice, "commit-created", **facts, sha="b" * 40, changes=[])
    for action in ("commit-created", "extended-metadata"):
        response = await ask(bob, action, **facts, sha="b" * 40)
        assert response.status_code == 404
        assert "Only here" not in response.text
    assert (await answered(bob, "commits", repo=REPO)) == {"commits": [], "next": 0}
    await alice.send("prompt.submit", session, PROMPT)
    await answered(alice, "commit-created", repo=REPO, session=session, sha="9" * 40, changes=[])
    all_of_them = await answered(alice, "commits", repo=REPO, session=session)
    own = await answered(bob, "commits", repo=REPO, limit=1)
    assert len(all_of_them["commits"]) == 2
    assert own == {"commits": all_of_them["commits"][1:], "next": all_of_them["next"]}


async def test_an_observer_records_nothing(
    alice: HttpClient, signed: ServerProcess, session: str
) -> None:
    eve = HttpClient.with_token(signed, "eve", roles=["observer"])
    await eve.join(session, roles=["observer"])
    response = await ask(eve, "commit-created", repo=REPO, session=session, sha="c" * 40)
    await eve.close()

    assert response.status_code == 403
    assert (await answered(alice, "commits", repo=REPO, session=session))["commits"] == []


async def test_an_agent_is_not_believed_about_its_own_commit(
    alice: HttpClient, bot: HttpClient, session: str
) -> None:
    proposal = {
        "tool_name": "write_file",
        "arguments": {"path": "a.py", "content": "a = 1\n"},
        "agent": "bot",
        "risk_level": "low",
        "description": "Write a.py",
        "requires_approval": True,
        "category": "file_write",
    }
    made = await bot.send("tool.propose", session, proposal)
    no_one = {"tool_proposal": made["id"], "approver": "alice"}
    await alice.send("tool.approve", session, no_one)
    result = {"tool_proposal": made["id"], "success": True, "result": "done", "duration_ms": 1}
    await bot.send("tool.result", session, result)
    blob = "1337a530cb510d2cd1d7e8d05d5e4ca8d9ec1d2f"
    facts = {
        "repo": "bots-repo",
        "session": session,
        "sha": "d" * 40,
        "committer": "carol",
        "changes": [{"path": "a.py", "after": blob, "mode": "100644"}],
        "final": True,
    }

    (decision,) = (await answered(bot, "commit-created", **facts))["note"]["decisions"]

    assert not decision.get("approvals")
    assert not decision.get("coverage")
    assert "carol" not in str(decision["decided_by"])


async def test_a_stranger_binds_nothing_to_a_repository_of_others(
    alice: HttpClient, bob: HttpClient, session: str
) -> None:
    await answered(alice, "session-started", repo="alices-repo", session=session)
    own = await bob.create()
    response = await ask(bob, "session-started", repo="alices-repo", session=own)

    assert response.status_code == 403
    assert (await answered(alice, "status", repo="alices-repo"))["sessions"] == [session]


async def test_a_directory_of_the_server_is_never_taken_from_the_network(
    alice: HttpClient, session: str
) -> None:
    facts = {"repo": REPO, "session": session, "directory": "/etc"}
    assert (await ask(alice, "session-started", **facts)).status_code == 400
    for action in ("pact-changed", "places", "place-removed", "reset", "message", "nonsense"):
        assert (await ask(alice, action, repo=REPO, directory="/etc")).status_code == 404


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"repo": 1}', b"", b'{"repo": "a b"}'])
async def test_a_body_that_is_not_the_action_s_is_refused(alice: HttpClient, body: bytes) -> None:
    response = await alice.http.post("/git/commit-context", content=body)

    assert response.status_code == 400
    assert response.json()["error"]["code"]
