"""Three people and an agent work for two days, with a server elsewhere and laptops that sleep.

Every process is real: the server (as another user of the operating system if the tests run as
root, else with a home of its own), each person's `accord` and `git`, and the hooks, which know the
server only from the person's profile. Time passes by moving the clock of all these processes, the
running server included. (`datetime.now` is not moved; only the time left on a gate card uses it.)
Between two commands no person is connected: each is one request from a plain shell without a token
in its environment, and the agent sends single HTTP requests too.
"""

import asyncio
import json
import os
import pty
import re
import signal
import subprocess
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.helpers.attacks.approval_scene import PROPOSAL
from tests.helpers.clients.cli import CommandRun
from tests.helpers.clients.http_client import HttpClient, envelope
from tests.helpers.git.work_tree import WorkTree
from tests.helpers.servers.moved_clock import MovedClock
from tests.helpers.servers.other_user import (
    OTHER_USER,
    as_other_user,
    can_become_other_user,
    give_to_other_user,
)
from tests.helpers.servers.server_process import Process, ServerProcess

PEOPLE = ["human:bob", "human:carol", "human:olga"]
LOGIN = "def login(user, password):\n    return check(user, password)\n"
SCRIPT = '[[reply]]\n[[reply.steps]]\nsay = "Here I am."\n'
PATIENCE_S, POLL_S = 90, 0.1
BACK_DOOR = "check = lambda user, password: True\n"


class Machine:
    """The server's machine: its user, its data and its terminal."""

    def __init__(self, directory: Path, clock: MovedClock) -> None:
        self.clock = clock
        self.server = ServerProcess(give_to_other_user(directory))
        self.env = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.env |= {"HOME": str(directory), "NO_COLOR": "1", "USER": "olga"}
        if can_become_other_user():
            os.chown(self.server.home, OTHER_USER, OTHER_USER)
        self.server.spawn = self._spawn
        self._screen, self._terminal = pty.openpty()

    def _spawn(self, words: list[str], log: Path) -> Process:
        with log.open("ab") as errors:
            return subprocess.Popen(
                as_other_user(self.clock.python, *words[1:]),
                stdin=subprocess.DEVNULL,
                stdout=self._terminal,
                stderr=errors,
                env=self.env,
            )

    def printed_link(self) -> str:
        """The link for the operator, as the terminal shows it."""
        shown = ""
        while not (found := re.search(r"accord login '([^']+)'", shown)):
            shown += os.read(self._screen, 65536).decode()
        return found[1]

    def accord(self, *words: str) -> CommandRun:
        """Run a command as the server's user."""
        done = subprocess.run(
            as_other_user(self.clock.python, "-m", "accord", *words),
            capture_output=True,
            text=True,
            env=self.env,
            timeout=60,
            check=False,
        )
        return CommandRun(done.returncode, done.stdout, done.stderr)

    def sleep_through(self, hours: float, *, clean: bool) -> None:
        """Stop the server, let hours pass, and start it again."""
        self.server.stop() if clean else self.server.kill()
        self.clock.move(hours)
        self.server.start()

    def close(self) -> None:
        if self.server.is_running:
            self.server.kill()
        os.close(self._screen)
        os.close(self._terminal)


class Person(WorkTree):
    """Somebody with a home, a clone of the repository, and no variable that names the server."""

    def __init__(self, name: str, directory: Path, clock: MovedClock) -> None:
        home = directory / name
        home.mkdir(parents=True)
        self.name, self.clock = name, clock
        email = f"{name}@example.org"
        super().__init__(
            home,
            home,
            XDG_CONFIG_HOME=str(home / "config"),
            XDG_DATA_HOME=str(home / "data"),
            XDG_RUNTIME_DIR=str(home / "run"),
            USER=name,
            GIT_AUTHOR_NAME=name,
            GIT_AUTHOR_EMAIL=email,
            GIT_COMMITTER_NAME=name,
            GIT_COMMITTER_EMAIL=email,
        )

    def run(self, *words: str, data: bytes = b"") -> CommandRun:
        """Run any program at the time of the moved clock."""
        now = f"{self.clock.now()} +0000"
        self.env |= {"GIT_AUTHOR_DATE": now, "GIT_COMMITTER_DATE": now}
        return super().run(*words, data=data)

    def accord(self, *words: str) -> CommandRun:
        """Run an `accord` command, which may fail."""
        return self.run(self.clock.python, "-m", "accord", *words)

    def says(self, *words: str) -> str:
        """The output of an `accord` command that must succeed."""
        ran = self.accord(*words)
        assert ran.code == 0, (words, ran)
        return ran.out.strip()

    def json(self, *words: str) -> Any:
        """What a command prints for programs."""
        return json.loads(self.says(*words, "--json"))

    def clone(self, origin: Path) -> None:
        """Clone the repository, install the hooks there, and work in it from now on."""
        self.git("clone", "-q", str(origin), "shop")
        self.path = self.home / "shop"
        self.says("git", "install")
        self.clock.move_hooks(self.path / ".git/hooks")

    def why(self, target: str) -> dict[str, Any]:
        """The reason that `accord why` gives for one line or commit."""
        (reason,) = self.json("why", target)["reasons"]
        told: dict[str, Any] = reason
        return told


