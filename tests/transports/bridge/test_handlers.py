"""The git bridge over its socket, at a real server: what commits are told and what is kept."""

import asyncio
import json
import re
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from accord.core.provenance.coverage.file_states import blob_id
from accord.core.provenance.decision_commit import decisions_of
from tests.helpers.attacks.approval_scene import PROMPT, PROPOSAL, Scene, scene
from tests.helpers.clients import bridge_client
from tests.helpers.clients.bridge_client import REPO_ID
from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves

A, B, C = "a" * 40, "b" * 40, "c" * 40


class Work(NamedTuple):
    """A session with somebody who asks and approves, an agent, and the bridge."""

    talk: Scene
    bob: WebSocketClient
    path: Path

    @property
    def session(self) -> str:
        return self.talk.session

    async def ask(self, action: str, **said: Any) -> dict[str, Any]:
        return await asyncio.to_thread(
            bridge_client.send_action,
            self.path,
            action,
            **{"repo": REPO_ID, "session": self.session} | said,
        )

    async def leave(self) -> None:
        for wire in (self.talk.alice, self.talk.bot, self.bob):
            await wire.socket.close()

    async def prompt(self, content: str = "Add a login") -> str:
        """Alice asks the agent."""
        said = await self.talk.alice.send(
            "prompt.submit", self.session, PROMPT | {"content": content}
        )
        await self.talk.bot.receive_until("prompt.submit", content=content)
        return said

    async def tool(self, prompt: str, *, finish: bool = True, **proposed: Any) -> str:
        """The agent proposes, Bob approves, it runs."""
        bot = self.talk.bot
        proposal = await bot.send("tool.propose", self.session, PROPOSAL | proposed, ref=prompt)
        await self.bob.receive_until("gate.request", action_ref=proposal)
        vote = {"tool_proposal": proposal, "approver": "bob", "comment": "Fine"}
        await self.bob.send("tool.approve", self.session, vote)
        await bot.receive_until("tool.execute", tool_proposal=proposal)
        if finish:
            await self.finish(proposal)
        return proposal

    async def finish(self, proposal: str, **said: Any) -> None:
        """It is done."""
        result = {"tool_proposal": proposal, "success": True, "duration_ms": 5}
        sure = {"metadata": {"confidence": 0.87}}
        await self.talk.bot.send("tool.result", self.session, result | sure | said)
        await self.bob.receive_until("tool.result", tool_proposal=proposal)


def writes(path: str, content: str | None = None) -> dict[str, Any]:
    """A proposal to write a file, by default as `Repo.commit` of the stories does."""
    text = f"{path}\n" if content is None else content
    return {
        "tool_name": "write_file",
        "arguments": {"path": path, "content": text},
        "category": "file_write",
        "description": f"Write {path}",
    }


def change_to(path: str, content: str) -> dict[str, str]:
    """What a hook says of a new file."""
    return {"path": path, "after": blob_id(content.encode()), "mode": "100644"}


async def at_work(server: ServerProcess) -> Work:
    talk = await scene(server)
    bob = await talk.come("bob", server.issue_token("bob", roles=["approver"]), roles=["approver"])
    return Work(talk, bob, server.home / "bridge.sock")


@pytest.fixture
async def work(server: ServerProcess) -> AsyncIterator[Work]:
    made = await at_work(server)
    yield made
    await made.leave()


