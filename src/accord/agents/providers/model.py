"""What a conversation with a model consists of, whatever the provider's wire format."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

FinishReason = Literal["complete", "max_tokens", "tool_use"]


class ToolSpec(NamedTuple):
    """A tool that the model may call; `schema` is the JSON Schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Any]


class ModelCall(msgspec.Struct, frozen=True):
    """A call that the model wants; `problem` says why its arguments cannot be read."""

    id: str
    name: str
    arguments: dict[str, Any]
    problem: str = ""


class CallResult(msgspec.Struct, frozen=True):
    """What the model is shown as the result of its call."""

    id: str
    text: str
    is_error: bool = False


class UserText(msgspec.Struct, frozen=True):
    """Words for the model."""

    text: str


class AssistantText(msgspec.Struct, frozen=True):
    """Words of the model in an earlier turn."""

    text: str


class AssistantTurn(msgspec.Struct, frozen=True):
    """A reply of this turn, in the provider's own form, which must come back unchanged."""

    native: Any


class CallResults(msgspec.Struct, frozen=True):
    """The results of all calls of the reply before, and what people said meanwhile."""

    results: tuple[CallResult, ...]
    text: str = ""


Entry = UserText | AssistantText | AssistantTurn | CallResults


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request; `params` are fields of the provider's own, which replace none of ours."""

    model: str
    system: str
    entries: tuple[Entry, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int
    temperature: float | None = None
    params: Mapping[str, Any] = {}


class TokenUsage(msgspec.Struct, frozen=True):
    """Tokens of one request; `input` has the cached ones, `output` those of thinking."""

    input: int = 0
    output: int = 0
    thinking: int = 0


class ModelReply(msgspec.Struct, frozen=True, kw_only=True):
    """A complete reply; its text was streamed to the listener already."""

    text: str
    calls: tuple[ModelCall, ...]
    finish: FinishReason
    usage: TokenUsage
    model: str
    native: Any


class ReplyListener(Protocol):
    """Gets a reply while it is made."""

    async def thinking(self, text: str) -> None:
        """The next part of the model's thinking."""
        ...

    async def text(self, text: str) -> None:
        """The next part of the answer."""
        ...


class ModelError(Exception):
    """The provider failed or refused; the message names no secret.

    `transient`: the same request may succeed later, after `retry_after_s` if that is known.
    """

    def __init__(
        self, message: str, *, transient: bool = False, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.transient = transient
        self.retry_after_s = retry_after_s


class ModelProvider(Protocol):
    """One provider with one key."""

    async def reply(self, request: ModelRequest, listener: ReplyListener) -> ModelReply:
        """Stream a reply; raises ModelError. Cancelling it ends the request at once."""
        ...


def parse_arguments(id: str, name: str, text: str) -> ModelCall:
    """A call whose arguments are JSON text; models sometimes write it wrongly."""
    try:
        arguments = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError) as error:
        return ModelCall(id, name, {}, f"The arguments are not JSON: {error}")
    if not isinstance(arguments, dict):
        return ModelCall(id, name, {}, "The arguments are not a JSON object")
    return ModelCall(id, name, arguments)


def with_params(body: dict[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """The body of a request with the provider's own fields added."""
    return {**params, **body}
