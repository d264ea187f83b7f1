"""From a task to a merge: a real server, a real repository, two seats and a reviewer."""

import asyncio
import json
from pathlib import Path
from typing import Any

from accord.pact.mirror.service import STILL_READING_NOTICE
from accord.stores import open_log
from tests.helpers.attacks.approval_scene import error
from tests.helpers.clients.bridge_client import send_action
from tests.helpers.clients.cli import run_accord
from tests.helpers.clients.websocket_client import WebSocketClient
from tests.helpers.servers.server_process import ServerProcess
from tests.spec import proves
from tests.stories.test_prompt_to_why import Repo
from tests.transports.bridge.test_handlers import Work, at_work

TASKS = "session:tasks"
EVIDENCE = "cart.py: 12 tests pass"
SEATS = ("alice:orchestrator:A.md", "bot:worker:B.md", "bob:reviewer:C.md")


class Shop(Repo):
    """A repository with a pact in it, whose seats are people and agents of a session."""

    def pact(self, seat: str, *words: str) -> str:
        self.env["PACT_AGENT_ID"] = seat
        return self.accord("pact", *words)

    def begin(self) -> str:
        """Hooks, a pact, a branch; the repository's id."""
        for name, value in (("user.name", "Bot"), ("user.email", "bot@example.org")):
            self.git("config", name, value)
        self.accord("git", "install")
        flags = [word for seat in SEATS for word in ("--seat", seat)]
        self.pact("alice", "init", "--project", "shop", *flags)
        self.git("add", ".")
        self.git("commit", "-q", "-m", "chore: begin")
        self.git("branch", "cart")
        return self.git("config", "accord.repo").strip()

    def assign(self, task: str = "T1") -> None:
        self.pact(
            *("alice", "assign", task, "--feature", "cart", "--branch", "cart"),
            *("--owner", "bot", "--reviewer", "bob"),
        )

    def accept_another(self, task: str) -> None:
        """Bob reviews what the branch has by now."""
        self.assign(task)
        self.pact("bot", "checkpoint", task, "--evidence", EVIDENCE)
        self.pact("bob", "accept", task)

    def events(self) -> list[dict[str, Any]]:
        log = (self.folder / ".pact" / "log.jsonl").read_text("utf-8")
        return [json.loads(line) for line in log.splitlines()]


async def until(wire: WebSocketClient, task: str, status: str) -> dict[str, Any]:
    """What everybody hears once the task stands so."""
    while True:
        heard = await wire.receive_until("context.add", key=TASKS)
        tasks = heard["payload"]["content"]["tasks"]
        if (task, status) in [(each["id"], each["pact"]["status"]) for each in tasks]:
            return heard


async def in_session(server: ServerProcess, repo: str) -> Work:
    work = await at_work(server)
    bound = await work.ask("session-started", repo=repo)
    assert bound["sessions"] == [work.session]
    return work


async def opened(server: ServerProcess, folder: Path) -> tuple[Shop, str, Work]:
    """A shop, its id, and a session in which people work on it."""
    shop = Shop(folder / "shop", server.home)
    repo = await asyncio.to_thread(shop.begin)
    return shop, repo, await in_session(server, repo)


