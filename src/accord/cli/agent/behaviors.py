"""What answers prompts: a script or a model. All is checked before the session is joined."""

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING

from accord.core.kernel.refusal import Reason, Refused

if TYPE_CHECKING:
    from accord.agents.conversation import Conversation
    from accord.agents.loop import AgentBehavior
    from accord.agents.model_behavior import FindWorkdir
    from accord.client import Client
    from accord.git.repository import Repository

SCRIPTED = "scripted"


class BehaviorMaker:
    """Makes what answers, once the session is joined; everything is checked before that."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.metadata: dict[str, str] = {}

    def make(
        self, client: "Client", session: str, conversation: "Conversation", workdir: Path
    ) -> "AgentBehavior":
        """What answers prompts."""
        raise NotImplementedError


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

        del client, session, conversation, workdir
        return ScriptedBehavior(self._script)


class ModelMaker(BehaviorMaker):
    """An agent that asks a model; its key is read here and goes nowhere but to the provider."""

    def __init__(self, args: argparse.Namespace) -> None:
        from accord.agents.model_behavior import ModelSettings, Price
        from accord.agents.providers.model import ModelError
        from accord.agents.providers.table import open_provider

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
        import msgspec

        from accord.agents.model_behavior import ModelBehavior
        from accord.agents.tools.call_report import CallReporter

        repository = find_repository(workdir)
        id = repository.try_text("config", "--local", "accord.repo") if repository else ""

        async def read_policy() -> tuple[str, str]:
            signed = await client.signed_policy(id or "")
            return signed.digest, signed.text

        async def read_context(key: str, fork: str | None) -> str:
            content = (await client.context(session, key, fork)).content
            return content if isinstance(content, str) else msgspec.json.encode(content).decode()

        return ModelBehavior(
            self._provider,
            self._settings,
            conversation,
            CallReporter(client.id, id or "", read_policy),
            read_context,
            workdir_finder(self.args, session, workdir),
        )


def behavior_maker(args: argparse.Namespace) -> BehaviorMaker:
    """What the arguments ask for; raises Refused if something is missing."""
    if args.worktree and find_repository((args.workdir or Path.cwd()).resolve()) is None:
        raise Refused(Reason.NOT_FOUND, "--worktree needs a git repository to work in")
    return ScriptMaker(args) if args.provider == SCRIPTED else ModelMaker(args)


def find_repository(workdir: Path) -> "Repository | None":
    """The repository around the work directory."""
    from accord.git.repository import find_repository as find

    found = find(workdir)
    return None if found is None or found.is_bare else found


def workdir_finder(args: argparse.Namespace, session: str, workdir: Path) -> "FindWorkdir":
    """Finds the directory for a fork."""
    from accord.agents.worktrees import Worktrees

    repository = find_repository(workdir) if args.worktree else None
    trees = Worktrees(repository, session) if repository else None

    async def find(fork: str | None) -> Path:
        return workdir if fork is None or trees is None else await trees.directory(fork)

    return find
