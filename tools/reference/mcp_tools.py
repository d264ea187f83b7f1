"""The tools and resources that the server offers over MCP."""

from collections.abc import Iterator

from accord.transports.mcp.msg_tools import MSG_TOOLS
from accord.transports.mcp.pvp_tools import PVP_TOOLS
from accord.transports.mcp.resources import RESOURCES, TEMPLATES
from accord.transports.mcp.tool_calls import describe


def tools() -> Iterator[str]:
    """One row for each tool, as models see it."""
    yield "| Tool | Arguments | Result | What models are told |"
    yield "| --- | --- | --- | --- |"
    for tool in (*MSG_TOOLS, *PVP_TOOLS):
        about = describe(tool)
        arguments, result = about["inputSchema"], about["outputSchema"]
        required = arguments.get("required", ())
        names = [
            f"**`{name}`**" if name in required else f"`{name}`" for name in arguments["properties"]
        ]
        reads = " Reads only." if tool.annotations.read_only_hint else ""
        fields = ", ".join(f"`{name}`" for name in result["properties"])
        yield f"| `{tool.name}` | {', '.join(names)} | {fields} | {tool.description}{reads} |"


def resources() -> Iterator[str]:
    """One row for each resource."""
    yield "| Address | What it holds |"
    yield "| --- | --- |"
    for resource in (*RESOURCES, *TEMPLATES):
        yield f"| `{resource.uri}` | {resource.description} |"
