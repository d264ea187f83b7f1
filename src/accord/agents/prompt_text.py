"""A prompt as text for a model or a host: its words, and the context items that it names."""

from collections.abc import Awaitable, Callable

import msgspec

from accord.agents.prompt_queue import Prompt
from accord.client import ServerRefused

MAX_CONTEXT_CHARS = 100_000

ReadContext = Callable[[str, str | None], Awaitable[str]]


async def prompt_text(prompt: Prompt, read_context: ReadContext) -> str:
    """The prompt, and the context items that it names as far as they are readable."""
    parts = [f"{prompt.by}: {prompt.content}"]
    left = MAX_CONTEXT_CHARS
    for key in prompt.context_keys:
        try:
            content = await read_context(key, prompt.fork)
        except ServerRefused as refusal:
            content = f"(not readable: {refusal.message})"
        shown = content[:left]
        left -= len(shown)
        cut = "\n(the rest is left out)" if len(shown) < len(content) else ""
        name = msgspec.json.encode(key).decode()
        parts.append(f"<context key={name}>\n{shown}{cut}\n</context>")
    return "\n\n".join(parts)