@proves("PVP-18.1-1", "OPEN-56", "OPEN-59", "OPEN-60", "UNI-10")
async def test_a_commit_is_told_what_led_to_it_and_its_record_is_kept(work: Work) -> None:
    prompt = await work.prompt()
    tool = await work.tool(prompt)

    context = await work.ask("commit-context")
    created = await work.ask(
        "commit-created",
        sha=A,
        decision=context["decision"],
        files=["login.py"],
        branch="main",
        message_trailers=[["PVP-Decision-Type", "correction"]],
    )
    again = await work.ask("extended-metadata", sha=A)

    assert context["session"] == work.session
    assert context["messages"][0] == prompt
    assert tool in context["messages"]
    assert context["decision_by"] == ["agent:bot", "human:alice"]
    assert context["approved_by"] == []
    assert context["coverable"] is False
    assert (context["tools"], context["confidence"]) == (["shell"], 0.87)
    assert re.fullmatch(r"dec_[0-9A-HJKMNP-TV-Z]{26}", context["decision"])
    assert created["decision"] == context["decision"]
    assert again == created
    (made,) = decisions_of(created["note"])
    assert (made.git_sha, made.files_changed, made.decision_type) == (A, ("login.py",), "bugfix")
    assert made.position is not None
    assert made.position.hash
    spoken = created["note"]["conversation"]["messages"]
    assert (spoken[0]["type"], spoken[0]["content"]) == ("prompt.submit", "Add a login")


async def test_two_commits_in_a_row_share_nothing_that_was_done(work: Work) -> None:
    one = await work.tool(await work.prompt("First"))
    first = await work.ask("commit-created", sha=A)
    two = await work.tool(await work.prompt("Second"))
    second = await work.ask("commit-created", sha=B)
    third = await work.ask("commit-context")

    (before,), (after,) = decisions_of(first["note"]), decisions_of(second["note"])
    assert [tool.id for tool in before.tool_executions] == [one]
    assert [tool.id for tool in after.tool_executions] == [two]
    assert "First" not in json.dumps(second["note"])
    assert "decision" not in third
    assert "Nothing" in third["reason"]
    listed = await work.ask("commits")
    assert [each["sha"] for each in listed["commits"]] == [A, B]
    assert [each["since"] for each in listed["commits"]] == [0, before.until]


async def test_the_same_commit_is_linked_once_and_a_rewritten_one_to_the_same_decision(
    work: Work,
) -> None:
    await work.tool(await work.prompt())
    first = await work.ask("commit-created", sha=A)
    same = await work.ask("commit-created", sha=A)
    amended = await work.ask("commit-created", sha=B, decision=first["decision"])

    assert same == first
    assert amended["decision"] == first["decision"]
    assert decisions_of(amended["note"])[0].git_sha == B
    assert [each["decision"] for each in (await work.ask("commits"))["commits"]] == [
        first["decision"],
        first["decision"],
    ]


async def test_what_is_said_between_the_trailers_and_the_commit_belongs_to_the_next(
    work: Work,
) -> None:
    running = await work.tool(await work.prompt("One"), finish=False)
    context = await work.ask("commit-context")
    await work.finish(running)
    await work.prompt("Two")
    created = await work.ask("commit-created", sha=A, decision=context["decision"])

    assert created["decision"] == context["decision"]
    assert "Two" not in json.dumps(created["note"])
    upcoming = await work.ask("reset")
    assert upcoming["moved"] is False
    assert upcoming["decision"] not in {None, created["decision"]}
    assert (await work.ask("reset")) == upcoming


async def test_a_server_killed_between_trailers_and_commit_loses_and_doubles_nothing(
    server: ServerProcess, work: Work
) -> None:
    await work.tool(await work.prompt())
    context = await work.ask("commit-context")
    server.restart()
    created = await work.ask("commit-created", sha=A, decision=context["decision"])
    server.restart()
    again = await work.ask("commit-created", sha=A, decision=context["decision"])

    assert created["decision"] == again["decision"] == context["decision"]
    assert len((await work.ask("commits"))["commits"]) == 1


async def test_a_decision_that_nobody_made_is_linked_to_nothing(work: Work) -> None:
    await work.tool(await work.prompt())

    refused = await work.ask("commit-created", sha=A, decision="dec_" + "0" * 26)
    unknown = await work.ask("extended-metadata", sha=A)

    assert refused["error"]["message"].endswith("is not a decision of this repository")
    assert unknown["error"]["code"] == "INVALID_STATE"
    assert (await work.ask("commits"))["commits"] == []


