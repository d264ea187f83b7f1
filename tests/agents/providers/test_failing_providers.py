"""Providers that fail, lie or never end: a sentence without the key, and nothing unbounded."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest

from accord.agents.providers import provider_events
from accord.agents.providers.model import (
    AssistantText,
    CallResult,
    CallResults,
    ModelError,
    ModelReply,
    ModelRequest,
    UserText,
    parse_arguments,
)
from accord.agents.providers.provider_table import open_provider
from tests.helpers.clients.model_agent import MODEL_KEY, PROVIDER_NAMES, provider_for
from tests.helpers.hosts.raw_answers import RawAnswer, serve_answers

EVENTS = {"content-type": "text/event-stream"}
REQUEST = ModelRequest(model="m", system="s", entries=(UserText("hi"),), max_tokens=10)


class Heard:
    """Keeps what a reply streams."""

    def __init__(self) -> None:
        self.parts: list[tuple[str, str]] = []

    async def thinking(self, text: str) -> None:
        self.parts.append(("thinking", text))

    async def text(self, text: str) -> None:
        self.parts.append(("text", text))


def events(*items: object) -> RawAnswer:
    """A stream of these events."""
    body = "".join(f"data: {json.dumps(item)}\n\n" for item in items)
    return RawAnswer(200, body.encode(), EVENTS)


async def ask(
    provider: str, answers: Sequence[RawAnswer], heard: Heard | None = None
) -> ModelReply:
    with serve_answers(answers) as server:
        return await provider_for(provider, server.url).reply(REQUEST, heard or Heard())


@pytest.mark.parametrize("provider", PROVIDER_NAMES)
@pytest.mark.parametrize(
    ("answer", "words", "transient"),
    [
        (RawAnswer(500, b"<html>broken</html>"), "500: <html>broken</html>", True),
        (RawAnswer(429, b"{}", {"retry-after": "7"}), "429", True),
        (RawAnswer(302, b"", {"location": "http://127.0.0.1:9/"}), "302", False),
        (RawAnswer(200, b"data: nonsense\n\n", EVENTS), "not JSON", False),
        (RawAnswer(200, b"data: [1]\n\n", EVENTS), "not an object", False),
        (RawAnswer(200, b"", EVENTS), "before it was complete", True),
        (RawAnswer(200, b"data: {}\n\n", EVENTS, cut=True), "failed", True),
        (events({"type": "error", "error": {"message": f"no {MODEL_KEY}"}}), "no (key)", False),
    ],
    ids=["500", "429", "redirect", "text", "array", "empty", "cut", "error"],
)
async def test_failures_are_sentences(
    provider: str, answer: RawAnswer, words: str, transient: bool
) -> None:
    with pytest.raises(ModelError, match=re.escape(words)) as raised:
        await ask(provider, [answer])

    assert raised.value.transient is transient
    assert MODEL_KEY not in str(raised.value)
    if answer.status == 429:
        assert raised.value.retry_after_s == 7


async def test_endless_event_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_events, "MAX_EVENT_BYTES", 1000)
    with pytest.raises(ModelError, match="too large"):
        await ask("anthropic", [RawAnswer(200, b"data: " + b"x" * 5000, EVENTS)])


async def test_silent_provider_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_events, "SILENCE_TIMEOUT_S", 0.2)
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(ModelError, match="in time") as raised:
            await provider_for("anthropic", url).reply(REQUEST, Heard())
    assert raised.value.transient


@pytest.mark.parametrize(
    ("name", "environment", "url", "words"),
    [
        ("anthropic", {}, "", "set ANTHROPIC_API_KEY"),
        ("openai", {}, "", "set OPENAI_API_KEY"),
        ("openai-compatible", {}, "", "--base-url"),
        ("anthropic", {"ANTHROPIC_API_KEY": "k"}, "http://models.example", "plain HTTP"),
        ("anthropic", {"ANTHROPIC_API_KEY": "k"}, "ftp://models.example", "not the address"),
        ("anthropic", {"ANTHROPIC_API_KEY": "k"}, "https://a:b@models.example", "not the address"),
    ],
)
def test_a_key_comes_from_the_environment_and_goes_only_over_tls(
    name: str, environment: dict[str, str], url: str, words: str
) -> None:
    with pytest.raises(ModelError, match=words):
        open_provider(name, environment, url)


async def test_anthropic_thinking_and_calls_in_pieces() -> None:
    stream = events(
        {"type": "message_start", "message": {"model": "m-1", "usage": {"input_tokens": 3}}},
        {"type": "ping"},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking"}},
        {"type": "content_block_delta", "index": 0, "delta": {"thinking": "hm"}},
        {"type": "content_block_delta", "index": 0, "delta": {"signature": "sig"}},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "t1", "name": "shell", "input": {}},
        },
        {"type": "content_block_delta", "index": 1, "delta": {"partial_json": '{"argv":'}},
        {"type": "content_block_delta", "index": 1, "delta": {"partial_json": '["ls"]}'}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 5, "cache_read_input_tokens": 4, "odd": "x"},
        },
        {"type": "message_stop"},
    )
    heard = Heard()
    reply = await ask("anthropic", [stream], heard)

    assert heard.parts == [("thinking", "hm")]
    assert reply.calls[0].arguments == {"argv": ["ls"]}
    assert reply.native[0] == {"type": "thinking", "thinking": "hm", "signature": "sig"}
    assert reply.native[1]["input"] == {"argv": ["ls"]}
    assert (reply.usage.input, reply.usage.output, reply.model) == (7, 5, "m-1")
    assert reply.finish == "tool_use"


async def test_responses_reasoning_and_incomplete_end() -> None:
    text = {"type": "message", "status": "x", "content": [{"type": "output_text", "text": "Hi"}]}
    usage = {
        "input_tokens": 1,
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 1},
    }
    stream = events(
        {"type": "response.reasoning_summary_text.delta", "delta": "hm"},
        {"type": "response.output_text.delta", "delta": "Hi"},
        {"type": "response.output_item.done", "item": text},
        {"type": "response.incomplete", "response": {"status": "incomplete", "usage": usage}},
    )
    heard = Heard()
    reply = await ask("openai", [stream], heard)

    assert heard.parts == [("thinking", "hm"), ("text", "Hi")]
    assert (reply.text, reply.finish, reply.usage.thinking) == ("Hi", "max_tokens", 1)
    assert "status" not in reply.native[0]


async def test_chat_calls_in_pieces_and_reasoning() -> None:
    def delta(**fields: Any) -> dict[str, Any]:
        return {"choices": [{"delta": fields}]}

    stream = events(
        delta(reasoning_content="hm"),
        delta(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "shell"}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '{"argv": '}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '["ls"]}'}}]),
        {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": 5}},
    )
    heard = Heard()
    reply = await ask("openai-compatible", [stream], heard)

    assert heard.parts == [("thinking", "hm")]
    assert reply.calls[0].arguments == {"argv": ["ls"]}
    assert (reply.usage.input, reply.usage.output, reply.finish) == (4, 5, "tool_use")


@pytest.mark.parametrize("provider", PROVIDER_NAMES)
async def test_history_and_results_are_sent_in_the_providers_form(provider: str) -> None:
    entries = (
        UserText("one"),
        UserText("two"),
        AssistantText("three"),
        UserText("four"),
        CallResults((CallResult("t1", "", is_error=True),), "five"),
    )
    request = ModelRequest(
        model="m", system="s", entries=entries, max_tokens=9, params={"seed": 1, "stream": False}
    )
    with serve_answers([RawAnswer(400, b"{}")]) as server:
        with pytest.raises(ModelError):
            await provider_for(provider, server.url).reply(request, Heard())
        sent = json.loads(server.asked[0].body)

    assert sent["seed"] == 1
    assert sent["stream"] is True
    order = [json.dumps(sent).find(f'"{word}"') for word in ("one", "two", "three", "four", "five")]
    assert order == sorted(order)
    assert -1 not in order


@pytest.mark.parametrize("text", ["{", "[1]", "1", '"x"', "nan"])
def test_arguments_that_are_no_object_are_told_to_the_model(text: str) -> None:
    assert parse_arguments("i", "shell", text).problem
