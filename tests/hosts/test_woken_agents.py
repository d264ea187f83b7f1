"""Waking agents with the real programs: the same session, the prompt as it is, and an answer."""

import asyncio
import json
import os
import shlex
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from accord.core.attention.runtimes import Runtime, RuntimeOrigin, RuntimeStatus
from accord.core.attention.waking.outcomes import RESULT_OF_ACTION, WakeAction
from accord.core.attention.waking.prompt import MARK, wake_prompt
from accord.core.attention.waking.waker_port import WakeJob, WakeReport, WakeTarget
from accord.core.room.conversation.prompts import PromptSubmit
from accord.waking.configuration import load_wake_file
from accord.waking.machine import machine_name
from accord.waking.waker import CommandWaker
from tests.helpers.hosts.gated_agent import PERSON, GatedAgent, People
from tests.helpers.hosts.hook_settings import (
    BYPASS_TRUST,
    HOOK_HOSTS,
    turn_words,
    write_hooks,
)
from tests.helpers.hosts.host import HttpMcp
from tests.helpers.hosts.scripted_model.script import Call, Script, Step
from tests.helpers.hosts.scripted_model.server import serve
from tests.helpers.hosts.table import chosen_hosts
from tests.helpers.hosts.turns import Agent, Turn
from tests.helpers.servers.server_process import ServerProcess
from tests.helpers.threads.method_client import MethodClient
from tests.helpers.threads.wake_scene import eventually
from tests.hosts.conftest import MakeAgent

pytestmark = [pytest.mark.network, pytest.mark.timeout(900)]

RUNTIMES = {"claude": "claude_code", "codex": "codex_cli", "gemini": "gemini_cli"}
# What the person who set up the agent would have typed: its tools need no permission, and Gemini
# CLI does not ask a router first which model to take.
OPTIONS = {
    "claude": ["--allowedTools", "mcp__accord__*"],
    "codex": [],
    "gemini": ["-m", "gemini-2.5-flash"],
}
WAKEABLE = [name for name in chosen_hosts() if name in RUNTIMES]
WAKE_TIMEOUT_S = 240
QUESTION = "Which part is yours?"


def wake_file(
    directory: Path, agents: Sequence[Agent], options: Sequence[str] | None = None
) -> Path:
    """The file of an operator who lets the server wake these agents."""
    rows = [
        {
            "id": agent.host.name,
            "runtime": RUNTIMES[agent.host.name],
            "directory": str(agent.setup.project),
            "program": str(start_script(agent)),
            "options": OPTIONS[agent.host.name] if options is None else options,
            "timeout_seconds": WAKE_TIMEOUT_S,
        }
        for agent in agents
    ]
    lines = [
        line
        for row in rows
        for line in ("[[agent]]", *(f"{key} = {json.dumps(value)}" for key, value in row.items()))
    ]
    file = directory / "wake.toml"
    file.write_text("\n".join(lines) + "\n")
    file.chmod(0o600)
    return file


def start_script(agent: Agent) -> Path:
    """The host as one program, in its own home."""
    variables = [f"{name}={value}" for name, value in agent.environment().items()]
    script = agent.root / agent.host.name
    script.write_text(f'#!/bin/sh\nexec env {shlex.join([*variables, *agent.command])} "$@"\n')
    script.chmod(0o700)
    return script


# The command by itself

HOSTILE_WORDS = "--help\n-c model=other\n\"; touch x; $(touch y) `touch z` 'quoted' \\ end\n"
# Claude Code and Gemini CLI add the content of files that a prompt names in this way.
FILE_NAMES = "see @secret.txt and a@secret.txt and \\@secret.txt and \uff20secret.txt\n@secret.txt"
SECRET = "the content of the file"
PROMPT = wake_prompt(
    thread="th_@secret.txt",
    unread=2,
    by="mallory@secret.txt",
    words=f"{HOSTILE_WORDS}\n{FILE_NAMES}",
    summary=FILE_NAMES,
)


def wake(
    agent: Agent, session_id: str, prompt: str = PROMPT, options: Sequence[str] | None = None
) -> WakeReport:
    """Resume a session that was seen to start on this machine."""
    runtime = Runtime(
        session_id="S1",
        runtime=RUNTIMES[agent.host.name],
        status=RuntimeStatus.IDLE,
        changed_at=0,
        resumable=True,
        origin=RuntimeOrigin(session_id, machine_name(), str(agent.setup.project)),
    )
    target = WakeTarget("default", agent.host.name)
    job = WakeJob(target, (WakeAction.RESUME_SESSION,), prompt, prompt, runtime)
    agents = load_wake_file(wake_file(agent.root, [agent], options))
    waker = CommandWaker(agents, machine_name(), {"PATH": os.environ["PATH"]})
    return asyncio.run(waker.wake(job, lambda *_: None))


