"""How each limit is reached: everything that is taken, and the step that is too much."""

import asyncio
import contextlib
import json
import re
import select
import socket
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import httpx

from accord.core.dialects.error_codes import ERROR_CODES
from accord.core.kernel.refusal import Reason
from tests.helpers.attacks.raw_socket import PATIENCE, frame, plug, rest, upgraded
from tests.helpers.clients.http_client import envelope, join_payload
from tests.helpers.clients.websocket_client import SESSION_CONFIG
from tests.security.low_limits import KIB, LOW, Scene, agent_of, join, note, prompt, tool

# The step that is too much, once everything before it was taken.
Last = Callable[[], Awaitable[httpx.Response]]
Reach = Callable[[Scene], Awaitable[Last]]


async def participants(scene: Scene) -> Last:
    await join(await scene.other("one"), scene.session)
    two = await scene.other("two")
    return lambda: join(two, scene.session)


async def seats(scene: Scene) -> Last:
    for name in ("one", "two"):
        web = await scene.other(name)
        assert (await join(web, scene.session)).status_code == 200
        await web.send("session.leave", scene.session, {})
    three = await scene.other("three")
    return lambda: join(three, scene.session)


async def metadata(scene: Scene) -> Last:
    web = await scene.other("one")
    who = join_payload(web.seat)
    who["participant"]["metadata"] = {"k": "x" * 100}
    return lambda: web.post(scene.session, envelope("session.join", scene.session, web.seat, who))


async def tools(scene: Scene) -> Last:
    agent = await agent_of(scene)
    await agent.send("tool.propose", scene.session, tool(agent.seat, "shell_execute"))
    return lambda: agent.post(
        scene.session, envelope("tool.propose", scene.session, agent.seat, tool(agent.seat))
    )


async def gates(scene: Scene) -> Last:
    agent = await agent_of(scene)
    one, two = [await scene.say("prompt.submit", prompt(agent.seat)) for _ in range(2)]
    ask = {"action_type": "prompt", "quorum": {"type": "any", "count": 1}, "timeout_seconds": 60}
    ask["message"] = "May I?"
    await scene.say("gate.request", {**ask, "action_ref": one})
    return lambda: scene.post("gate.request", {**ask, "action_ref": two})


async def streams(scene: Scene) -> Last:
    agent = await agent_of(scene)
    asked = await scene.say("prompt.submit", prompt(agent.seat))
    start = {"agent": agent.seat, "prompt_ref": asked}
    await agent.send("response.start", scene.session, start)
    return lambda: agent.post(
        scene.session, envelope("response.start", scene.session, agent.seat, start)
    )


async def secrets(scene: Scene) -> Last:
    share = {"scope": [scene.web.seat], "value_ref": "env:X"}
    await scene.say("secret.share", {**share, "key": "a"})
    return lambda: scene.post("secret.share", {**share, "key": "b"})


async def forks(scene: Scene) -> Last:
    point = await scene.say("context.add", note("a"))
    fork = {"from_point": point, "reason": "To see", "participants": [], "copy_context": False}
    await scene.say("fork.create", {**fork, "name": "one"})
    return lambda: scene.post("fork.create", {**fork, "name": "two"})


async def context_item(scene: Scene) -> Last:
    return lambda: scene.post("context.add", note("a", 1001))


async def context(scene: Scene) -> Last:
    await scene.say("context.add", note("a", 900))
    return lambda: scene.post("context.add", note("b", 1, tags=["x" * 600]))


async def context_kept(scene: Scene) -> Last:
    point = await scene.say("context.add", note("a", 100))
    fork = {"from_point": point, "reason": "To see", "participants": [], "copy_context": False}
    await scene.say("fork.create", {**fork, "name": "one"})
    await scene.say("context.add", note("b", 900), fork="one")
    merge = {"source_fork": "one", "target_fork": "main", "strategy": "append", "summary": "So"}
    proposed = await scene.say("merge.propose", merge)
    return lambda: scene.post("merge.execute", {"merge_proposal": proposed})


async def message(scene: Scene) -> Last:
    return lambda: scene.post("context.add", note("a", 8 * KIB))


async def stream_bytes(scene: Scene) -> Last:
    """As much as goes at once: none of it is taken, for it is too large for an item."""
    return lambda: until_too_fast(scene)


async def until_too_fast(scene: Scene) -> httpx.Response:
    """The first that is refused for that; how soon it comes is the machine's affair."""
    for _ in range(200):
        answer = await scene.post("context.add", note("a", 7 * KIB))
        if answer.status_code == 429:
            return answer
    raise AssertionError("it never ends")


async def stream_burst(scene: Scene) -> Last:
    """Bodies that have begun count, each at least as one part of what may be under way."""
    return lambda: until_refused(scene)


