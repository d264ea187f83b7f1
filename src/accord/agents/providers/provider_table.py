"""Which providers there are, and which variables hold their address and key."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from accord.agents.providers.anthropic_messages import DEFAULT_URL as ANTHROPIC_URL
from accord.agents.providers.anthropic_messages import AnthropicMessages
from accord.agents.providers.model import ModelError, ModelProvider
from accord.agents.providers.openai_chat import OpenAIChat
from accord.agents.providers.openai_responses import DEFAULT_URL as OPENAI_URL
from accord.agents.providers.openai_responses import OpenAIResponses
from accord.agents.providers.provider_events import check_address


class ProviderRow(NamedTuple):
    """How a provider is made; a key is never an argument or a setting in a file."""

    make: Callable[[str, str], ModelProvider]
    key_variable: str
    url_variable: str
    default_url: str = ""
    needs_key: bool = True


PROVIDERS: Mapping[str, ProviderRow] = {
    "anthropic": ProviderRow(
        AnthropicMessages, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", ANTHROPIC_URL
    ),
    "openai": ProviderRow(OpenAIResponses, "OPENAI_API_KEY", "OPENAI_BASE_URL", OPENAI_URL),
    "openai-compatible": ProviderRow(
        OpenAIChat, "OPENAI_API_KEY", "OPENAI_BASE_URL", needs_key=False
    ),
}


def open_provider(name: str, environment: Mapping[str, str], url: str = "") -> ModelProvider:
    """The provider with the key of the environment; raises ModelError."""
    row = PROVIDERS[name]
    key = environment.get(row.key_variable, "").strip()
    if row.needs_key and not key:
        raise ModelError(f"There is no key: set {row.key_variable} in the environment")
    address = url or environment.get(row.url_variable, "") or row.default_url
    if not address:
        raise ModelError(f"Which server? Give --base-url, or set {row.url_variable}")
    return row.make(check_address(address), key)