class Agent:
    """An agent that sends single requests, and is away between them."""

    def __init__(self, url: str, token: str, session: str) -> None:
        self.client, self.session = HttpClient(url, "scribe", token), session

    async def propose(self, prompt: str, **proposal: Any) -> str:
        """Propose a tool call in answer to a prompt; returns the proposal's id."""
        body = PROPOSAL | {"agent": "scribe"} | proposal
        receipt = await self.client.send("tool.propose", self.session, body, ref=prompt)
        id: str = receipt["id"]
        return id

    async def grant_of(self, proposal: str) -> list[str]:
        """Who approved a proposal, from the grant in the session's messages; empty without one."""
        page = await self.client.poll(self.session)
        return [
            who
            for message in page["messages"]
            if message["type"] == "tool.execute" and message["payload"]["tool_proposal"] == proposal
            for who in message["payload"]["approved_by"]
        ]

    async def begin(self, proposal: str) -> httpx.Response:
        """Ask to run a proposal now."""
        body = {"tool_proposal": proposal, "approved_by": await self.grant_of(proposal)}
        message = envelope("tool.execute", self.session, "scribe", body)
        return await self.client.post(self.session, message)

    async def finish(self, proposal: str) -> None:
        """Report the success of an approved call."""
        result = {"tool_proposal": proposal, "success": True, "duration_ms": 5}
        await self.client.send("tool.result", self.session, result)


@pytest.fixture
def clock(tmp_path: Path) -> MovedClock:
    return MovedClock(tmp_path / "python")


@pytest.fixture
def machine(tmp_path: Path, clock: MovedClock) -> Iterator[Machine]:
    made = Machine(tmp_path / "server", clock)
    try:
        made.server.start()
        yield made
    finally:
        made.close()
    assert "Traceback" not in made.server.log, made.server.log


def sign_in(machine: Machine, olga: Person, *others: Person) -> None:
    """The operator signs in with the printed link, the others by an invitation each."""
    link = machine.printed_link()
    olga.says("login", link)
    for person in others:
        invitation = olga.says("invite", "--role", "driver,approver", "--name", person.name)
        person.says("login", invitation)
        again = person.accord("login", invitation, "--profile", "again")
        assert (again.code, "not valid" in again.err) == (3, True), again
        assert person.json("whoami")["id"] == person.name
    again = others[0].accord("login", link, "--profile", "again")
    assert (again.code, "not valid" in again.err) == (3, True), again


def shared_repository(directory: Path, *people: Person) -> None:
    """A bare repository with one commit, and a clone with hooks for each person."""
    origin = directory / "shop.git"
    people[0].git("init", "-q", "--bare", "-b", "main", str(origin))
    for person in people:
        person.clone(origin)
        if person is people[0]:
            person.commit("chore: begin", "README")
            person.git("push", "-q", "origin", "HEAD")


async def open_session(olga: Person, *others: Person) -> Agent:
    """A session in which all three must agree, bound to each clone, with an agent in it."""
    session = olga.says("session", "create", "--name", "Login", "--quorum", "all")
    for person in others:
        person.says("session", "join", session)
        person.says("git", "bind", session)
    issue = ("--id", "scribe", "--type", "agent", "--roles", "driver", "--ttl", "7d")
    url = olga.json("whoami")["url"]
    scribe = Agent(url, olga.says("token", "issue", *issue), session)
    await scribe.client.join(session, kind="agent")
    return scribe


def waits_for(person: Person, proposal: str) -> list[str]:
    """Whose approval a proposal lacks, from `accord gates`; empty if no gate is open."""
    gates = [gate for gate in person.json("gates")["gates"] if gate["action"]["id"] == proposal]
    assert all(gate["approvals_required"] == len(PEOPLE) for gate in gates), gates
    return [who for gate in gates for who in gate["waits_for"]]


def signed_approvers(olga: Person, commit: str, key: Path) -> list[str]:
    """Whom the server's signed statement about a commit names, after checking it."""
    file = olga.home / f"{commit}.json"
    olga.says("git", "export", commit, "-o", str(file))
    verified = olga.says("git", "verify", str(file), "--key", str(key))
    assert commit in verified
    envelope = json.loads(file.read_text("utf-8"))
    (decision,) = json.loads(b64decode(envelope["payload"]))["predicate"]["decisions"]
    names = [each["by"] for each in decision.get("approvals", ())]
    assert all(name in verified for name in names)
    assert ("approved by" in verified) == bool(names)
    return names