@proves("UNI-14", "UNI-17", "UNI-19", "UNI-21", "OPEN-137")
async def test_a_task_goes_through_its_room_and_git_remembers_who_accepted_it(
    server: ServerProcess, tmp_path: Path
) -> None:
    shop, _, work = await opened(server, tmp_path)
    bob = work.bob

    await asyncio.to_thread(shop.assign)
    heard = await until(bob, "T1", "assigned")
    assert heard["sender"] == "system"
    assert heard["payload"]["content"]["tasks"][0]["status"] == "pending"

    await asyncio.to_thread(shop.pact, "bot", "join", "bot", "--roles", "worker")
    prompt = await work.prompt("Make a cart")
    await work.tool(prompt)
    made = await asyncio.to_thread(shop.commit, "cart.py", "feat: make a cart")
    assert shop.trailer("Reviewed-By", made) == ""
    await asyncio.to_thread(shop.pact, "bot", "checkpoint", "T1", "--evidence", EVIDENCE)
    review = await bob.receive_until("context.add", key="review:T1")
    assert "bot submits T1 (cart) for review by bob" in review["payload"]["content"]
    assert EVIDENCE in review["payload"]["content"]
    timeline = await asyncio.to_thread(shown, server, work.session)
    assert "T1 waits for review" in timeline
    assert EVIDENCE in timeline

    own = {"key": TASKS, "content_type": "structured", "content": {"goal": None, "tasks": []}}
    for wire, type, said in (
        (work.talk.bot, "context.add", own),
        (bob, "context.remove", {"key": TASKS, "reason": "I know better"}),
    ):
        await wire.send(type, work.session, said)
        no = await error(wire)
        assert (no["code"], "accord pact" in no["message"]) == ("UNAUTHORIZED", True)

    fork = {"name": "cart", "from_point": prompt, "reason": "The cart", "copy_context": False}
    await work.talk.alice.send("fork.create", work.session, fork | {"participants": ["bot"]})
    made_fork = await work.talk.alice.receive_until("fork.create")
    back = {"source_fork": made_fork["fork"], "target_fork": "main", "strategy": "append"}
    await work.talk.alice.send("merge.propose", work.session, back | {"summary": "Done"})
    no = await error(work.talk.alice)
    assert (no["code"], no["details"]["tasks"]) == ("INVALID_STATE", ["T1"])
    assert "Rule 2" in no["message"]

    await asyncio.to_thread(shop.pact, "bob", "accept", "T1")
    gone = await bob.receive_until("context.remove", key="review:T1")
    assert "bob accepted it" in gone["payload"]["reason"]
    await work.tool(await work.prompt("Say so"))
    later = await asyncio.to_thread(shop.commit, "README.md", "docs: name the cart")
    assert shop.trailer("Reviewed-By", later) == "", "nobody has reviewed that one"
    await asyncio.to_thread(shop.accept_another, "T2")
    proposal = await work.talk.alice.send(
        "merge.propose", work.session, back | {"summary": "Accepted"}
    )
    await work.talk.alice.receive_until("merge.propose")
    await work.talk.alice.send("merge.execute", work.session, {"merge_proposal": proposal})
    assert "accord pact merge cart" in (await error(work.talk.alice))["message"]
    await asyncio.to_thread(shop.pact, "alice", "merge", "cart")
    await work.talk.alice.send("merge.execute", work.session, {"merge_proposal": proposal})
    await work.talk.alice.receive_until("merge.execute", merge_proposal=proposal)

    assert shop.trailer("Reviewed-By") == "human:bob"
    note = json.loads(shop.git("notes", "--ref=pvp", "show", made))
    assert [each["name"] for each in note["tools"]["executions"]] == ["shell"]
    (told,) = note["decisions"]
    assert note["reviews"] == [{"by": "human:bob", "commit": made, "decision": told["id"]}]
    for words in (("cart.py:1",), ("cart.py:1", "--offline")):
        why = await asyncio.to_thread(shop.accord, "why", *words)
        assert "bob" in why.partition("reviewed by")[2].splitlines()[0]
    await asyncio.to_thread(shop.pact, "alice", "validate")
    await work.leave()


@proves("UNI-21")
async def test_a_merge_right_after_binding_goes_by_the_pact(
    server: ServerProcess, tmp_path: Path
) -> None:
    shop = Shop(tmp_path / "shop", server.home)
    repo = await asyncio.to_thread(shop.begin)
    await asyncio.to_thread(shop.assign)
    work = await at_work(server)
    alice = work.talk.alice
    fork = {"name": "cart", "from_point": await work.prompt("Make a cart"), "reason": "The cart"}
    said = fork | {"participants": ["bot"], "copy_context": False}
    await alice.send("fork.create", work.session, said)
    made = await alice.receive_until("fork.create")
    back = {"source_fork": made["fork"], "target_fork": "main", "strategy": "append"}

    await work.ask("session-started", repo=repo)
    no = {"message": STILL_READING_NOTICE}
    while STILL_READING_NOTICE in no["message"]:  # which a server may say that is slow to read
        await alice.send("merge.propose", work.session, back | {"summary": "Quick"})
        no = await error(alice)
        assert no["code"] == "INVALID_STATE"

    assert "Rule 2: cart" in no["message"]
    await work.leave()


