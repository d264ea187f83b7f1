"""An agent of ours with a scripted model behind it, in a real session."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from accord.agents.conversation import Conversation
from accord.agents.loop import Agent
from accord.agents.model_behavior import ModelBehavior, ModelSettings, Price
from accord.agents.providers.model import ModelProvider
from accord.agents.providers.provider_table import PROVIDERS, open_provider
from accord.agents.tools.call_report import CallReporter
from accord.client import Client
from tests.helpers.servers.server_process import ServerProcess

MODEL_KEY = "sk-not-a-real-key-4711"
PROVIDER_NAMES = tuple(PROVIDERS)


def provider_for(name: str, model_url: str, key: str = MODEL_KEY) -> ModelProvider:
    """The provider at the scripted model's address."""
    row = PROVIDERS[name]
    url = model_url if name == "anthropic" else f"{model_url}/v1"
    return open_provider(name, {row.key_variable: key, row.url_variable: url})


@asynccontextmanager
async def run_model_agent(
    server: ServerProcess, session: str, workdir: Path, provider: ModelProvider
) -> AsyncIterator[Agent]:
    """Claude answers with this provider until the end of the block."""
    token = server.issue_token("claude", "agent", ["driver"])
    async with Client(server.url, token=token) as client:
        seat = await client.join(session)
        conversation = Conversation(seat.me)

        async def read_context(key: str, fork: str | None) -> str:
            return str((await client.context(session, key, fork)).content)

        async def find_workdir(fork: str | None) -> Path:
            del fork
            return workdir

        behavior = ModelBehavior(
            provider,
            ModelSettings(model="scripted", price=Price(1.0, 10.0)),
            conversation,
            CallReporter(seat.me),
            read_context,
            find_workdir,
        )
        agent = Agent(seat, behavior, workdir, on_message=conversation.receive)
        running = asyncio.create_task(agent.run())
        try:
            yield agent
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