@pytest.mark.parametrize("name", WAKEABLE)
def test_a_wake_resumes_the_session_with_the_whole_prompt(name: str, make_agent: MakeAgent) -> None:
    with serve(Script({})) as model:
        agent = make_agent(name, model, None)
        first = agent.run("hello")
        (agent.setup.project / "secret.txt").write_text(SECRET)
        report = wake(agent, first.answer.session_id)
        woken = model.exchanges[len(first.exchanges) :]

    assert report.result is RESULT_OF_ACTION[WakeAction.RESUME_SESSION], report
    request = woken[-1].request
    assert request.prompt.startswith(MARK)
    assert request.prompt.strip() == PROMPT.strip()
    assert request.replies > first.exchanges[-1].request.replies
    assert not any(SECRET in each.body for each in woken)
    assert {path.name for path in agent.setup.project.iterdir()} == {".git", "secret.txt"}


@pytest.mark.parametrize("name", WAKEABLE)
def test_a_gated_host_that_a_person_s_prompt_wakes_answers_that_prompt(
    name: str, make_agent: MakeAgent, server: ServerProcess
) -> None:
    people = People(server)
    with serve(Script({MARK: [Step(say="The lexer.")]})) as model:
        agent = make_agent(name, model, None)
        agent.prepare()
        gated = GatedAgent(people, agent.setup.home, HOOK_HOSTS[name], agent.setup.project)
        write_hooks(agent, gated.command)
        first = agent.run_arguments(turn_words(agent, "hello"))
        asked = people.send(PromptSubmit(QUESTION, gated.connection.agent, (PERSON,), ()))
        words = wake_prompt(thread=people.session, unread=1, by=PERSON, words=QUESTION)
        trust = [BYPASS_TRUST] if name == "codex" else []
        report = wake(agent, first.answer.session_id, words, [*OPTIONS[name], *trust])
        GatedAgent.stop_daemon_of(agent.setup.home)

    assert report.result is RESULT_OF_ACTION[WakeAction.RESUME_SESSION], report
    hello, question = people.history("prompt.submit")
    assert (hello.sender, question.id) == (gated.connection.agent, asked)
    assert [each.ref for each in people.history("response.start")] == [hello.id, asked]


# By a server


def answering_script(name: str, thread: str) -> Script:
    """An agent that reads what it was woken for, answers and acknowledges."""
    message = {"thread_id": thread, "schema_version": 1, "body": f"The lexer, says {name}."}
    return Script(
        {
            MARK: [
                Step(calls=[Call("read_messages", {"thread_id": thread})]),
                Step(calls=[Call("post_message", message)]),
                Step(
                    calls=[
                        Call(
                            "ack_read",
                            lambda seen: {
                                "thread_id": thread,
                                "last_read_seq": seen[0].json()["next_seq"],
                            },
                        )
                    ]
                ),
                Step(say="Answered."),
            ]
        }
    )


def say_hello(agent: Agent) -> Turn:
    """The turn of a person who leaves afterwards."""
    return agent.run("hello")


@pytest.mark.skipif(not WAKEABLE, reason="no host that can be woken is chosen")
def test_a_server_wakes_the_agents_that_a_message_addresses_and_they_answer(
    server: ServerProcess, make_agent: MakeAgent, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        olga = stack.enter_context(MethodClient.of(server, "olga", kind="human", roles=["admin"]))
        thread = olga.thread(*WAKEABLE)
        clients, agents, models = [], [], []
        for name in WAKEABLE:
            clients.append(stack.enter_context(MethodClient.of(server, name)))
            models.append(stack.enter_context(serve(answering_script(name, thread))))
            mcp = HttpMcp(f"{server.url}/mcp", clients[-1].token)
            agents.append(make_agent(name, models[-1], mcp))
        with ThreadPoolExecutor(len(agents)) as pool:
            sessions = [turn.answer.session_id for turn in pool.map(say_hello, agents)]
        server.flags = ("--wake", str(wake_file(tmp_path, agents)))
        server.restart()
        for client, agent, session_id in zip(clients, agents, sessions, strict=True):
            client.ok(
                "heartbeat_session",
                runtime=RUNTIMES[agent.host.name],
                status="idle",
                resumable=True,
                runtime_ref=session_id,
                machine=machine_name(),
                directory=str(agent.setup.project),
            )

        asked = olga.post(thread, QUESTION, metadata={"to": WAKEABLE})

        def acknowledged() -> bool:
            (question,) = (each for each in olga.read(thread) if each["seq"] == asked["seq"])
            return bool(question["delivery"] == dict.fromkeys(WAKEABLE, "acked"))

        eventually(acknowledged, WAKE_TIMEOUT_S)
        answers = [each for each in olga.read(thread) if each["kind"] == "chat"][1:]
        assert {each["sender_agent_id"]: each["body"] for each in answers} == {
            name: f"The lexer, says {name}." for name in WAKEABLE
        }
        for model in models:
            shown = next(each.request for each in model.exchanges if each.request.own_results)
            assert shown.prompt.startswith(MARK)
            assert shown.replies >= 2, "it is the session that said hello"
            page = shown.own_results[0].json()
            assert (page["messages"][0]["body"], page["messages"][0]["quoted"]) == (QUESTION, True)
