"""The Chat Completions API (`POST /chat/completions`), which many providers and servers speak."""

from collections.abc import Mapping
from typing import Any

import msgspec

from accord.agents.providers.model import (
    AssistantText,
    AssistantTurn,
    CallResults,
    Entry,
    FinishReason,
    ModelError,
    ModelReply,
    ModelRequest,
    ReplyListener,
    TokenUsage,
    UserText,
    parse_arguments,
    with_params,
)
from accord.agents.providers.openai_responses import usage_of
from accord.agents.providers.provider_events import ProviderAddress, error_text, post_for_events

FINISH: Mapping[str, FinishReason] = {
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "max_tokens",
}
THINKING_KEYS = ("reasoning_content", "reasoning")
MAX_CALLS = 128


class OpenAIChat:
    """Speaks to any server with this API; a server on one's own machine often needs no key."""

    def __init__(self, url: str, key: str) -> None:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._endpoint = ProviderAddress(url, headers, key)

    async def reply(self, request: ModelRequest, listener: ReplyListener) -> ModelReply:
        """Stream a reply; raises ModelError."""
        partial = PartialCompletion(request.model)
        events = post_for_events(self._endpoint, "/chat/completions", request_body(request))
        async for event in events:
            if event.get("error"):
                detail = self._endpoint.hide(error_text(msgspec.json.encode(event)))
                raise ModelError(f"{self._endpoint.url} failed: {detail}")
            delta = partial.take(event)
            for key in THINKING_KEYS:
                if isinstance(text := delta.get(key), str) and text:
                    await listener.thinking(text)
            if isinstance(text := delta.get("content"), str) and text:
                await listener.text(text)
        return partial.reply()


def request_body(request: ModelRequest) -> dict[str, Any]:
    """The body of the request."""
    messages = [{"role": "system", "content": request.system}]
    body: dict[str, Any] = {
        "model": request.model,
        "messages": messages + [each for entry in request.entries for each in wire_messages(entry)],
        "max_tokens": request.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": each.name,
                    "description": each.description,
                    "parameters": each.schema,
                },
            }
            for each in request.tools
        ]
    if request.temperature is not None:
        body["temperature"] = request.temperature
    return with_params(body, request.params)


def wire_messages(entry: Entry) -> list[dict[str, Any]]:
    """An entry as messages."""
    match entry:
        case UserText(text=text):
            return [{"role": "user", "content": text}]
        case AssistantText(text=text):
            return [{"role": "assistant", "content": text}]
        case AssistantTurn(native=message):
            return [message]
        case CallResults(results=results, text=text):
            shown: list[dict[str, Any]] = [
                {"role": "tool", "tool_call_id": each.id, "content": each.text or "(no output)"}
                for each in results
            ]
            return [*shown, *([{"role": "user", "content": text}] if text else [])]


class PartialCompletion:
    """A completion while its chunks arrive."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._text: list[str] = []
        self._calls: dict[int, dict[str, str]] = {}
        self._finish = ""
        self._usage = TokenUsage()

    def take(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add a chunk; returns what it adds."""
        if isinstance(model := event.get("model"), str):
            self._model = model
        if isinstance(event.get("usage"), dict):
            self._usage = usage_of(event["usage"])
        choices = event.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else {}
        if not isinstance(choice, dict):
            return {}
        self._finish = str(choice.get("finish_reason") or self._finish)
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return {}
        if isinstance(text := delta.get("content"), str):
            self._text.append(text)
        calls = delta.get("tool_calls")
        for number, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict):
                self._extend(call, number)
        return delta

    def _extend(self, call: Mapping[str, Any], number: int) -> None:
        index = call.get("index", number)
        if type(index) is not int or (index not in self._calls and len(self._calls) >= MAX_CALLS):
            raise ModelError("The provider sent more calls than are possible")
        known = self._calls.setdefault(index, {"id": "", "name": "", "arguments": ""})
        function = call.get("function")
        named = function if isinstance(function, dict) else {}
        known["id"] = str(call.get("id") or known["id"])
        known["name"] = str(named.get("name") or known["name"])
        known["arguments"] += str(named.get("arguments") or "")

    def reply(self) -> ModelReply:
        """The whole; raises ModelError if the stream ended too early."""
        if not self._finish:
            raise ModelError("The provider's answer ended before it was complete", transient=True)
        calls = [each for _, each in sorted(self._calls.items())]
        text = "".join(self._text)
        native: dict[str, Any] = {"role": "assistant", "content": text or None}
        if calls:
            native["tool_calls"] = [
                {
                    "id": each["id"],
                    "type": "function",
                    "function": {"name": each["name"], "arguments": each["arguments"] or "{}"},
                }
                for each in calls
            ]
        return ModelReply(
            text=text,
            calls=tuple(parse_arguments(**_texts(each)) for each in calls),
            finish="tool_use" if calls else FINISH.get(self._finish, "complete"),
            usage=self._usage,
            model=self._model,
            native=native,
        )


def _texts(call: Mapping[str, str]) -> dict[str, str]:
    return {"id": call["id"], "name": call["name"], "text": call["arguments"]}
