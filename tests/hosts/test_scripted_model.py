"""The scripted model by itself: every API gives the same script, and nothing beyond loopback."""

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from tests.helpers.hosts.scripted_model.script import (
    Call,
    ModelRequest,
    Script,
    Step,
    ToolName,
    ToolResult,
    smallest_instance,
)
from tests.helpers.hosts.scripted_model.server import ScriptedModel, serve

SCRIPT = Script(
    {
        "read the thread": [
            Step(
                calls=[Call("read_messages", {"thread_id": "t_1"})],
                until=lambda result: "refused" not in result.text,
            ),
            Step(
                say="Reading on.",
                calls=[Call("ack_read", lambda seen: {"seq": seen[-1].json()["next_seq"]})],
            ),
            Step(say="Read."),
        ]
    }
)
PROMPT = "Please read the thread now."


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with serve(SCRIPT) as running:
        yield running


def post(model: ScriptedModel, path: str, body: Any) -> tuple[int, str]:
    """Send one request to the model."""
    connection = http.client.HTTPConnection("127.0.0.1", model.server_address[1], timeout=20)
    try:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


class Conversation:
    """The conversation of one host: it sends everything again with each request."""

    def __init__(self, model: ScriptedModel) -> None:
        self.model = model

    def request(self, *results: str, stream: bool) -> str:
        """Ask for the next reply after these results."""
        raise NotImplementedError


class Anthropic(Conversation):
    """A conversation as Claude Code has it."""

    def request(self, *results: str, stream: bool) -> str:
        reminder = {"type": "text", "text": "<system-reminder>about the project</system-reminder>"}
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": [reminder, {"type": "text", "text": PROMPT}]}
        ]
        for number, text in enumerate(results):
            use = {"type": "tool_use", "id": f"u{number}", "name": "x", "input": {}}
            result = {"type": "tool_result", "tool_use_id": f"u{number}", "content": text}
            messages += [{"role": "assistant", "content": [use]}]
            messages += [{"role": "user", "content": [result, reminder]}]
        tools = [{"name": "mcp__accord__read_messages"}, {"name": "mcp__accord__ack_read"}]
        body = {"model": "m", "messages": messages, "tools": tools, "stream": stream}
        return post(self.model, "/v1/messages", body)[1]


class Responses(Conversation):
    """A conversation as Codex has it."""

    def request(self, *results: str, stream: bool) -> str:
        items: list[dict[str, Any]] = [
            {"role": "user", "content": [{"type": "input_text", "text": "<environment_context>"}]},
            {"role": "user", "content": [{"type": "input_text", "text": PROMPT}]},
        ]
        for number, text in enumerate(results):
            call = {"type": "function_call", "call_id": f"c{number}", "name": "x"}
            output = {"type": "function_call_output", "call_id": f"c{number}", "output": text}
            items += [call, output]
        group = [{"name": "read_messages"}, {"name": "ack_read"}]
        tools = [{"type": "namespace", "name": "mcp__accord", "tools": group}]
        body = {"model": "m", "input": items, "tools": tools, "stream": stream}
        return post(self.model, "/v1/responses", body)[1]


class Gemini(Conversation):
    """A conversation as Gemini CLI has it."""

    def request(self, *results: str, stream: bool) -> str:
        contents: list[dict[str, Any]] = [
            {"role": "user", "parts": [{"text": "<session_context>"}, {"text": PROMPT}]}
        ]
        for text in results:
            answer = {"functionResponse": {"name": "x", "response": {"output": text}}}
            contents += [{"role": "model", "parts": [{"functionCall": {"name": "x"}}]}]
            contents += [{"role": "user", "parts": [answer]}]
        declared = [{"name": "mcp_accord_read_messages"}, {"name": "mcp_accord_ack_read"}]
        body = {"contents": contents, "tools": [{"functionDeclarations": declared}]}
        verb = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return post(self.model, f"/v1beta/models/m:{verb}", body)[1]


class Chat(Conversation):
    """A conversation as OpenCode has it."""

    def request(self, *results: str, stream: bool) -> str:
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": PROMPT},
        ]
        for number, text in enumerate(results):
            call = {"id": f"c{number}", "function": {"name": "x", "arguments": "{}"}}
            messages += [{"role": "assistant", "tool_calls": [call]}]
            messages += [{"role": "tool", "tool_call_id": f"c{number}", "content": text}]
        names = ("accord_read_messages", "accord_ack_read")
        tools = [{"type": "function", "function": {"name": name}} for name in names]
        body = {"model": "m", "messages": messages, "tools": tools, "stream": stream}
        return post(self.model, "/v1/chat/completions", body)[1]


APIS: Mapping[str, Callable[[ScriptedModel], Conversation]] = {
    "anthropic": Anthropic,
    "responses": Responses,
    "gemini": Gemini,
    "chat": Chat,
}
LAST_EVENT = {
    "anthropic": '"type": "message_stop"',
    "responses": '"type": "response.completed"',
    "gemini": '"finishReason": "STOP"',
    "chat": "data: [DONE]",
}
each_api = pytest.mark.parametrize("api", APIS)


