"""Anthropic's Messages API (`POST /v1/messages`), which Claude Code speaks."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tests.helpers.hosts.scripted_model.script import (
    ModelReply,
    ModelRequest,
    ToolName,
    ToolResult,
)

Event = tuple[str, dict[str, Any]]
# How Claude Code begins what it tells the model besides the user's words, in messages of the user.
NOT_A_PROMPT = ("<system-reminder>", "<local-command", "<command-name>", "Tool loaded.")
USAGE = {
    "input_tokens": 100,
    "output_tokens": 10,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
}


def read_request(body: Mapping[str, Any]) -> ModelRequest:
    """The request; after results, only words of the user's own are a new prompt."""
    prompt, results, replies = "", list[ToolResult](), 0
    names: dict[str, str] = {}
    for message in body.get("messages", []):
        blocks = content_blocks(message["content"])
        if message["role"] == "assistant":
            replies += 1
            names |= {each["id"]: each["name"] for each in blocks if each["type"] == "tool_use"}
        elif message["role"] == "user":
            results += [
                ToolResult(names.get(each["tool_use_id"], ""), text_of(each.get("content", "")))
                for each in blocks
                if each["type"] == "tool_result"
            ]
            if said := user_text(blocks):
                prompt, results = said, []
    output_format = (body.get("output_config") or {}).get("format") or body.get("output_format")
    return ModelRequest(
        model=body.get("model", ""),
        prompt=prompt,
        results=tuple(results),
        tools=tuple(ToolName(tool["name"]) for tool in body.get("tools", [])),
        stream=bool(body.get("stream")),
        replies=replies,
        schema=(output_format or {}).get("schema"),
    )


def content_blocks(content: Any) -> list[dict[str, Any]]:
    """The blocks of a message; plain text is one block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def user_text(blocks: list[dict[str, Any]]) -> str:
    """The words of the user in a message."""
    texts = (each["text"] for each in blocks if each["type"] == "text")
    return "\n".join(text for text in texts if not text.lstrip().startswith(NOT_A_PROMPT)).strip()


def text_of(content: Any) -> str:
    """A tool's result as text; a loaded tool is its name."""
    if isinstance(content, str):
        return content
    return "\n".join(each.get("text") or each.get("tool_name") or "" for each in content)


def whole(request: ModelRequest, reply: ModelReply, id: str) -> dict[str, Any]:
    """The reply in one piece."""
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    content += [
        {
            "type": "tool_use",
            "id": f"toolu_{call.id}",
            "name": call.tool.name,
            "input": call.arguments,
        }
        for call in reply.calls
    ]
    return {
        "id": f"msg_{id}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": content,
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": USAGE,
    }


def events(request: ModelRequest, reply: ModelReply, id: str) -> Iterator[Event]:
    """The reply as a stream."""
    message = whole(request, reply, id)
    yield event("message_start", message={**message, "content": [], "stop_reason": None})
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty: dict[str, Any] = {"text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield event("content_block_start", index=index, content_block={**block, **empty})
        yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=delta, usage={"output_tokens": 10})
    yield event("message_stop")


def event(name: str, **fields: Any) -> Event:
    """One event of the stream."""
    return name, {"type": name, **fields}
