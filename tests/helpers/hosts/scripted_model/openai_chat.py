"""The Chat Completions API (`POST /v1/chat/completions`), which OpenCode speaks."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.helpers.hosts.scripted_model.openai_responses import text_of
from tests.helpers.hosts.scripted_model.script import (
    ModelReply,
    ModelRequest,
    ToolName,
    ToolResult,
)

Event = tuple[str, dict[str, Any]]
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}


def read_request(body: Mapping[str, Any]) -> ModelRequest:
    """The request."""
    prompt, results, replies = "", list[ToolResult](), 0
    names: dict[str, str] = {}
    for message in body.get("messages", []):
        text = text_of(message.get("content") or "")
        match message["role"]:
            case "user":
                prompt, results = text, []
            case "tool":
                results.append(ToolResult(names.get(message["tool_call_id"], ""), text))
            case "assistant":
                replies += 1
                calls = message.get("tool_calls") or []
                names |= {call["id"]: call["function"]["name"] for call in calls}
            case _:
                pass  # the host's instructions
    functions = (tool["function"] for tool in body.get("tools", []) if "function" in tool)
    return ModelRequest(
        model=body.get("model", ""),
        prompt=prompt,
        results=tuple(results),
        tools=tuple(ToolName(each["name"]) for each in functions),
        stream=bool(body.get("stream")),
        replies=replies,
        schema=((body.get("response_format") or {}).get("json_schema") or {}).get("schema"),
    )


def tool_calls(reply: ModelReply) -> list[dict[str, Any]]:
    """The calls of a reply."""
    return [
        {
            "index": index,
            "id": f"call_{call.id}",
            "type": "function",
            "function": {"name": call.tool.name, "arguments": json.dumps(call.arguments)},
        }
        for index, call in enumerate(reply.calls)
    ]


def whole(request: ModelRequest, reply: ModelReply, id: str) -> dict[str, Any]:
    """The reply in one piece."""
    message = {"role": "assistant", "content": reply.text or None, "tool_calls": tool_calls(reply)}
    choice = {"index": 0, "message": message, "finish_reason": finish_reason(reply)}
    return {**frame(request, id, "chat.completion"), "choices": [choice], "usage": USAGE}


def events(request: ModelRequest, reply: ModelReply, id: str) -> Iterator[Event]:
    """The reply as a stream; the server ends it with `[DONE]`."""
    chunk = frame(request, id, "chat.completion.chunk")
    delta = {"role": "assistant", "content": reply.text or None, "tool_calls": tool_calls(reply)}
    yield "", {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    end = {"index": 0, "delta": {}, "finish_reason": finish_reason(reply)}
    yield "", {**chunk, "choices": [end], "usage": USAGE}


def finish_reason(reply: ModelReply) -> str:
    """Why the reply ends."""
    return "tool_calls" if reply.calls else "stop"


def frame(request: ModelRequest, id: str, kind: str) -> dict[str, Any]:
    """The fields that every answer has."""
    return {"id": f"chatcmpl-{id}", "object": kind, "created": 0, "model": request.model}