@each_api
def test_a_script_goes_on_by_the_results_that_the_host_shows(
    model: ScriptedModel, api: str
) -> None:
    conversation = APIS[api](model)
    shown = ("refused: try again", '{"messages": [], "next_seq": 7}', '{"ok": true}')
    for count in range(len(shown) + 1):
        conversation.request(*shown[:count], stream=False)

    replies = [each.reply for each in model.exchanges]
    calls = [[(call.tool.name, call.arguments) for call in reply.calls] for reply in replies]
    read = model.exchanges[0].request.offered("read_messages")
    acknowledge = model.exchanges[0].request.offered("ack_read")
    assert read is not None
    assert acknowledge is not None
    assert calls == [
        [(read.name, {"thread_id": "t_1"})],
        [(read.name, {"thread_id": "t_1"})],
        [(acknowledge.name, {"seq": 7})],
        [],
    ]
    assert replies[-1].text == "Read."
    assert model.exchanges[-1].request.own_results[-1].text == shown[-1]


@each_api
def test_a_reply_is_the_same_as_a_stream_and_in_one_piece(model: ScriptedModel, api: str) -> None:
    conversation = APIS[api](model)
    shown = ('{"next_seq": 7}',)

    whole = conversation.request(*shown, stream=False)
    stream = conversation.request(*shown, stream=True)

    assert LAST_EVENT[api] in stream.strip().split("\n\n")[-1]
    for text in (whole, stream):
        assert "Reading on." in text
        assert "ack_read" in text
        assert text.replace("\\", "").count('{"seq": 7}') >= 1


SEARCH = Script({"go": [Step(calls=[Call("post_message", {"body": "hi"})]), Step(say="Posted.")]})


def test_a_tool_that_is_not_on_offer_is_searched_for_first() -> None:
    offered = (ToolName("tool_search"),)
    asked = ModelRequest("m", "go", tools=offered)
    found = ModelRequest(
        "m",
        "go",
        results=(ToolResult("tool_search", "post_message"),),
        tools=(*offered, ToolName("post_message", "mcp__accord")),
    )
    posted = ModelRequest(
        "m", "go", results=(*found.results, ToolResult("post_message", "{}")), tools=found.tools
    )

    names = [[call.tool.name for call in SEARCH.reply(each).calls] for each in (asked, found)]

    assert names == [["tool_search"], ["post_message"]]
    assert SEARCH.reply(posted).text == "Posted."


def test_a_tool_behind_one_that_runs_code_is_called_by_code(model: ScriptedModel) -> None:
    runs_code = {"type": "namespace", "name": "functions", "tools": [{"name": "exec"}]}
    items: list[dict[str, Any]] = [
        {"type": "additional_tools", "tools": [runs_code]},
        {"role": "user", "content": PROMPT},
    ]
    first = json.loads(post(model, "/v1/responses", {"input": items})[1])["output"]
    result = {"call_id": first[0]["call_id"], "output": '{"next_seq": 7}'}
    items += [*first, {"type": "custom_tool_call_output", **result}]
    second = json.loads(post(model, "/v1/responses", {"input": items})[1])["output"]

    assert [item["type"] for item in first] == ["custom_tool_call"]
    assert '"read_messages"' in first[0]["input"]
    assert '{"thread_id": "t_1"}' in first[0]["input"]
    assert model.exchanges[-1].request.results[0].tool == "read_messages"
    assert '{"seq": 7}' in second[-1]["input"]


def test_a_tool_that_no_search_finds_is_reported() -> None:
    searches = tuple(ToolResult("tool_search", "") for _ in range(3))
    asked = ModelRequest("m", "go", results=searches, tools=(ToolName("tool_search"),))

    assert SEARCH.reply(asked).text == "The tool post_message is not on offer."
    assert SEARCH.reply(ModelRequest("m", "go")).text == "The tool post_message is not on offer."


def test_a_tool_is_found_by_its_whole_name_only() -> None:
    tools = (ToolName("mcp__accord__repost_message"), ToolName("mcp__accord__post_message"))

    assert ModelRequest("m", "go", tools=tools).offered("post_message") == tools[1]
    assert ModelRequest("m", "go", tools=tools).offered("message_post") is None


def test_a_request_for_json_gets_an_instance_of_its_schema() -> None:
    schema = {
        "type": "OBJECT",
        "required": ["level", "model", "reasons"],
        "properties": {
            "level": {"type": "INTEGER", "minimum": 3},
            "model": {"enum": ["flash", "pro"]},
            "reasons": {"type": "array", "minItems": 1, "items": {"anyOf": [{"type": "string"}]}},
        },
    }

    assert smallest_instance(schema) == {"level": 3, "model": "flash", "reasons": ["scripted"]}


def test_connections_beyond_loopback_are_refused_and_recorded(model: ScriptedModel) -> None:
    proxy = http.client.HTTPConnection("127.0.0.1", model.server_address[1], timeout=20)
    proxy.set_tunnel("elsewhere.example", 443)

    with pytest.raises(OSError, match="403"):
        proxy.request("GET", "/")

    proxy.close()
    assert model.outside == ["elsewhere.example:443"]


def test_an_unknown_path_is_refused(model: ScriptedModel) -> None:
    assert post(model, "/v1/strange", {})[0] == 404
    assert post(model, "/v1beta/models/m:embedContent", {})[0] == 404
    assert model.exchanges == []
