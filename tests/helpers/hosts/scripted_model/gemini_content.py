"""Google's Gemini API (`:generateContent`, `:streamGenerateContent`), which Gemini CLI speaks."""

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
# How Gemini CLI begins what it tells the model besides the user's words, in contents of the user.
NOT_A_PROMPT = ("<session_context>", "This is the Gemini CLI", "<hook_context>")
USAGE = {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110}


def read_request(body: Mapping[str, Any]) -> ModelRequest:
    """The request; the model's name and whether to stream come from the path."""
    prompt, results, replies = "", list[ToolResult](), 0
    for content in body.get("contents", []):
        parts = content.get("parts", [])
        if content.get("role") == "model":
            replies += 1
            continue
        found = [part["functionResponse"] for part in parts if "functionResponse" in part]
        results += [ToolResult(each.get("name", ""), response_text(each)) for each in found]
        if not found and (said := user_text(parts)):
            prompt, results = said, []
    declared = (
        each for tool in body.get("tools", []) for each in tool.get("functionDeclarations", [])
    )
    wanted = body.get("generationConfig") or {}
    return ModelRequest(
        model=body.get("model", ""),
        prompt=prompt,
        results=tuple(results),
        tools=tuple(ToolName(each["name"]) for each in declared),
        stream=bool(body.get("stream")),
        replies=replies,
        schema=wanted.get("responseJsonSchema") or wanted.get("responseSchema"),
    )


def user_text(parts: list[dict[str, Any]]) -> str:
    """The words of the user in a content."""
    texts = (part["text"] for part in parts if "text" in part)
    return "\n".join(text for text in texts if not text.lstrip().startswith(NOT_A_PROMPT)).strip()


def response_text(answer: Mapping[str, Any]) -> str:
    """A tool's answer as text."""
    response = answer.get("response", {})
    for key in ("output", "error"):
        if isinstance(response.get(key), str):
            return str(response[key])
    return json.dumps(response)


def whole(request: ModelRequest, reply: ModelReply, id: str) -> dict[str, Any]:
    """The reply in one piece."""
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
    parts += [
        {
            "functionCall": {
                "id": f"call_{call.id}",
                "name": call.tool.name,
                "args": call.arguments,
            },
            "thoughtSignature": "c2NyaXB0ZWQ=",
        }
        for call in reply.calls
    ]
    content = {"role": "model", "parts": parts or [{"text": ""}]}
    return {
        "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
        "modelVersion": request.model,
        "responseId": id,
        "usageMetadata": USAGE,
    }


def events(request: ModelRequest, reply: ModelReply, id: str) -> Iterator[Event]:
    """The reply as a stream of one event."""
    yield "", whole(request, reply, id)