def shown(server: ServerProcess, session: str) -> str:
    """The session as Bob reads it."""
    token = server.issue_token("bob", roles=["approver"])
    ran = run_accord("session", "log", session, ACCORD_URL=server.url, ACCORD_TOKEN=token)
    assert ran.code == 0, ran
    return ran.out


def checkpointed(shop: Shop) -> None:
    """The same, while no server is there."""
    shop.pact("bot", "join", "bot", "--roles", "worker", "--no-git")
    shop.pact("bot", "checkpoint", "T1", "--evidence", EVIDENCE)


@proves("UNI-11", "UNI-17", "OPEN-137")
async def test_what_happened_while_the_server_was_dead_is_mirrored_and_told_once(
    server: ServerProcess, tmp_path: Path
) -> None:
    shop, repo, work = await opened(server, tmp_path)
    await asyncio.to_thread(shop.assign)
    await until(work.bob, "T1", "assigned")

    server.kill()
    await asyncio.to_thread(checkpointed, shop)
    before = (shop.folder / ".pact" / "log.jsonl").read_bytes()
    await asyncio.to_thread(server.start)
    bob = await WebSocketClient.open(
        server.ws_url, "bob", server.issue_token("bob", roles=["approver"])
    )
    await bob.join(work.session, roles=["approver"])
    await bob.receive_until("context.add", key="review:T1")
    for _ in range(2):
        server.kill()
        await asyncio.to_thread(server.start)
        answer = await asyncio.to_thread(nudge, server, shop, repo)
        assert answer["events"] == len(shop.events())

    await bob.socket.close()
    server.kill()
    assert (shop.folder / ".pact" / "log.jsonl").read_bytes() == before
    said = await recorded(server, f"room/{work.session}", "review.asked")
    assert len(said) == 1
    found = await recorded(server, f"work/{repo}", "pact.mirrored")
    assert [json.loads(each["fact"]["line"]) for each in found] == shop.events()


def nudge(server: ServerProcess, shop: Shop, repo: str) -> dict[str, Any]:
    directory = str(shop.folder / ".pact")
    return send_action(server.home / "bridge.sock", "pact-changed", repo=repo, directory=directory)


async def recorded(server: ServerProcess, stream: str, kind: str) -> list[dict[str, Any]]:
    """What the log of a server that is not running has of that kind."""
    events = await open_log(f"sqlite:{server.home / 'accord.db'}")
    try:
        found = [json.loads(row.body) for row in await events.read(stream)]
    finally:
        await events.close()
    return [each for each in found if each["kind"] == kind]


@proves("UNI-21")
async def test_unbinding_frees_no_fork_whose_tasks_are_open(
    server: ServerProcess, tmp_path: Path
) -> None:
    shop, _, work = await opened(server, tmp_path)
    await asyncio.to_thread(shop.assign)
    await until(work.bob, "T1", "assigned")
    prompt = await work.prompt("Make a cart")
    fork = {"name": "cart", "from_point": prompt, "reason": "The cart", "copy_context": False}
    await work.talk.alice.send("fork.create", work.session, fork | {"participants": ["bot"]})
    made = await work.talk.alice.receive_until("fork.create")

    said = await asyncio.to_thread(shop.accord, "git", "unbind", work.session)
    assert "Commits here belong to no session" in said
    await work.bob.receive_until("context.remove", key=TASKS)
    back = {"source_fork": made["fork"], "target_fork": "main", "strategy": "append"}
    await work.talk.alice.send("merge.propose", work.session, back | {"summary": "Done"})

    no = await error(work.talk.alice)
    assert (no["code"], no["details"]["tasks"]) == ("INVALID_STATE", ["T1"])
    assert f"`accord git bind {work.session}` in that repository" in no["message"]
    await work.leave()
