"""`GET /pacts`: tasks and features of repositories, for members of their bound sessions alone."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.helpers.clients.bridge_client import send_action
from tests.helpers.clients.http_client import HttpClient
from tests.helpers.page.board_scene import PactLog, sha
from tests.helpers.servers.server_process import ServerProcess


async def bound(server: ServerProcess, session: str, directory: Path) -> str:
    """The id of a repository whose pact the session shows."""
    repo = f"shop-{uuid4().hex[:8]}"
    for action, about in (
        ("pact-changed", {"directory": str(directory)}),
        ("session-started", {"session": session}),
        ("pact-changed", {"directory": str(directory)}),
    ):
        path = server.home / "bridge.sock"
        answer = await asyncio.to_thread(send_action, path, action, repo=repo, **about)
        assert "error" not in answer, answer
    return repo


async def read(who: HttpClient, path: str) -> dict[str, Any]:
    response = await who.http.get(path)
    assert response.status_code == 200, response.text
    content: dict[str, Any] = response.json()
    return content


async def test_board_has_evidence_and_who_did_and_accepted_it(
    alice: HttpClient, bob: HttpClient, signed: ServerProcess, tmp_path: Path
) -> None:
    session = await alice.create()
    log = PactLog(tmp_path / ".pact")
    log.assign("T1", "cart", "claude", "alice", spec="A cart")
    log.add("checkpoint", "claude", "T1", "cart", ago=9, evidence="12 pass", commit=sha("a1"))
    log.add("changes_requested", "alice", "T1", "cart", ago=8, reason="And empty?")
    log.add("checkpoint", "claude", "T1", "cart", ago=7, evidence="13 pass", commit=sha("a2"))
    log.add("accept", "alice", "T1", "cart", ago=6, commit=sha("a2"))
    log.assign("T2", "cart", "claude", "alice", spec="A total", deps=["T1"])
    repo = await bound(signed, session, log.directory)

    (entry,) = [each for each in (await read(alice, "/pacts"))["pacts"] if each["repo"] == repo]
    assert (entry["tasks"], entry["accepted"], entry["awaiting_review"]) == (2, 1, 0)
    board = await read(alice, f"/pacts/{repo}")
    assert (board["project"], board["events"], board["trouble"]) == ("harbor-api", 7, "")
    assert [each["id"] for each in board["sessions"]] == [session]
    (cart,) = board["features"]
    assert (cart["accepted"], cart["total"], cart["open"]) == (1, 2, ["T2"])
    first, second = cart["tasks"]
    assert (first["status"], first["evidence"], first["commit"]) == (
        "accepted",
        "13 pass",
        sha("a2"),
    )
    assert first["accepted_at"]
    told = [(each["by"], each["kind"], each["words"]) for each in first["history"]]
    assert told[1:] == [
        ("claude", "checkpoint", "12 pass"),
        ("alice", "changes_requested", "And empty?"),
        ("claude", "checkpoint", "13 pass"),
        ("alice", "accept", ""),
    ]
    assert (second["status"], second["deps"], second["accepted_at"]) == ("assigned", ["T1"], None)

    for path in (f"/pacts/{repo}", "/pacts/unknown"):
        refused = await bob.http.get(path)
        assert refused.status_code == 404
        assert "No session of yours is bound to a pact" in refused.text
    assert [each for each in (await read(bob, "/pacts"))["pacts"] if each["repo"] == repo] == []


async def test_seat_of_a_member_has_its_name(
    alice: HttpClient, signed: ServerProcess, tmp_path: Path
) -> None:
    session = await alice.create()
    claude = HttpClient.with_token(signed, "claude", kind="agent", roles=["driver"])
    await claude.join(session, kind="agent")
    await claude.close()
    repo = await bound(signed, session, PactLog(tmp_path / ".pact").directory)

    seats = {each["id"]: each for each in (await read(alice, f"/pacts/{repo}"))["seats"]}
    assert (seats["claude"]["member"], seats["claude"]["kind"]) == ("claude", "agent")
    assert (seats["codex"]["member"], seats["codex"]["kind"]) == (None, None)


async def test_who_left_the_session_no_longer_sees_its_pact(
    alice: HttpClient, bob: HttpClient, signed: ServerProcess, tmp_path: Path
) -> None:
    session = await alice.create()
    await bob.join(session)
    repo = await bound(signed, session, PactLog(tmp_path / ".pact").directory)
    assert (await bob.http.get(f"/pacts/{repo}")).status_code == 200

    await bob.send("session.leave", session, {"reason": "Done"})

    assert (await bob.http.get(f"/pacts/{repo}")).status_code == 404
