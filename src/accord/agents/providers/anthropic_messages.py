"""Anthropic's Messages API (`POST /v1/messages`), streamed."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from accord.agents.providers.model import (
    AssistantText,
    AssistantTurn,
    CallResults,
    Entry,
    FinishReason,
    ModelCall,
    ModelError,
    ModelReply,
    ModelRequest,
    ReplyListener,
    TokenUsage,
    UserText,
    parse_arguments,
    with_params,
)
from accord.agents.providers.provider_events import ProviderAddress, error_text, post_for_events

DEFAULT_URL = "https://api.anthropic.com"
VERSION = "2023-06-01"
FINISH: Mapping[str, FinishReason] = {"tool_use": "tool_use", "max_tokens": "max_tokens"}
CACHED = {"cache_control": {"type": "ephemeral"}}
TRANSIENT_ERRORS = frozenset({"overloaded_error", "api_error", "rate_limit_error"})
INPUT_COUNTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class AnthropicMessages:
    """Speaks to `ANTHROPIC_BASE_URL` with `ANTHROPIC_API_KEY`."""

    def __init__(self, url: str, key: str) -> None:
        headers = {"x-api-key": key, "anthropic-version": VERSION}
        self._endpoint = ProviderAddress(url, headers, key)

    async def reply(self, request: ModelRequest, listener: ReplyListener) -> ModelReply:
        """Stream a reply; raises ModelError."""
        partial = PartialMessage(request.model)
        events = post_for_events(self._endpoint, "/v1/messages", request_body(request))
        async for event in events:
            if event.get("type") == "error":
                raise _stream_error(self._endpoint, event)
            for is_thinking, text in partial.take(event):
                await (listener.thinking(text) if is_thinking else listener.text(text))
        return partial.reply()


def request_body(request: ModelRequest) -> dict[str, Any]:
    """The body of the request; what stays the same from request to request is cached."""
    tools = [
        {"name": each.name, "description": each.description, "input_schema": each.schema}
        for each in request.tools
    ]
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "system": [{"type": "text", "text": request.system, **CACHED}],
        "messages": joined([wire_message(entry) for entry in request.entries]),
        "stream": True,
    }
    if tools:
        body["tools"] = tools
    if request.temperature is not None:
        body["temperature"] = request.temperature
    return with_params(body, request.params)


def wire_message(entry: Entry) -> dict[str, Any]:
    """An entry as a message."""
    match entry:
        case UserText(text=text):
            return {"role": "user", "content": [{"type": "text", "text": text}]}
        case AssistantText(text=text):
            return {"role": "assistant", "content": [{"type": "text", "text": text}]}
        case AssistantTurn(native=blocks):
            return {"role": "assistant", "content": blocks}
        case CallResults(results=results, text=text):
            content: list[dict[str, Any]] = [
                {
                    "type": "tool_result",
                    "tool_use_id": each.id,
                    "content": each.text or "(no output)",
                    **({"is_error": True} if each.is_error else {}),
                }
                for each in results
            ]
            return {
                "role": "user",
                "content": [*content, *([{"type": "text", "text": text}] if text else [])],
            }


def joined(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbours of the same role as one message, which the API wants."""
    result: list[dict[str, Any]] = []
    for message in messages:
        if result and result[-1]["role"] == message["role"]:
            content = [*result[-1]["content"], *message["content"]]
            result[-1] = {**message, "content": content}
        elif message["content"]:
            result.append(message)
    return result


class PartialMessage:
    """A message while its events arrive; every field is checked, since anything may be sent."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._blocks: dict[int, dict[str, Any]] = {}
        self._json: dict[int, list[str]] = {}
        self._counts: dict[str, int] = {}
        self._stop_reason = ""
        self._is_complete = False

    def take(self, event: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
        """Add an event; what it adds to the thinking (True) or the answer is yielded."""
        index = event.get("index")
        match event.get("type"), event:
            case "message_start", {"message": dict(message)}:
                self._model = str(message.get("model") or self._model)
                self._count(message.get("usage"))
            case "content_block_start", {"content_block": dict(block)} if isinstance(index, int):
                self._blocks[index] = dict(block)
            case "content_block_delta", {"delta": dict(delta)} if isinstance(index, int):
                yield from self._extend(index, delta)
            case "message_delta", {"delta": dict(delta)}:
                self._stop_reason = str(delta.get("stop_reason") or self._stop_reason)
                self._count(event.get("usage"))
            case "message_stop", _:
                self._is_complete = True
            case _:
                pass

    def _extend(self, index: int, delta: Mapping[str, Any]) -> Iterator[tuple[bool, str]]:
        block = self._blocks.setdefault(index, {"type": "text", "text": ""})
        for key, is_thinking in (("text", False), ("thinking", True)):
            if isinstance(text := delta.get(key), str):
                block[key] = f"{block.get(key) or ''}{text}"
                yield is_thinking, text
        if isinstance(signature := delta.get("signature"), str):
            block["signature"] = f"{block.get('signature') or ''}{signature}"
        if isinstance(part := delta.get("partial_json"), str):
            self._json.setdefault(index, []).append(part)

    def _count(self, usage: Any) -> None:
        for name, value in (usage if isinstance(usage, dict) else {}).items():
            if type(value) is int and value >= 0:
                self._counts[name] = value

    def reply(self) -> ModelReply:
        """The whole; raises ModelError if the stream ended too early."""
        if not self._is_complete:
            raise ModelError("The provider's answer ended before it was complete", transient=True)
        calls: list[ModelCall] = []
        blocks: list[dict[str, Any]] = []
        for index, block in sorted(self._blocks.items()):
            if block.get("type") == "tool_use":
                text = "".join(self._json.get(index, ())) or "{}"
                call = parse_arguments(str(block.get("id")), str(block.get("name")), text)
                calls.append(call)
                blocks.append({**block, "input": call.arguments})
            elif block.get("type") != "text" or block.get("text"):
                blocks.append(block)
        return ModelReply(
            text="".join(str(each.get("text", "")) for each in blocks if each["type"] == "text"),
            calls=tuple(calls),
            finish=FINISH.get(self._stop_reason, "complete"),
            usage=TokenUsage(
                input=sum(self._counts.get(name, 0) for name in INPUT_COUNTS),
                output=self._counts.get("output_tokens", 0),
            ),
            model=self._model,
            native=blocks,
        )


def _stream_error(endpoint: ProviderAddress, event: Mapping[str, Any]) -> ModelError:
    error = event.get("error")
    kind = str(error.get("type")) if isinstance(error, dict) else ""
    detail = endpoint.hide(error_text(msgspec.json.encode(event)))
    return ModelError(f"{endpoint.url} failed: {detail}", transient=kind in TRANSIENT_ERRORS)
