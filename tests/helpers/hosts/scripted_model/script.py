"""What the scripted model says and which tools it calls, independent of any vendor's API.

A script maps prompts to steps. A reply depends on nothing but the conversation that the host sends,
so a resumed session continues where it stopped, and several hosts can share one server:

    Script({"report": [
        Step(calls=[Call("read_messages", {"thread_id": "t_1"})]),
        Step(calls=[Call("ack_read", lambda seen: {"last_read_seq": seen[-1].json()["next_seq"]})]),
        Step(say="Done."),
    ]})

Hosts put a prefix before the names of MCP tools, and some offer them only after a search or inside
a tool that runs code. A script names the tool as its server does; searches and code are added to it
and are no steps of their own.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Tools that load other tools: Codex's and Claude Code's.
SEARCH_TOOLS = ("tool_search", "ToolSearch")
MAX_SEARCHES = 3
# Codex's tool for models that call all other tools from JavaScript.
CODE_TOOL = "exec"
CODE = """const wanted = {tool};
const {{ name }} = ALL_TOOLS.find(each => ("_" + each.name).endsWith("_" + wanted));
const result = await tools[name]({arguments});
text(result.structuredContent ?? result);
"""
WANTED_BY_CODE = re.compile(r'const wanted = "(\w+)";')


@dataclass(frozen=True)
class ToolName:
    """A tool that the host offers; `namespace` only where the host groups its tools."""

    name: str
    namespace: str = ""

    def is_called(self, wanted: str) -> bool:
        """Whether it is that tool, with or without the host's prefix."""
        return re.search(rf"(?:^|[_.:/]){re.escape(wanted)}$", self.name) is not None


@dataclass(frozen=True)
class ToolResult:
    """What the model was shown as the result of one call."""

    tool: str
    text: str

    def json(self) -> Any:
        """The first JSON object or array in the text; hosts put words around it."""
        decoder = json.JSONDecoder()
        for start in (match.start() for match in re.finditer(r"[{\[]", self.text)):
            try:
                return decoder.raw_decode(self.text, start)[0]
            except ValueError:
                continue
        raise AssertionError(f"no JSON in the result of {self.tool}: {self.text!r}")


@dataclass(frozen=True)
class ModelRequest:
    """A request of a host: the last prompt, the results since then, and the tools on offer.

    `schema` is set when the host wants JSON of that shape for itself, such as a title.
    """

    model: str
    prompt: str
    results: tuple[ToolResult, ...] = ()
    tools: tuple[ToolName, ...] = ()
    stream: bool = False
    replies: int = 0
    schema: Mapping[str, Any] | None = None

    @property
    def own_results(self) -> tuple[ToolResult, ...]:
        """The results of the script's own calls, without those of tool searches."""
        return tuple(each for each in self.results if each.tool not in SEARCH_TOOLS)

    def offered(self, wanted: str) -> ToolName | None:
        """The tool of that name; of several, the one with the shortest prefix."""
        found = [each for each in self.tools if each.is_called(wanted)]
        return min(found, key=lambda each: len(each.name), default=None)


@dataclass(frozen=True)
class ToolCall:
    """A call in a reply, with the name that the host knows the tool by."""

    tool: ToolName
    arguments: Mapping[str, Any]
    id: str


@dataclass(frozen=True)
class ModelReply:
    """A reply: text, calls, or both."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


Arguments = Mapping[str, Any] | Callable[[Sequence[ToolResult]], Mapping[str, Any]]


@dataclass(frozen=True)
class Call:
    """A call that a script makes; arguments may depend on the results so far."""

    tool: str
    arguments: Arguments

    def filled(self, results: Sequence[ToolResult]) -> Mapping[str, Any]:
        """The arguments to send."""
        return self.arguments(results) if callable(self.arguments) else self.arguments


@dataclass(frozen=True)
class Step:
    """One reply; it is given again until a result of its calls satisfies `until`."""

    say: str = ""
    calls: Sequence[Call] = ()
    until: Callable[[ToolResult], bool] = lambda _: True


@dataclass(frozen=True)
class Script:
    """The steps for each prompt; a prompt is found by the text that it contains."""

    steps_by_prompt: Mapping[str, Sequence[Step]]

    def reply(self, request: ModelRequest) -> ModelReply:
        """The reply to a request; prompts that are not in the script get a word."""
        if request.schema is not None:
            return ModelReply(json.dumps(smallest_instance(request.schema)))
        steps = next((s for p, s in self.steps_by_prompt.items() if p in request.prompt), ())
        number = due_step(steps, request.own_results)
        if number >= len(steps):
            return ModelReply("ok")
        return step_reply(steps[number], request)


def due_step(steps: Sequence[Step], results: Sequence[ToolResult]) -> int:
    """The number of the step to give now; each step consumes as many results as it has calls."""
    number, position = 0, 0
    while number < len(steps) and position < len(results):
        count = max(1, len(steps[number].calls))
        batch = results[position : position + count]
        position += count
        if any(steps[number].until(each) for each in batch):
            number += 1
    return number


def step_reply(step: Step, request: ModelRequest) -> ModelReply:
    """The step with the host's own tool names; first a search for tools that are not on offer."""
    tools = {call.tool: request.offered(call.tool) for call in step.calls}
    missing = [wanted for wanted, tool in tools.items() if tool is None]
    code_tool = next((tool for tool in request.tools if tool.name == CODE_TOOL), None)
    if missing and code_tool is not None:
        return code_reply(step, request, code_tool)
    if missing:
        return search_reply(missing[0], request)
    calls = tuple(
        ToolCall(tool, call.filled(request.own_results), f"{request.replies}_{number}")
        for number, call in enumerate(step.calls)
        if (tool := tools[call.tool]) is not None
    )
    return ModelReply(step.say, calls)


def code_reply(step: Step, request: ModelRequest, code_tool: ToolName) -> ModelReply:
    """The step with its calls made by code."""
    calls = []
    for number, call in enumerate(step.calls):
        arguments = json.dumps(call.filled(request.own_results))
        code = CODE.format(tool=json.dumps(call.tool), arguments=arguments)
        calls.append(ToolCall(code_tool, {"input": code}, f"{request.replies}_{number}"))
    return ModelReply(step.say, tuple(calls))


def search_reply(wanted: str, request: ModelRequest) -> ModelReply:
    """A search for a tool, or the statement that there is none."""
    searches = len(request.results) - len(request.own_results)
    search = next((each for each in request.tools if each.name in SEARCH_TOOLS), None)
    if search is None or searches >= MAX_SEARCHES:
        return ModelReply(f"The tool {wanted} is not on offer.")
    arguments = {"query": wanted.replace("_", " "), "max_results": 5}
    return ModelReply(calls=(ToolCall(search, arguments, f"{request.replies}_0"),))


def smallest_instance(schema: Mapping[str, Any]) -> Any:
    """A small value of a JSON schema's shape."""
    if "const" in schema or schema.get("enum"):
        return schema.get("const", (schema.get("enum") or [None])[0])
    if options := schema.get("anyOf") or schema.get("oneOf"):
        return smallest_instance(options[0])
    match str(schema.get("type", "object")).lower():
        case "array":
            return [smallest_instance(schema.get("items", {}))] * int(schema.get("minItems", 0))
        case "string":
            return "scripted"
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return False
        case "null":
            return None
        case _:
            properties = schema.get("properties", {})
            required = (name for name in schema.get("required", ()) if name in properties)
            return {name: smallest_instance(properties[name]) for name in required}