async def test_the_record_is_true_after_two_days(
    tmp_path: Path, machine: Machine, clock: MovedClock
) -> None:
    """Everything that happens, in order; the operator's link has the name of her account."""
    olga, bob, carol = people = [
        Person(name, tmp_path / "homes", clock) for name in ("olga", "bob", "carol")
    ]
    server = machine.server
    sign_in(machine, *people)
    shared_repository(tmp_path, *people)
    scribe = await open_session(*people)

    # Day 1, 9:00: the agent proposes to write a file, and everyone goes away.
    prompt = olga.says("session", "prompt", scribe.session, "scribe", "Write the login")
    write = await scribe.propose(
        prompt,
        tool_name="write_file",
        arguments={"path": "login.py", "content": LOGIN},
        category="file_write",
        description="Write the login",
    )

    # 14:00: the server was killed in between.
    machine.sleep_through(5, clean=False)
    assert waits_for(bob, write) == ["bob", "carol", "olga"]
    assert "It still needs 2 more approvals" in bob.says("approve", write)

    # 20:00: the server runs on, and Carol's last token has ended.
    clock.move(6)
    assert waits_for(carol, write) == ["carol", "olga"]
    assert "It still needs 1 more approval" in carol.says("approve", write)
    early = await scribe.begin(write)
    assert (early.status_code, "is not approved yet" in early.text) == (409, True)

    # Day 2, 7:00: all are still members, and the gate is as old as it is allowed to become.
    machine.sleep_through(11, clean=True)
    shown = olga.json("session", "show", scribe.session)
    assert [(each["id"], each["presence"]) for each in shown["members"]] == [
        (id, "disconnected") for id in ("olga", "bob", "carol", "scribe")
    ]
    assert waits_for(olga, write) == ["olga"]
    assert "that was enough" in olga.says("approve", write)
    assert waits_for(olga, write) == []
    assert await scribe.grant_of(write) == ["bob", "carol", "olga"]
    assert (await scribe.begin(write)).status_code == 200
    await scribe.finish(write)

    # 9:00: Olga commits what was approved; her token has ended, and the hook renews it.
    clock.move(2)
    approved = olga.commit("feat: add a login", "login.py", LOGIN)
    assert olga.trailers()["Approved-By"] == ",".join(PEOPLE)
    (decision,) = json.loads(olga.note())["decisions"]
    assert [each["by"] for each in decision["approvals"]] == PEOPLE
    assert decision["covers"] == "whole"
    olga.git("push", "-q", "origin", "HEAD")
    olga.says("git", "share")

    # 12:00: all approve a harmless command; then Carol writes a back door and commits it.
    prompt = bob.says("session", "prompt", scribe.session, "scribe", "Look around")
    look = await scribe.propose(prompt)
    machine.sleep_through(3, clean=False)
    for person in people:
        person.says("approve", look)
    assert (await scribe.begin(look)).status_code == 200
    await scribe.finish(look)
    await scribe.client.close()
    carol.git("pull", "-q")
    back_door = carol.commit("fix: be friendlier", "login.py", LOGIN + BACK_DOOR)
    assert carol.trailers()["PVP-Session"] == scribe.session
    assert "Approved-By" not in carol.trailers()
    (decision,) = json.loads(carol.note())["decisions"]
    assert (decision["covers"], decision.get("approvals", [])) == ("none", [])
    carol.git("push", "-q", "origin", "HEAD")
    carol.says("git", "share")

    # 18:00: everyone can ask why.
    machine.sleep_through(6, clean=True)
    for person in people:
        person.git("pull", "-q")
        person.says("git", "fetch")
        good, bad = person.why("login.py:1"), person.why("login.py:3")
        assert (good["commit"], good["coverage"]["approved_by"]) == (approved, PEOPLE)
        assert (bad["commit"], bad["coverage"]["approved_by"]) == (back_door, [])
        assert good["vouched"], "the server confirms what another clone reported"
        assert bad["vouched"], "the server confirms what another clone reported"
    told = bob.says("why", "login.py:3")
    assert "No approval covers login.py in this commit" in told
    assert "approved by" not in told
    (key,) = (server.home / "keys").glob("*.pub")
    assert signed_approvers(olga, approved, key) == PEOPLE
    assert signed_approvers(olga, back_door, key) == []
    verified = machine.accord("verify", "--data-dir", str(server.home))
    assert (verified.code, "The log is intact" in verified.out) == (0, True), verified