async def test_sessions_are_bound_to_repositories_on_record(
    server: ServerProcess, work: Work
) -> None:
    await work.prompt()
    nothing = await work.ask("commit-context", session=None)
    bound = await work.ask("session-started")
    server.restart()
    told = await work.ask("commit-context", session=None)
    elsewhere = await work.ask("commit-context", session=None, repo="repo-2")
    ghost = await work.ask("session-started", session="ghost")
    status = await work.ask("status")
    over = await work.ask("session-ended")

    assert "No session is bound" in nothing["error"]["message"]
    assert bound["sessions"] == [work.session]
    assert told["session"] == work.session
    assert "error" in elsewhere
    assert ghost["error"]["code"] == "SESSION_NOT_FOUND"
    assert (status["bridge"], status["sessions"]) == ("accord", [work.session])
    assert over["sessions"] == []


async def test_ambiguous_session_is_refused(server: ServerProcess, work: Work) -> None:
    other = await at_work(server)
    for each in (work, other):
        await each.prompt()
        await each.ask("session-started")

    unclear = await work.ask("commit-context", session=None)
    named = [(await each.ask("commit-context"))["session"] for each in (work, other)]
    await other.leave()

    assert sorted(unclear["error"]["details"]["sessions"]) == sorted([work.session, other.session])
    assert named == [work.session, other.session]


async def test_a_message_is_looked_up_and_never_taken_in(work: Work) -> None:
    said = await work.prompt()

    known = await work.ask("message", id=said)
    unknown = await work.ask("message", id="invented", content="I approve")

    assert (known["known"], unknown["known"]) == (True, False)
    assert (await work.ask("message", id="invented"))["known"] is False


async def test_a_shared_secret_never_reaches_a_note(work: Work) -> None:
    value = "correct horse battery staple"
    secret = {"key": "db", "scope": ["bot"], "value_ref": value}
    await work.talk.alice.send("secret.share", work.session, secret)
    await work.prompt(f"Use {value} to connect")
    await work.tool(await work.prompt("And ghp_abcdefghijklmnopqrstuvwxyz0123456789"))

    created = await work.ask("commit-created", sha=C)

    text = json.dumps(created)
    assert value not in text
    assert "ghp_" not in text
    assert "[redacted]" in text


@proves("UNI-29")
async def test_what_was_masked_once_stays_so_when_the_value_is_forgotten(
    server: ServerProcess, work: Work
) -> None:
    value = "correct horse battery staple"
    secret = {"key": "db", "scope": ["bot"], "value_ref": value}
    await work.talk.alice.send("secret.share", work.session, secret)
    await work.tool(await work.prompt(f"Use {value} to connect"))
    context = await work.ask("commit-context")
    known = {"decision": context["decision"], "files": [f"{value}.txt"], "branch": value}
    created = await work.ask("commit-created", sha=A, **known)
    await work.leave()
    server.kill()
    server.start()

    again = await work.ask("commit-created", sha=A)
    amended = await work.ask("commit-created", sha=B, decision=context["decision"])
    with closing(sqlite3.connect(server.home / "accord.db")) as db:
        (stored,) = db.execute(
            "SELECT count(*) FROM records JOIN streams ON streams.key = records.stream "
            "WHERE name LIKE 'repo/%' AND instr(body, ?)",
            (value.encode(),),
        ).fetchone()

    assert stored == 0

    assert again == created
    for told in (created, again, amended, await work.ask("extended-metadata", sha=A)):
        assert "Use [redacted] to connect" in json.dumps(told)
        assert value not in json.dumps(told)


