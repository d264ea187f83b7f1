"""OpenAI's Responses API (`POST /responses`), streamed; nothing is kept at the provider."""

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
from accord.agents.providers.provider_events import ProviderAddress, error_text, post_for_events

DEFAULT_URL = "https://api.openai.com/v1"
TEXT_DELTA = "response.output_text.delta"
THINKING_DELTAS = frozenset(
    {"response.reasoning_summary_text.delta", "response.reasoning_text.delta"}
)
FINAL = frozenset({"response.completed", "response.incomplete"})
FAILURES = frozenset({"response.failed", "error"})
# What the API gives with an item and does not take back.
OUTPUT_ONLY = frozenset({"status", "logprobs"})


class OpenAIResponses:
    """Speaks to `OPENAI_BASE_URL` with `OPENAI_API_KEY`."""

    def __init__(self, url: str, key: str) -> None:
        self._endpoint = ProviderAddress(url, {"authorization": f"Bearer {key}"}, key)

    async def reply(self, request: ModelRequest, listener: ReplyListener) -> ModelReply:
        """Stream a reply; raises ModelError."""
        items: list[dict[str, Any]] = []
        async for event in post_for_events(self._endpoint, "/responses", request_body(request)):
            kind, delta, item = event.get("type"), event.get("delta"), event.get("item")
            if kind in FAILURES:
                raise _failure(self._endpoint, event)
            if kind == TEXT_DELTA and isinstance(delta, str):
                await listener.text(delta)
            elif kind in THINKING_DELTAS and isinstance(delta, str):
                await listener.thinking(delta)
            elif kind == "response.output_item.done" and isinstance(item, dict):
                items.append(item)
            elif kind in FINAL:
                return reply_of(request.model, items, event.get("response"))
        raise ModelError("The provider's answer ended before it was complete", transient=True)


def request_body(request: ModelRequest) -> dict[str, Any]:
    """The body of the request."""
    body: dict[str, Any] = {
        "model": request.model,
        "instructions": request.system,
        "input": [item for entry in request.entries for item in wire_items(entry)],
        "max_output_tokens": request.max_tokens,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "stream": True,
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "name": each.name,
                "description": each.description,
                "parameters": each.schema,
                "strict": False,
            }
            for each in request.tools
        ]
    if request.temperature is not None:
        body["temperature"] = request.temperature
    return with_params(body, request.params)


def wire_items(entry: Entry) -> list[dict[str, Any]]:
    """An entry as items of the conversation."""
    match entry:
        case UserText(text=text):
            return [message("user", "input_text", text)]
        case AssistantText(text=text):
            return [message("assistant", "output_text", text)]
        case AssistantTurn(native=items):
            return list(items)
        case CallResults(results=results, text=text):
            outputs: list[dict[str, Any]] = [
                {
                    "type": "function_call_output",
                    "call_id": each.id,
                    "output": each.text or "(no output)",
                }
                for each in results
            ]
            return [*outputs, *([message("user", "input_text", text)] if text else [])]


def message(role: str, kind: str, text: str) -> dict[str, Any]:
    """A message of one text."""
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def reply_of(model: str, items: list[dict[str, Any]], response: Any) -> ModelReply:
    """The reply that these items make."""
    ended: Mapping[str, Any] = response if isinstance(response, dict) else {}
    calls = tuple(
        parse_arguments(
            str(item.get("call_id")), str(item.get("name")), str(item.get("arguments") or "")
        )
        for item in items
        if item.get("type") == "function_call"
    )
    finish: FinishReason = "tool_use" if calls else "complete"
    if ended.get("status") == "incomplete":
        finish = "max_tokens"
    return ModelReply(
        text="".join(_texts(items)),
        calls=calls,
        finish=finish,
        usage=usage_of(ended.get("usage")),
        model=str(ended.get("model") or model),
        native=[{k: v for k, v in item.items() if k not in OUTPUT_ONLY} for item in items],
    )


def _texts(items: list[dict[str, Any]]) -> list[str]:
    parts = [item.get("content") for item in items if item.get("type") == "message"]
    return [
        str(part.get("text") or "")
        for content in parts
        if isinstance(content, list)
        for part in content
        if isinstance(part, dict)
    ]


def usage_of(usage: Any) -> TokenUsage:
    """The tokens, by either name that this vendor's APIs give them."""
    counts: Mapping[str, Any] = usage if isinstance(usage, dict) else {}
    details = counts.get("output_tokens_details") or counts.get("completion_tokens_details")
    thinking = details.get("reasoning_tokens") if isinstance(details, dict) else 0
    return TokenUsage(
        input=_count(counts.get("input_tokens", counts.get("prompt_tokens"))),
        output=_count(counts.get("output_tokens", counts.get("completion_tokens"))),
        thinking=_count(thinking),
    )


def _count(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0


def _failure(endpoint: ProviderAddress, event: Mapping[str, Any]) -> ModelError:
    response = event.get("response")
    error = response.get("error") if isinstance(response, dict) else event
    detail = endpoint.hide(error_text(msgspec.json.encode(error)))
    return ModelError(f"{endpoint.url} failed: {detail}", transient="overload" in detail.lower())