class Sleeper:
    """A process on a laptop whose lid is closed: it is stopped, and told nothing."""

    def __init__(self, person: Person, log: Path, *words: str) -> None:
        self.log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [person.clock.python, "-u", "-m", "accord", *words],
                env=person.env,
                cwd=person.home,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    @property
    def shown(self) -> str:
        return self.log.read_text("utf-8")

    def close_lid(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)

    def open_lid(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


async def until(is_so: Callable[[], Awaitable[bool]], what: Callable[[], str]) -> None:
    """Wait for something that other processes bring about."""
    deadline = time.monotonic() + PATIENCE_S
    while not await is_so():
        assert time.monotonic() < deadline, what()
        await asyncio.sleep(POLL_S)


async def until_shown(process: Sleeper, *words: str) -> None:
    async def is_shown() -> bool:
        assert process.process.poll() is None, process.shown
        return all(each in process.shown for each in words)

    await until(is_shown, lambda: f"{words} is not in: {process.shown}")


async def answers_of(scribe: Agent, agent: str, number: int) -> list[str]:
    """The answers of an agent, once there are as many."""

    async def found() -> list[str]:
        page = await scribe.client.poll(scribe.session)
        return [
            each["id"]
            for each in page["messages"]
            if each["type"] == "response.end" and each["sender"] == agent
        ]

    async def are_there() -> bool:
        return len(await found()) >= number

    await until(are_there, lambda: f"{agent} has not answered {number} times")
    return await found()


def members_present(olga: Person, session: str) -> dict[str, str]:
    shown = olga.json("session", "show", session)
    return {each["id"]: each["presence"] for each in shown["members"]}


async def until_member(olga: Person, session: str, id: str) -> None:
    async def is_member() -> bool:
        return id in await asyncio.to_thread(members_present, olga, session)

    await until(is_member, lambda: f"{id} has not joined")


async def test_a_watch_and_an_agent_that_slept_through_restarts_miss_and_repeat_nothing(
    tmp_path: Path, machine: Machine, clock: MovedClock
) -> None:
    olga, bob, laptop = (
        Person(name, tmp_path / "homes", clock) for name in ("olga", "bob", "helper")
    )
    sign_in(machine, olga, bob)
    session = olga.says("session", "create", "--name", "Night")
    bob.says("session", "join", session)
    issue = ("token", "issue", "--type", "agent", "--roles", "driver", "--ttl", "7d")
    url = olga.json("whoami")["url"]
    scribe = Agent(url, olga.says(*issue, "--id", "scribe"), session)
    await scribe.client.join(session, kind="agent")
    laptop.env |= {"ACCORD_URL": url, "ACCORD_TOKEN": olga.says(*issue, "--id", "helper")}
    (laptop.home / "script.toml").write_text(SCRIPT)
    words = ("agent", session, "--provider", "scripted", "--script", "script.toml")
    watch = Sleeper(bob, tmp_path / "watch.log", "gates", "--watch")
    agent = Sleeper(laptop, tmp_path / "agent.log", *words)
    try:
        await until_shown(watch, "new gates appear here")
        await until_member(olga, session, "helper")
        prompt = olga.says("session", "prompt", session, "helper", "Good evening")
        assert len(await answers_of(scribe, "helper", 1)) == 1
        first = await scribe.propose(prompt, description="The first call")
        await until_shown(watch, "The first call")

        # Both laptops are closed for fourteen hours, in which the server restarts twice.
        for process in (watch, agent):
            process.close_lid()
        machine.sleep_through(5, clean=False)
        olga.says("approve", first)
        second = await scribe.propose(prompt, description="The second call")
        olga.says("session", "prompt", session, "helper", "Good night")
        clock.move(3)
        machine.sleep_through(6, clean=True)
        present = members_present(olga, session)
        assert present == dict.fromkeys(("olga", "bob", "scribe", "helper"), "disconnected")
        for process in (watch, agent):
            process.open_lid()

        await until_shown(watch, "was approved by olga", "The second call")
        assert len(await answers_of(scribe, "helper", 2)) == 2
        assert "that was enough" in bob.says("approve", second)
        assert (await scribe.begin(second)).status_code == 200
        await until_shown(watch, "was approved by bob")
        await scribe.propose(prompt, description="The third call")
        await until_shown(watch, "The third call")
        olga.says("session", "prompt", session, "helper", "Good morning")
        assert len(await answers_of(scribe, "helper", 3)) == 3
        for told in ("The first call", "The second call", "was approved by olga"):
            assert watch.shown.count(told) == 1, watch.shown
        assert members_present(olga, session)["helper"] == "active"
    finally:
        for process in (watch, agent):
            process.end()
    await scribe.client.close()


@pytest.mark.skipif(
    not can_become_other_user(), reason="only root can start the server as another user"
)
def test_the_server_of_the_story_runs_as_another_user(machine: Machine) -> None:
    assert Path(f"/proc/{machine.server.pid}").stat().st_uid == OTHER_USER
    assert (machine.server.home / "bridge.sock").stat().st_uid == OTHER_USER