@proves("UNI-29")
async def test_what_not_everybody_may_know_reaches_no_answer(work: Work) -> None:
    """Thinking, restricted context and secret values, wherever somebody puts them."""
    hidden, thought, value = "quarterly-figures", "perhaps-we-should", "correct horse battery"
    alice, bot = work.talk.alice, work.talk.bot
    secret = {"key": "db", "scope": ["bot"], "value_ref": value}
    await alice.send("secret.share", work.session, secret)
    shelf = {"key": "k", "content_type": "text", "content": hidden, "visible_to": ["bot"]}
    await alice.send("context.add", work.session, shelf)
    await bot.receive_until("context.add", content=hidden)
    prompt = await work.prompt(f"Use {value}")
    about = {"agent": "bot", "prompt_ref": prompt, "visible_to": "all"}
    began = await bot.send("thinking.start", work.session, about)
    await bot.send("thinking.chunk", work.session, {"text": thought}, ref=began)
    await work.bob.receive_until("thinking.chunk", text=thought)
    proposal = await bot.send(
        "tool.propose", work.session, PROPOSAL | {"description": f"Log in with {value}"}, ref=prompt
    )
    await work.bob.receive_until("gate.request", action_ref=proposal)
    vote = {"tool_proposal": proposal, "approver": "bob", "comment": f"{value} is right"}
    await work.bob.send("tool.approve", work.session, vote)
    await bot.receive_until("tool.execute", tool_proposal=proposal)
    await work.finish(proposal)

    context = await work.ask("commit-context")
    created = await work.ask(
        "commit-created", sha=A, decision=context["decision"], files=[value], branch=value
    )
    again = await work.ask("extended-metadata", sha=A)

    assert context["decision"] == created["decision"]
    for told in (context, created, again, await work.ask("commits")):
        text = json.dumps(told)
        assert [each for each in (hidden, thought, value) if each in text] == []


@proves("OPEN-63")
async def test_a_commit_decides_what_its_type_usually_does_unless_it_says_otherwise(
    work: Work,
) -> None:
    said = [["PVP-Decision-Type", "exploration"]]
    wanted: dict[str, tuple[dict[str, Any], str]] = {
        A: ({"type": "fix"}, "bugfix"),
        B: ({"type": "chore", "scope": "deps"}, "dependency"),
        C: ({"type": "fix", "message_trailers": said}, "exploration"),
        "d" * 40: ({"type": "wip"}, ""),
    }
    found = {}
    for sha, (asked, _) in wanted.items():
        await work.tool(await work.prompt())
        (made,) = decisions_of((await work.ask("commit-created", sha=sha, **asked))["note"])
        found[sha] = made.decision_type

    assert found == {sha: kind for sha, (_, kind) in wanted.items()}


async def test_a_session_that_is_over_makes_way_for_the_next(
    server: ServerProcess, work: Work
) -> None:
    await work.prompt()
    await work.ask("session-started")
    ended = {"reason": "Done", "final_state": "completed"}
    await work.talk.alice.send("session.end", work.session, ended)
    await work.bob.receive_until("session.end")
    left = await work.ask("commit-context", session=None)
    other = await at_work(server)
    await other.prompt()
    bound = await other.ask("session-started")
    now = await other.ask("commit-context", session=None)
    await other.leave()

    assert left["session"] == work.session  # what it left is still to be committed
    assert bound["sessions"] == [other.session]
    assert now["session"] == other.session


async def test_a_commit_reported_late_gets_what_was_said_until_it_was_made(work: Work) -> None:
    early = await work.tool(await work.prompt("Before"))
    made_at = time.time_ns() // 1_000_000
    while time.time_ns() // 1_000_000 == made_at:
        pass  # what is said next must be in another millisecond
    late = await work.tool(await work.prompt("After"))

    nothing = await work.ask("commit-created", sha=C, made_at=1)
    first = await work.ask("commit-created", sha=A, made_at=made_at)
    again = await work.ask("commit-created", sha=A, made_at=made_at)
    second = await work.ask("commit-created", sha=B)
    empty = await work.ask("commit-created", sha=C, made_at=made_at)

    (before,), (after,) = decisions_of(first["note"]), decisions_of(second["note"])
    assert [tool.id for tool in before.tool_executions] == [early]
    assert [tool.id for tool in after.tool_executions] == [late]
    assert again == first
    for response in (nothing, empty):
        assert "decision" not in response
        assert "Nothing" in response["reason"]
