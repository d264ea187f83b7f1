"""Posts over MCP: CPU, latency and memory, beside small servers in the same run."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import NamedTuple

from bench.mcp_client import (
    Load,
    ask,
    cpu_us,
    http_request,
    p50_ms,
    result_of,
    rpc,
    session_headers,
    tool_call,
)
from bench.report import Row, ratios, spread
from bench.servers import Running, running_accord, running_small_server, temporary_directory

CLIENTS = 16
SMALL_SERVERS = ("starlette", "single", "sdk")
PATH = "/mcp?as=claude"
BODY = "The mapper drops null fields; see the finding on line 42. " * 4
PLAIN = http_request("/post", {}, {"thread_id": "th_1", "body": BODY})


class Scale(NamedTuple):
    """How thorough to be; `warm_up` and `growth` are numbers of messages."""

    rounds: int = 5
    seconds: float = 2.0
    latencies: int = 300
    warm_up: int = 15_000
    growth: int = 30_000


TINY = Scale(1, 0.1, 20, 100, 100)


class Figures(NamedTuple):
    """By server, one figure for each round; memory in KiB."""

    cpu_us: dict[str, list[float]]
    p50_ms: dict[str, list[float]]
    idle_kib: dict[str, int]
    bytes_per_message: float


def post_call(thread: str) -> dict[str, object]:
    return {"thread_id": thread, "schema_version": 1, "body": BODY}


async def new_thread(server: Running) -> str:
    wish = {"title": "bench", "participants": ["claude"]}
    _, made = await ask(server, tool_call(PATH, "create_thread", wish))
    return str(result_of(made)["thread_id"])


async def accord_loads(server: Running) -> dict[str, Load]:
    """Posts in the newest revision, and in one with sessions."""
    thread = await new_thread(server)
    newest = tool_call(PATH, "post_message", post_call(thread))
    params = {"name": "post_message", "arguments": post_call(thread)}
    session = await session_headers(server, PATH)
    older = http_request(PATH, session, rpc("tools/call", params))
    return {"newest": Load(server, [newest]), "older": Load(server, [older])}


async def measure(
    where: str | None, scale: Scale, beside: Sequence[str] = SMALL_SERVERS
) -> Figures:
    """All servers in turns on the same core."""
    with ExitStack() as stack:
        home = stack.enter_context(temporary_directory(where))
        ours = stack.enter_context(running_accord(where))
        idle = {"accord": ours.rss_kib}
        loads = {}
        for kind in beside:
            server = stack.enter_context(running_small_server(kind, home))
            idle[kind] = server.rss_kib
            call = tool_call("/mcp", "post_message", post_call("th_1"))
            loads[kind] = Load(server, [call if kind == "sdk" else PLAIN])
        loads |= await accord_loads(ours)
        us, ms = defaultdict(list), defaultdict(list)
        for _ in range(scale.rounds):
            for name, load in loads.items():
                us[name].append(await cpu_us(load, CLIENTS, scale.seconds))
            for name in {"newest", "single"} & loads.keys():
                ms[name].append(await p50_ms(loads[name], scale.latencies))
        grown = await growth(loads["newest"], scale)
    return Figures(dict(us), dict(ms), idle, grown)


async def growth(load: Load, scale: Scale) -> float:
    """Bytes of resident memory that each message adds once the caches are full."""
    await cpu_us(load, CLIENTS, 0, scale.warm_up)
    before = load.server.rss_kib
    await cpu_us(load, CLIENTS, 0, scale.growth)
    return (load.server.rss_kib - before) * 1024 / scale.growth


def rows(found: Figures) -> Iterator[Row]:
    """Each figure with its target."""
    ours = found.cpu_us["newest"]
    of_starlette = ratios(found.cpu_us["starlette"], ours)
    of_sdk = ratios(found.cpu_us["sdk"], ours)
    older = ratios(found.cpu_us["older"], ours)
    slower = ratios(found.p50_ms["newest"], found.p50_ms["single"])
    more = (found.idle_kib["accord"] - found.idle_kib["sdk"]) / 1024
    yield Row(
        f"MCP posts per CPU second, {CLIENTS} clients, to Starlette's",
        f"{of_starlette.text()}; {spread(ours).text(0)} µs",
        "at least 0.50; ambition 0.80",
        of_starlette.middle >= 0.5,
    )
    yield Row("the same, to the SDK's", of_sdk.text(1), "at least 4", of_sdk.middle >= 4)
    yield Row("revision with sessions", older.text(), "at most 1.25", older.middle <= 1.25)
    yield Row(
        "p50 of one client, to Starlette with a commit for each",
        f"{slower.text()}; {spread(found.p50_ms['newest']).text()} ms",
        "at most 2",
        slower.middle <= 2,
    )
    yield Row("idle server, over the SDK's", f"{more:.0f} MB", "at most 30 MB", more <= 30)
    each = found.bytes_per_message
    yield Row("memory for each stored message", f"{each:.0f} bytes", "at most 100", each <= 100)
