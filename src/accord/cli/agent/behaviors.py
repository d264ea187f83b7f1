"""What answers prompts: a script, a model or a host; checked before the session is joined."""

import argparse
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from accord.core.kernel.refusal import Reason, Refused

if TYPE_CHECKING:
    from accord.agents.conversation import Conversation
    from accord.agents.host_programs.host_behavior import HostBehavior, HostDriver
    from accord.agents.loop import AgentBehavior
    from accord.agents.prompt_text import ReadContext
    from accord.agents.tools.call_report import CallReporter
    from accord.agents.tools.work_tree_record import WorkTreeRecorder
    from accord.agents.worktrees import FindWorkdir, Worktrees
    from accord.client import Client
    from accord.git.repository import Repository

SCRIPTED = "scripted"


class BehaviorMaker:
    """Makes what answers, once the session is joined; everything is checked before that."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.metadata: dict[str, str] = {}
        self._trees: Worktrees | None = None

    def make(
        self, client: "Client", session: str, conversation: "Conversation", workdir: Path
    ) -> "AgentBehavior":
        """What answers prompts."""
        raise NotImplementedError

    def find_workdir(self, session: str, workdir: Path) -> "FindWorkdir":
        """Finds the directory for a fork."""
        from accord.agents.worktrees import Worktrees

        repository = find_repository(workdir) if self.args.worktree else None
        trees = self._trees = Worktrees(repository, session) if repository else None

        async def find(fork: str | None) -> Path:
            return workdir if fork is None or trees is None else await trees.directory(fork)

        return find

    def recorder_of(self, directory: Path) -> "WorkTreeRecorder | None":
        """What records runs in the work tree of a fork."""
        return self._trees.recorder(directory) if self._trees else None

    async def close(self) -> None:
        """End what was started."""


class ScriptMaker(BehaviorMaker):
    """An agent that follows a script."""

    def __init__(self, args: argparse.Namespace) -> None:
        from accord.agents.script import ScriptError, load_script

        super().__init__(args)
        if args.script is None:
            raise Refused(Reason.MALFORMED, "A scripted agent needs a script; give --script FILE")
        try:
            self._script = load_script(args.script)
        except ScriptError as error:
            raise Refused(Reason.MALFORMED, str(error)) from None

    def make(
        self, client: "Client", session: str, conversation: "Conversation", workdir: Path
    ) -> "AgentBehavior":
        """Plays the script."""
        from accord.agents.scripted_behavior import ScriptedBehavior

        del client, conversation
        return ScriptedBehavior(self._script, self.find_workdir(session, workdir))


class ModelMaker(BehaviorMaker):
    """An agent that asks a model; its key is read here and goes nowhere but to the provider."""

    def __init__(self, args: argparse.Namespace) -> None:
        from accord.agents.model_behavior import ModelSettings, Price
        from accord.agents.providers.model import ModelError
        from accord.agents.providers.provider_table import open_provider

        super().__init__(args)
        model = args.model or os.environ.get("ACCORD_MODEL", "")
        if not model:
            raise Refused(Reason.MALFORMED, "Which model? Give --model NAME, or set ACCORD_MODEL")
        try:
            self._provider = open_provider(args.provider, os.environ, args.base_url or "")
        except ModelError as error:
            raise Refused(Reason.MALFORMED, str(error)) from None
        more = {"max_tokens": args.max_tokens} if args.max_tokens else {}
        price = Price(*args.price) if args.price else None
        self._settings = ModelSettings(model=model, price=price, params=args.params or {}, **more)
        self.metadata = {"provider": args.provider, "model": model}

    def make(
        self, client: "Client", session: str, conversation: "Conversation", workdir: Path
    ) -> "AgentBehavior":
        """Asks the model."""
        from accord.agents.model_behavior import ModelBehavior

        return ModelBehavior(
            self._provider,
            self._settings,
            conversation,
            call_reporter(client, workdir),
            context_reader(client, session),
            self.find_workdir(session, workdir),
        )


class HostMaker(BehaviorMaker):
    """An agent that drives a program of another vendor."""

    def __init__(self, args: argparse.Namespace) -> None:
        from shutil import which

        super().__init__(args)
        words = host_command(args)
        program = which(words[0])
        if program is None:
            raise Refused(Reason.NOT_FOUND, f"{words[0]} is not installed, or not on PATH")
        self._words = (program, *words[1:])
        self._behavior: HostBehavior | None = None
        self._work_trees: set[Path] = set()
        self._working = AsyncExitStack()
        name = args.host or Path(words[0]).name
        self.metadata = {"host": name, **({"model": args.model} if args.model else {})}

    def make(
        self, client: "Client", session: str, conversation: "Conversation", workdir: Path
    ) -> "AgentBehavior":
        """Drives the program."""
        from accord.agents.host_programs.host_behavior import HostBehavior

        async def start(directory: Path, fork: str | None) -> "HostDriver":
            await self._work_in(directory)
            if self.args.host == "claude":
                from accord.agents.host_programs.claude_stream import ClaudeDriver

                model = self.args.model or ""
                return await ClaudeDriver.start(directory, session, fork, model, self._words[0])
            from accord.agents.host_programs.acp_agent import AcpDriver

            return await AcpDriver.start(directory, session, fork, self._words)

        self._behavior = HostBehavior(
            start,
            conversation,
            call_reporter(client, workdir, self.metadata["host"]),
            context_reader(client, session),
            self.find_workdir(session, workdir),
        )
        return self._behavior

    async def _work_in(self, directory: Path) -> None:
        """Let other agents know that a host writes here, until the end."""
        from accord.agents.tools.work_tree_record import host_at_work

        if self.recorder_of(directory) is not None and directory not in self._work_trees:
            self._work_trees.add(directory)
            await self._working.enter_async_context(host_at_work(directory))

    async def close(self) -> None:
        """End the programs."""
        if self._behavior is not None:
            await self._behavior.close()
        await self._working.aclose()


def host_command(args: argparse.Namespace) -> list[str]:
    """The words that start the host."""
    import shlex

    if args.host:
        model = ["-m", args.model] if args.model and args.host == "gemini" else []
        return [args.host, *(["--acp", *model] if args.host == "gemini" else [])]
    try:
        words = shlex.split(args.acp)
    except ValueError as error:
        raise Refused(Reason.MALFORMED, f"--acp is not a command: {error}") from None
    if not words:
        raise Refused(Reason.MALFORMED, "--acp needs the command of an agent that speaks ACP")
    return words


def call_reporter(client: "Client", workdir: Path, host: str = "") -> "CallReporter":
    """Proposes calls in the repository around the work directory."""
    from accord.agents.tools.call_report import HOST_NAME, CallReporter

    repository = find_repository(workdir)
    id = repository.try_text("config", "--local", "accord.repo") if repository else ""

    async def read_policy() -> tuple[str, str]:
        signed = await client.signed_policy(id or "")
        return signed.digest, signed.text

    return CallReporter(client.id, id or "", read_policy, host or HOST_NAME)


def context_reader(client: "Client", session: str) -> "ReadContext":
    """Reads context items of the session."""
    import msgspec

    async def read_context(key: str, fork: str | None) -> str:
        content = (await client.context(session, key, fork)).content
        return content if isinstance(content, str) else msgspec.json.encode(content).decode()

    return read_context


def behavior_maker(args: argparse.Namespace) -> BehaviorMaker:
    """What the arguments ask for; raises Refused if something is missing."""
    if args.worktree and find_repository((args.workdir or Path.cwd()).resolve()) is None:
        raise Refused(Reason.NOT_FOUND, "--worktree needs a git repository to work in")
    if args.host or args.acp is not None:
        return HostMaker(args)
    return ScriptMaker(args) if args.provider == SCRIPTED else ModelMaker(args)


def find_repository(workdir: Path) -> "Repository | None":
    """The repository around the work directory."""
    from accord.git.repository import find_repository as find

    found = find(workdir)
    return None if found is None or found.is_bare else found
