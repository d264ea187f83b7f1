"""MCP's public conformance suite, and the Inspector's command line, against a real server."""

import asyncio
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.clients import mcp_programs
from tests.helpers.git.npm_programs import NODE_DIR
from tests.helpers.servers.server_process import ServerProcess, run_server

NODE = str(NODE_DIR / "node")
TIMEOUT_S = 110
REVISIONS = ("2025-06-18", "2025-11-25", "2026-07-28")

# Scenarios of the suite that a server cannot pass without the suite's own fixtures, by what they
# need. Everything else has to pass, in every revision that has it.
NEEDS_FIXTURES = {
    "a tool named `test_…` that returns text, media, an error, progress or log lines": {
        "tools-call-simple-text",
        "tools-call-image",
        "tools-call-audio",
        "tools-call-embedded-resource",
        "tools-call-mixed-content",
        "tools-call-with-logging",
        "tools-call-error",
        "tools-call-with-progress",
        "json-schema-2020-12",
    },
    "a tool that asks the client back for samples, roots or forms": {
        "tools-call-sampling",
        "tools-call-elicitation",
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "input-required-result-basic-elicitation",
        "input-required-result-basic-sampling",
        "input-required-result-basic-list-roots",
        "input-required-result-request-state",
        "input-required-result-multiple-input-requests",
        "input-required-result-multi-round",
        "input-required-result-non-tool-request",
        "input-required-result-result-type",
        "input-required-result-tampered-state",
        "input-required-result-capability-check",
    },
    "resources `test://…`": {
        "resources-read-text",
        "resources-read-binary",
        "resources-templates-read",
        "resources-subscribe",
        "resources-unsubscribe",
    },
    "prompts, log levels or completion, which this server does not have": {
        "prompts-list",
        "prompts-get-simple",
        "prompts-get-with-args",
        "prompts-get-embedded-resource",
        "prompts-get-with-image",
        "logging-set-level",
        "completion-complete",
    },
    "a tool with `x-mcp-header` annotations": {"http-custom-header-server-validation"},
}
# Checks of other scenarios that need the same.
CHECKS_THAT_NEED_FIXTURES = {
    "sep-2549-prompts-list-caching-hints": "prompts",
    "sep-2575-server-rejects-undeclared-capability": "the tool `test_missing_capability`",
    "sep-2575-missing-capability-http-400": "the tool `test_missing_capability`",
    "sep-2575-http-server-no-independent-requests-on-stream": "`test_streaming_elicitation`",
    "sep-2575-server-no-log-without-loglevel": "the tool `test_logging_tool`",
}
# Ends the name of a scenario's folder.
DATE = re.compile(r"-\d{4}-\d\d-\d\dT")
pytestmark = [pytest.mark.network, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with run_server(tmp_path_factory.mktemp("house")) as server:
        yield server


@pytest.fixture(scope="module")
def commands() -> Path:
    return mcp_programs.ensure_installed()


async def run_suite(commands: Path, url: str, revision: str, folder: Path) -> dict[str, list[Any]]:
    """The checks of each scenario."""
    options = ["--suite", "all", "--spec-version", revision, "-o", str(folder)]
    words = [str(commands / "conformance"), "server", "--url", f"{url}/mcp", *options]
    process = await asyncio.create_subprocess_exec(
        NODE, *words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    async with asyncio.timeout(TIMEOUT_S):
        said, _ = await process.communicate()
    found = checks_in(folder)
    assert found, said.decode()
    return found


def checks_in(folder: Path) -> dict[str, list[Any]]:
    """What the suite wrote, by scenario."""
    return {
        DATE.split(file.parent.name.removeprefix("server-"))[0]: json.loads(file.read_bytes())
        for file in folder.rglob("checks.json")
    }


async def test_conformance_suite_passes_but_for_what_needs_its_fixtures(
    house: ServerProcess, commands: Path, tmp_path: Path
) -> None:
    excused = set().union(*NEEDS_FIXTURES.values())
    token = house.issue_token("claude", "agent")
    async with mcp_programs.with_token(house.url, token) as url:
        found = await asyncio.gather(
            *(run_suite(commands, url, each, tmp_path / each) for each in REVISIONS)
        )

    passed = set()
    for revision, scenarios in zip(REVISIONS, found, strict=True):
        for name, checks in scenarios.items():
            failed = [check for check in checks if check["status"] == "FAILURE"]
            unexcused = [
                (revision, name, check["id"], check.get("errorMessage"))
                for check in failed
                if name not in excused and check["id"] not in CHECKS_THAT_NEED_FIXTURES
            ]
            assert not unexcused
            if not failed:
                passed.add((name, revision))
    assert ("server-session-lifecycle", "2025-06-18") in passed
    assert {"tools-list", "resources-list", "dns-rebinding-protection", "ping"} <= {
        name for name, _ in passed
    }
    # An excuse that is no longer needed is dropped.
    assert not excused & {name for name, _ in passed}


def inspect(commands: Path, home: Path, *words: str) -> Any:
    """What the Inspector's command line prints."""
    ran = subprocess.run(
        [NODE, str(commands / "mcp-inspector"), "--cli", *words],
        env={
            **os.environ,
            "HOME": str(home),
            "PATH": f"{NODE_DIR}{os.pathsep}{os.environ['PATH']}",
        },
        capture_output=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    return json.loads(ran.stdout)


def test_inspector_lists_and_calls_tools(
    house: ServerProcess, commands: Path, tmp_path: Path
) -> None:
    header = f"Authorization: Bearer {house.issue_token('codex', 'agent')}"
    target = (f"{house.url}/mcp", "--transport", "http", "--header", header)

    listed = inspect(commands, tmp_path, *target, "--method", "tools/list")
    called = inspect(
        commands, tmp_path, *target, "--method", "tools/call", "--tool-name", "whats_waiting"
    )

    assert "propose_and_wait" in {tool["name"] for tool in listed["tools"]}
    assert called["structuredContent"]["counts"]["gates"] == 0
