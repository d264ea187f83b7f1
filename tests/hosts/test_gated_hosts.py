"""Real hosts with our hook: what it refuses does not run, and what it cannot refuse is known.

The rows that no hook can close are here as well, and stay the ones that the page about gate hooks
names: a host that kills the hook for its timeout, a hook that Codex was not told to trust, and
flags with which the host is started without hooks.
"""

import shlex
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from accord.core.room.conversation.responses import ResponseEnd
from accord.hosts.adapters.table import HOSTS
from accord.hosts.connections import REFUSING_SCRIPT
from accord.hosts.hook_events import PRE_TOOL
from tests.docs.page_blocks import ROOT
from tests.helpers.hosts.codex import MODEL, MODEL_THAT_WRITES_CODE
from tests.helpers.hosts.gated_agent import GatedAgent, People
from tests.helpers.hosts.hook_settings import HOOK_HOSTS, shell_call, turn_words, write_hooks
from tests.helpers.hosts.scripted_model.script import Script, Step
from tests.helpers.hosts.scripted_model.server import ScriptedModel, serve
from tests.helpers.hosts.table import chosen_hosts, gated_hosts
from tests.helpers.hosts.turns import Agent, Turn
from tests.helpers.servers.server_process import ServerProcess
from tests.hosts.conftest import MakeAgent
from tests.spec import proves

pytestmark = [pytest.mark.network, pytest.mark.timeout(600)]

REFUSED = "Accord refused this call"
# How the hook fails, by a word in the command that it is asked about; `open` gives no decision.
FAILURES = {
    "crash": "echo boom >&2; exit 1",
    "silent-crash": "exit 1",
    "silent-refusal": "exit 2",
    "missing": "exec /no/such/program",
    "killed": "kill -9 $$",
    "garbage": "echo not-json; exit 3",
}
HANG = "hang"
HOST_TIMEOUT_S = 5
# Where the host's own timeout ends the hook, only Claude Code can be told to refuse.
REFUSES_AFTER_TIMEOUT = {"claude": True, "codex": False, "gemini": False}
# What the scripted model says that each request took.
INPUT_TOKENS, OUTPUT_TOKENS = 100, 10
CODEX_MODELS = {"codex": MODEL, "codex-code": MODEL_THAT_WRITES_CODE}


def failing_hook(folder: Path) -> str:
    """The command line of our hook, around a program that fails as the call says."""
    cases = [f"*row-{row}*) {what};;" for row, what in FAILURES.items()]
    cases.append(f"*row-{HANG}*) exec sleep {HOST_TIMEOUT_S + 4};;")
    program = folder / "failing-hook"
    program.write_text('#!/bin/sh\ncall=$(cat)\ncase "$call" in\n' + "\n".join(cases) + "\nesac\n")
    program.chmod(0o755)
    return shlex.join(["/bin/sh", "-c", REFUSING_SCRIPT, str(program)])


def touch_rows(agent: Agent, *rows: str) -> Script:
    """A model that runs one command for each row."""
    calls = [shell_call(agent.host.name, f"touch row-{row}") for row in rows]
    return Script({"go": [*(Step(calls=[call]) for call in calls), Step(say="Done.")]})


def rows_that_ran(agent: Agent) -> set[str]:
    return {each.name.removeprefix("row-") for each in agent.setup.project.glob("row-*")}


@pytest.mark.parametrize("name", gated_hosts(), ids=str)
def test_no_failure_of_the_hook_lets_a_call_run(
    name: str, make_agent: MakeAgent, tmp_path: Path
) -> None:
    with serve(Script({})) as model:
        agent = make_agent(name, model, None)
        model.script = touch_rows(agent, *FAILURES, HANG, "open")
        hook = failing_hook(tmp_path)
        write_hooks(agent, lambda event: hook if event == PRE_TOOL else "", HOST_TIMEOUT_S)
        turn = agent.run_arguments(turn_words(agent, "go"))

    expected = {"open"} | (set() if REFUSES_AFTER_TIMEOUT[name] else {HANG})
    assert rows_that_ran(agent) == expected, turn
    refused = [each.text for each in turn.results if REFUSED in each.text]
    assert len(refused) >= len(FAILURES) - 1  # silent refusals of the program have its own words


# By what our limits and pages call them: how a person leaves our hook out.
WITHOUT_HOOKS = {
    ("claude", "disableAllHooks"): ["--settings", '{"disableAllHooks":true}'],
    ("claude", "--bare"): ["--bare"],
    ("claude", "--safe-mode"): ["--safe-mode"],
    ("claude", "--setting-sources project"): ["--setting-sources", "project"],
    ("codex", "--disable hooks"): ["--disable", "hooks"],
}
PAGES = ("docs/how-to/connect.md", "docs/explanation/gate-hooks.md")


