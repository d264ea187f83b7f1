"""Wakes agents by the vendors' own command lines, where an operator has set that up."""

import asyncio
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from accord.core.attention.runtimes import RUNTIME_REF_FORMS, Runtime, RuntimeOrigin
from accord.core.attention.waking.outcomes import (
    RESULT_OF_ACTION,
    WakeAction,
    WakeCause,
    WakeResult,
)
from accord.core.attention.waking.waker_port import OnAttempt, WakeJob, WakeReport, WakeTarget
from accord.waking.adapters import ADAPTERS, Adapter, arguments
from accord.waking.commands import (
    CommandOutcome,
    CommandState,
    WakeCommand,
    environment_for,
    run_wake_command,
    shown,
)
from accord.waking.configuration import WakeableAgent, WakeableAgents

# Programs of agents that run at the same time; further wakes wait for one of them to end.
MAX_AT_ONCE = 4
# A command that fails within this time has woken no agent, so the next way is tried. One that fails
# later may have done anything.
EARLY_FAILURE_S = 30.0
LIST_TIMEOUT_S = 30.0

UNTRIED = WakeReport(WakeAction.NONE, WakeResult.FAILED, WakeCause.NO_FALLBACK)


class Attempt(NamedTuple):
    """One way to wake: the command, and the one that shows whether the conversation is open."""

    action: WakeAction
    adapter: Adapter
    command: WakeCommand
    list_open: WakeCommand | None = None
    runtime_ref: str = ""


class CommandWaker:
    """Runs resume and spawn commands for the agents that the file of `--wake` names."""

    def __init__(
        self, agents: WakeableAgents, machine: str, environment: Mapping[str, str] | None = None
    ) -> None:
        self._agents = agents
        self._machine = machine
        self._environment = dict(os.environ if environment is None else environment)
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)

    def resumable(self, target: WakeTarget, runtimes: Iterable[Runtime]) -> frozenset[str]:
        """Those that started on this machine, in a directory and program named for this agent."""
        found = ((one.session_id, self._row_of(target, one)) for one in runtimes)
        return frozenset(session_id for session_id, row in found if row is not None)

    def can_spawn(self, target: WakeTarget) -> bool:
        """Whether the operator allows new sessions of this agent."""
        return self._spawn_row(target) is not None

    async def wake(self, job: WakeJob, on_attempt: OnAttempt) -> WakeReport:
        """Try each way until one works; returns when that program has ended."""
        report = UNTRIED
        async with self._slots:
            for attempt in self._attempts(job):
                on_attempt(attempt.action, shown(attempt.command.argv))
                began = time.monotonic()
                report = await self._try(attempt)
                late = time.monotonic() - began > EARLY_FAILURE_S
                if report.result is not WakeResult.FAILED or late:
                    break
        return report

    def _attempts(self, job: WakeJob) -> Iterator[Attempt]:
        for action in job.actions:
            if action is WakeAction.RESUME_SESSION and job.runtime is not None:
                row, origin = self._row_of(job.target, job.runtime), job.runtime.origin
                if row is not None and origin is not None:
                    yield self._resume(row, origin, job.prompt)
            elif action is WakeAction.SPAWN_SESSION and (row := self._spawn_row(job.target)):
                adapter = ADAPTERS[row.runtime]
                argv = arguments(adapter.spawn, options=row.options, prompt=job.fresh_prompt)
                yield Attempt(action, adapter, self._command(row, argv, row.timeout_seconds))

    def _resume(self, row: WakeableAgent, origin: RuntimeOrigin, prompt: str) -> Attempt:
        adapter, ref = ADAPTERS[row.runtime], origin.runtime_ref
        argv = arguments(adapter.resume, options=row.options, runtime_ref=ref, prompt=prompt)
        looks = (
            self._command(row, list(adapter.list_open), LIST_TIMEOUT_S)
            if adapter.list_open
            else None
        )
        command = self._command(row, argv, row.timeout_seconds)
        return Attempt(WakeAction.RESUME_SESSION, adapter, command, looks, ref)

    async def _try(self, attempt: Attempt) -> WakeReport:
        action, command = attempt.action, shown(attempt.command.argv)
        if attempt.list_open is not None:
            listed = await run_wake_command(attempt.list_open)
            # Not knowing counts as open: resuming what is open splits the conversation.
            if listed.state is not CommandState.DONE or attempt.runtime_ref in listed.output:
                cause = WakeCause.OPEN_ELSEWHERE
                return WakeReport(action, WakeResult.FAILED, cause, listed.detail, command)
        outcome = await run_wake_command(attempt.command)
        if outcome.state is CommandState.DONE:
            result = RESULT_OF_ACTION[action]
            return WakeReport(action, result, WakeCause.UNREAD, outcome.detail, command)
        cause = _cause_of_failure(attempt.adapter, outcome)
        return WakeReport(action, WakeResult.FAILED, cause, outcome.detail, command)

    def _command(self, row: WakeableAgent, argv: list[str], timeout_s: float) -> WakeCommand:
        names = (*ADAPTERS[row.runtime].environment, *row.environment)
        environment = environment_for(self._environment, names)
        return WakeCommand((row.program, *argv), row.directory, environment, timeout_s)

    def _row_of(self, target: WakeTarget, runtime: Runtime) -> WakeableAgent | None:
        """The operator's row for a runtime; its origin must match in every respect."""
        origin = runtime.origin
        if origin is None or origin.machine != self._machine:
            return None
        if not RUNTIME_REF_FORMS[runtime.runtime].fullmatch(origin.runtime_ref):
            return None
        directory = os.path.realpath(origin.directory)
        for row in self._agents.get(target, ()):
            if row.resume and (row.runtime, row.directory) == (runtime.runtime, directory):
                return row
        return None

    def _spawn_row(self, target: WakeTarget) -> WakeableAgent | None:
        return next((row for row in self._agents.get(target, ()) if row.spawn), None)


def _cause_of_failure(adapter: Adapter, outcome: CommandOutcome) -> WakeCause:
    held = any(words in outcome.output for words in adapter.open_elsewhere)
    return WakeCause.OPEN_ELSEWHERE if held else WakeCause.COMMAND_FAILED
