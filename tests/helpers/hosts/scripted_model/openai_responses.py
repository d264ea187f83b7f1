"""OpenAI's Responses API (`POST /v1/responses`), which Codex speaks."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.helpers.hosts.scripted_model.script import (
    CODE_TOOL,
    WANTED_BY_CODE,
    ModelReply,
    ModelRequest,
    ToolCall,
    ToolName,
    ToolResult,
)

Event = tuple[str, dict[str, Any]]
# How Codex begins what it tells the model besides the user's words, in messages of the user.
NOT_A_PROMPT = ("<environment_context>", "<user_instructions>", "<permissions", "# AGENTS.md")
TOOL_SEARCH = "tool_search"
USAGE = {
    "input_tokens": 100,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 10,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 110,
}


def read_request(body: Mapping[str, Any]) -> ModelRequest:
    """The request; tools that a search found are offered from then on."""
    prompt, results, replies = "", list[ToolResult](), 0
    names: dict[str, str] = {}
    tools = list(tool_names(body.get("tools", [])))
    for item in input_items(body.get("input", [])):
        kind: str = item.get("type", "message")
        if kind == "additional_tools":
            tools += tool_names(item["tools"])
        elif kind == "tool_search_output":
            found = list(tool_names(item.get("tools", [])))
            tools += found
            results.append(ToolResult(TOOL_SEARCH, "\n".join(tool.name for tool in found)))
        elif kind.endswith("_output"):
            results.append(ToolResult(names.get(item["call_id"], ""), text_of(item["output"])))
        elif kind.endswith("_call"):
            replies += 1
            names[item.get("call_id", "")] = called_tool(item)
        elif kind == "message" and item["role"] == "assistant":
            replies += 1
        elif kind == "message" and item["role"] == "user":
            said = text_of(item["content"]).strip()
            if said and not said.startswith(NOT_A_PROMPT):
                prompt, results = said, []
    return ModelRequest(
        model=body.get("model", ""),
        prompt=prompt,
        results=tuple(results),
        tools=tuple(tools),
        stream=bool(body.get("stream")),
        replies=replies,
        schema=((body.get("text") or {}).get("format") or {}).get("schema"),
    )


def input_items(given: Any) -> list[dict[str, Any]]:
    """The items of a conversation; plain text is one message of the user."""
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def called_tool(item: Mapping[str, Any]) -> str:
    """The name of the tool that was called, also by code."""
    by_code = WANTED_BY_CODE.search(item.get("input", ""))
    return by_code[1] if by_code else item.get("name", item["type"].removesuffix("_call"))


def tool_names(offered: Iterable[Mapping[str, Any]]) -> Iterator[ToolName]:
    """The tools of a list, those of groups included."""
    for tool in offered:
        if tool.get("type") == "namespace":
            yield from (ToolName(each["name"], tool["name"]) for each in tool.get("tools", []))
        elif tool.get("type") == TOOL_SEARCH:
            yield ToolName(TOOL_SEARCH)
        elif "name" in tool:
            yield ToolName(tool["name"])


def text_of(content: Any) -> str:
    """The text of an item in any of its forms."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        return text_of(content.get("content", content.get("text", json.dumps(content))))
    return "\n".join(text_of(part) for part in content)


def output_items(reply: ModelReply, id: str) -> list[dict[str, Any]]:
    """The items of the reply, in order."""
    items: list[dict[str, Any]] = []
    if reply.text:
        text = {"type": "output_text", "text": reply.text, "annotations": []}
        message = {"type": "message", "id": f"msg_{id}", "status": "completed"}
        items.append({**message, "role": "assistant", "content": [text]})
    return items + [call_item(call, id) for call in reply.calls]


def call_item(call: ToolCall, id: str) -> dict[str, Any]:
    """A call of a function, or the search for tools, which has an item of its own."""
    common = {"id": f"fc_{id}_{call.id}", "call_id": f"call_{call.id}", "status": "completed"}
    if call.tool.name == TOOL_SEARCH:
        own_item = {"type": "tool_search_call", "execution": "client", "arguments": call.arguments}
        return {**common, **own_item}
    if call.tool.namespace:
        common["namespace"] = call.tool.namespace
    if call.tool.name == CODE_TOOL:
        return {**common, "type": "custom_tool_call", "name": CODE_TOOL, **call.arguments}
    function = {"type": "function_call", "name": call.tool.name}
    return {**common, **function, "arguments": json.dumps(call.arguments)}


def whole(request: ModelRequest, reply: ModelReply, id: str) -> dict[str, Any]:
    """The reply in one piece."""
    return {
        "id": f"resp_{id}",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": request.model,
        "output": output_items(reply, id),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": USAGE,
    }


def events(request: ModelRequest, reply: ModelReply, id: str) -> Iterator[Event]:
    """The reply as a stream, its events numbered."""
    for number, (name, fields) in enumerate(unnumbered_events(whole(request, reply, id))):
        yield name, {"type": name, "sequence_number": number, **fields}


def unnumbered_events(response: Mapping[str, Any]) -> Iterator[Event]:
    """The events in order."""
    started = {**response, "status": "in_progress", "output": [], "usage": None}
    yield "response.created", {"response": started}
    for index, item in enumerate(response["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        yield (
            "response.output_item.added",
            {"output_index": index, "item": {**item, "status": "in_progress"}},
        )
        if item["type"] == "message":
            part = {**place, "content_index": 0}
            text = item["content"][0]["text"]
            yield "response.output_text.delta", {**part, "delta": text, "logprobs": []}
            yield "response.output_text.done", {**part, "text": text, "logprobs": []}
        elif item["type"] == "function_call":
            done = {**place, "name": item["name"], "arguments": item["arguments"]}
            yield "response.function_call_arguments.done", done
        elif item["type"] == "custom_tool_call":
            yield "response.custom_tool_call_input.done", {**place, "input": item["input"]}
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield "response.completed", {"response": response}