async def until_refused(scene: Scene) -> httpx.Response:
    """As soon as the others have begun; a draft is never kept."""
    while True:
        if not any(waits(each) for each in scene.plugs):  # none yet, or their time is up
            for _ in range(LOW["stream_burst"] // (64 * KIB)):
                begin_post(scene)
        draft = {"content": "x", "contributors": [scene.web.seat]}
        answer = await scene.post("prompt.draft", draft)
        if answer.status_code != 200:
            return answer


def waits(opened: socket.socket) -> bool:
    """Whether there is no answer yet."""
    return not select.select([opened], [], [], 0)[0]


def begin_post(scene: Scene) -> socket.socket:
    """A message of which only the head ever comes."""
    lines = [
        f"POST /sessions/{scene.session}/messages HTTP/1.1",
        f"Host: {scene.server.url[7:]}",
        f"Authorization: Bearer {scene.token}",
        "Content-Type: application/json",
        "Content-Length: 1000",
    ]
    scene.plugs.append(plug(scene.server))
    scene.plugs[-1].sendall("\r\n".join([*lines, "", ""]).encode())
    return scene.plugs[-1]


async def body_seconds(scene: Scene) -> Last:
    return lambda: asyncio.to_thread(answer_on, begin_post(scene))


def answer_on(opened: socket.socket) -> httpx.Response:
    """What a bare connection is told at the end."""
    head, _, body = rest(opened).partition(b"\r\n\r\n")
    return httpx.Response(int(head.split()[1]), content=body)


async def queue(scene: Scene) -> Last:
    """What cites a message that is not at hand is looked up; the others wait meanwhile."""
    for _ in range(2):
        await scene.say("context.add", note("a"))
    return lambda: queued(scene)


async def queued(scene: Scene) -> httpx.Response:
    """Everything arrives at once; the refusal of the last, as HTTP would say it."""
    said = [
        envelope("context.remove", scene.session, scene.web.seat, {"key": "nowhere", "reason": "x"})
        for _ in range(3)
    ]
    said[0]["ref"] = "nowhere"
    with await asyncio.to_thread(upgraded, scene.server, scene.token) as opened:
        opened.sendall(b"".join(frame(json.dumps(each).encode()) for each in said))
        heard = await asyncio.to_thread(errors_on, opened, len(said))
    (no,) = (each for each in heard if each["payload"].get("related_to") == said[-1]["id"])
    return httpx.Response(ERROR_CODES[Reason.TOO_MANY].http, json=no)


def errors_on(opened: socket.socket, count: int) -> list[dict[str, Any]]:
    """The next errors; frames of a server are short here and not masked."""
    heard = b""
    while heard.count(b'"type":"error"') < count or not heard.endswith(b"}"):
        more = opened.recv(1 << 16)
        assert more, heard
        heard += more
    return [json.loads(each) for each in re.findall(rb'\{"v":1.*?\}(?=\x81|$)', heard, re.DOTALL)]


async def unstored(scene: Scene) -> Last:
    """Somebody else keeps the file locked, and what was decided waits."""
    await scene.say("context.add", note("a"))
    return lambda: stalled(scene)


async def stalled(scene: Scene) -> httpx.Response:
    """The refusal; whatever was taken in before is on record once the file is free."""
    path = scene.server.home / "accord.db"
    held = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    posts: list[asyncio.Task[httpx.Response]] = []
    with contextlib.closing(held):
        held.execute("BEGIN IMMEDIATE")
        for _ in range(20):
            posts.append(asyncio.create_task(scene.post("context.add", note("a", 7 * KIB))))
            done, _ = await asyncio.wait(posts, timeout=0.1, return_when=asyncio.FIRST_COMPLETED)
            if done:
                break
        await asyncio.wait(posts, return_when=asyncio.FIRST_COMPLETED)
        held.execute("ROLLBACK")
    answers = [await each for each in posts]
    no, *_ = (each for each in answers if each.status_code == 429)
    scene.taken.extend(each.json()["id"] for each in answers if each.status_code == 200)
    return no


async def polls_per_principal(scene: Scene) -> Last:
    last = (await scene.web.poll(scene.session))["messages"][-1]["id"]
    where = f"/sessions/{scene.session}/messages?after={last}&wait=60"
    return lambda: refused_of(*(scene.web.http.get(where) for _ in range(2)))


async def refused_of(*asked: Coroutine[Any, Any, httpx.Response]) -> httpx.Response:
    """The one of them that is refused; the other would wait for long."""
    tasks = [asyncio.create_task(each) for each in asked]
    done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for each in waiting:
        each.cancel()
    await asyncio.wait(waiting)
    return done.pop().result()


async def sessions_per_principal(scene: Scene) -> Last:
    await scene.web.create()
    made = envelope("session.create", "new", scene.web.seat, {"config": SESSION_CONFIG})
    return lambda: scene.web.post("new", made)


REACH: dict[str, Reach] = {
    "participants": participants,
    "seats": seats,
    "metadata": metadata,
    "tools": tools,
    "gates": gates,
    "streams": streams,
    "secrets": secrets,
    "forks": forks,
    "context_item": context_item,
    "context": context,
    "context_kept": context_kept,
    "message": message,
    "stream_bytes": stream_bytes,
    "stream_burst": stream_burst,
    "body_seconds": body_seconds,
    "queue": queue,
    "unstored": unstored,
    "unstored_session": unstored,
    "polls_per_principal": polls_per_principal,
    "sessions_per_principal": sessions_per_principal,
}
