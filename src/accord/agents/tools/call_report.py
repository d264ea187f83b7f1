"""What is proposed for a call of a tool: the exact arguments, and what the server classes it by."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from accord.agents.tools.commit_tree import with_commit_tree
from accord.agents.tools.reading import REAL_PATHS
from accord.client import ClientError, ServerRefused
from accord.core.kernel.command_line import with_lines
from accord.core.policy.call_classification import classify
from accord.core.policy.call_findings import Classification
from accord.core.policy.policy_toml import NO_POLICY, Policy, PolicyError, digest_of, parse_policy
from accord.core.policy.reported_call import CallKind, Place, ReportedCall, reported_metadata
from accord.core.room.approval.tool_proposals import ToolPropose
from accord.own_directories import home_directory, own_directories

HOST_NAME = "accord-agent"
# A policy is not part of the session, so it is read again from time to time.
POLICY_AGE_S = 20.0
MAX_DESCRIPTION = 400
ReadPolicy = Callable[[], Awaitable[tuple[str, str]]]


class CallReporter:
    """Builds the proposals of one agent in one repository.

    The claim is what the newest signed policy says of the call. The server applies its own copy and
    takes whichever is stricter.
    """

    def __init__(
        self,
        agent: str,
        repository: str = "",
        read_policy: ReadPolicy | None = None,
        host: str = HOST_NAME,
    ) -> None:
        self._agent = agent
        self._repository = repository
        self._read_policy = read_policy
        self._host = host
        self._policy = NO_POLICY
        self._read_at = -POLICY_AGE_S

    async def proposal(
        self,
        kind: CallKind,
        tool: str,
        arguments: Mapping[str, Any],
        workdir: Path,
        *,
        description: str = "",
        mcp_server: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> ToolPropose:
        """The proposal of exactly this call in this directory."""
        policy = await self._newest_policy()
        exact = with_lines(arguments) if kind is CallKind.SHELL else dict(arguments)
        if kind is CallKind.SHELL and self._host == HOST_NAME:  # a host runs its own arguments
            exact = await asyncio.to_thread(with_commit_tree, exact, workdir)
        call = (kind, tool, exact, workdir, mcp_server)
        reported, found = await asyncio.to_thread(classify_here, *call, policy)
        if kind is CallKind.READ and (links := real_paths(reported)):
            exact = {**exact, REAL_PATHS: links}
        return ToolPropose(
            tool_name=tool,
            arguments=exact,
            agent=self._agent,
            risk_level=found.risk,
            description=(description or found.explanation)[:MAX_DESCRIPTION],
            requires_approval=False,
            category=found.category,
            metadata={
                **(metadata or {}),
                **reported_metadata(reported, self._repository, self._host),
            },
        )

    async def _newest_policy(self) -> Policy:
        if self._read_policy is None or not self._repository:
            return NO_POLICY
        if time.monotonic() - self._read_at >= POLICY_AGE_S:
            self._policy = await read_policy(self._read_policy)
            self._read_at = time.monotonic()
        return self._policy


def classify_here(
    kind: CallKind,
    tool: str,
    arguments: Mapping[str, Any],
    workdir: Path,
    mcp_server: str,
    policy: Policy,
) -> tuple[ReportedCall, Classification]:
    """The call with what its paths really are on this machine, and what the policy says of it."""
    from accord.real_paths import resolve
    from accord.shell_parser import parse_shell

    top = str(workdir.resolve())
    place = Place(
        cwd=top,
        worktree=top,
        home=home_directory(os.environ),
        protected=own_directories(os.environ),
        mcp_server=mcp_server,
    )
    reported = resolve(ReportedCall(kind, tool, arguments, place), parse_shell, policy)
    return reported, classify(reported, policy, parse_shell)


def real_paths(call: ReportedCall) -> dict[str, list[str]]:
    """Where the links of a call lead, which is part of what people approve."""
    return {path: list(real) for path, real in call.place.resolved.items() if real}


async def read_policy(read: ReadPolicy) -> Policy:
    """The signed policy; the absent one if none counts, or if the server cannot be asked."""
    try:
        digest, text = await read()
        return parse_policy(text) if digest_of(text) == digest else NO_POLICY
    except (ServerRefused, ClientError, PolicyError):
        return NO_POLICY