@pytest.mark.parametrize(
    ("name", "flag"), [each for each in WITHOUT_HOOKS if each[0] in chosen_hosts()]
)
def test_host_started_without_hooks_has_no_gate(
    name: str, flag: str, make_agent: MakeAgent, tmp_path: Path
) -> None:
    """What no hook can close; `connect` and the pages name each of these ways to start a host."""
    with serve(Script({})) as model:
        agent = make_agent(name, model, None)
        model.script = touch_rows(agent, "crash")
        hook = failing_hook(tmp_path)
        write_hooks(agent, lambda event: hook if event == PRE_TOOL else "")
        agent.run_arguments(turn_words(agent, "go", *WITHOUT_HOOKS[name, flag]))

    assert rows_that_ran(agent) == {"crash"}
    assert any(flag in limit for limit in HOSTS[HOOK_HOSTS[name]].limits)
    assert all(flag in (ROOT / page).read_text("utf-8") for page in PAGES)


@pytest.mark.skipif("codex" not in chosen_hosts(), reason="Codex is not chosen")
def test_codex_skips_a_hook_that_nobody_trusted(make_agent: MakeAgent, tmp_path: Path) -> None:
    with serve(Script({})) as model:
        agent = make_agent("codex", model, None)
        model.script = touch_rows(agent, "crash")
        hook = failing_hook(tmp_path)
        write_hooks(agent, lambda event: hook if event == PRE_TOOL else "")
        agent.run_arguments(turn_words(agent, "go", trusted=False))

    assert rows_that_ran(agent) == {"crash"}


@contextmanager
def approving_once(people: People, model: ScriptedModel) -> Iterator[list[str]]:
    """Ann approves the first gate while a host is running, once the model has read the refusal."""
    approved: list[str] = []
    is_over = threading.Event()

    def watch() -> None:
        while not approved and not is_over.wait(0.1):
            if has_read_a_refusal(model):
                gate = people.only_gate
                people.approve(gate)
                approved.append(gate)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield approved
    finally:
        is_over.set()
        thread.join()


def has_read_a_refusal(model: ScriptedModel) -> bool:
    shown = [result.text for each in model.exchanges for result in each.request.own_results]
    return any(REFUSED in text for text in shown)


def chosen_variants() -> list[str]:
    """Hosts, and Codex with both of its ways to call tools."""
    names = list(gated_hosts())
    return [*names, "codex-code"] if "codex" in names else names


def run_gated(variant: str, agent: Agent, people: People) -> tuple[Turn, list[str]]:
    """A turn that tries a command until it passes, and then once more."""
    if variant in CODEX_MODELS:
        agent = replace(agent, model_name=CODEX_MODELS[variant])
    name = agent.host.name
    call = shell_call(name, "echo ran >> ran.txt")
    agent.model.script = Script(
        {
            "go": [
                Step(calls=[call], until=lambda result: REFUSED not in result.text),
                Step(calls=[call]),
                Step(say="Done."),
            ]
        }
    )
    agent.prepare()
    gated = GatedAgent(people, agent.setup.home, HOOK_HOSTS[name], agent.setup.project)
    write_hooks(agent, gated.command)
    try:
        with approving_once(people, agent.model) as approved:
            return agent.run_arguments(turn_words(agent, "go")), approved
    finally:
        GatedAgent.stop_daemon_of(agent.setup.home)


@proves("PVP-13-1", "PVP-14-1")
@pytest.mark.parametrize("variant", chosen_variants())
def test_refused_call_passes_once_after_its_approval(
    variant: str, make_agent: MakeAgent, server: ServerProcess
) -> None:
    people = People(server)
    with serve(Script({})) as model:
        agent = make_agent(variant.removesuffix("-code"), model, None)
        turn, approved = run_gated(variant, agent, people)

    texts = [each.text for each in turn.results]
    assert REFUSED in texts[0], turn
    assert REFUSED in texts[-1], turn
    assert (agent.setup.project / "ran.txt").read_text() == "ran\n"
    assert approved
    (result,) = people.history("tool.result")
    assert people.history("prompt.submit")
    (end,) = people.history("response.end")
    assert isinstance(end.body, ResponseEnd)
    assert end.body.usage is not None
    requests = len(model.exchanges)
    assert (end.body.usage.input_tokens, end.body.usage.output_tokens) == (
        requests * INPUT_TOKENS,
        requests * OUTPUT_TOKENS,
    )
    assert people.only_gate != approved[0]
    assert result.sender == people.history("tool.propose")[0].sender
