"""A session in which much is said for some alone, every such word a word of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self

from tests.helpers.attacks.approval_scene import PROMPT, PROPOSAL
from tests.helpers.clients.http_client import HttpClient, envelope
from tests.helpers.clients.websocket_client import SESSION_CONFIG
from tests.helpers.servers.server_process import ServerProcess

# In a fork, or for those who are named.
HIDDEN = "xyzzy"
# For the whole room, but not for who left before.
LATER = "plover"
# Before anybody left.
EARLY = "plugh"
LAST = f"{LATER}-last"
FORK = "aside"
PEOPLE = ("alice", "bob", "carol", "dave")
QUORUM = {"type": "any", "count": 1}


class Told(NamedTuple):
    """The session, and whatever of it is not for everybody."""

    server: ServerProcess
    session: str
    first: str
    inner: str
    hidden: dict[str, str]
    tokens: dict[str, str]

    @property
    def forks(self) -> tuple[str, ...]:
        return FORK, self.inner

    @asynccontextmanager
    async def web(self, seat: str, token: str = "") -> AsyncIterator[HttpClient]:
        """Somebody of the session who asks, for a while."""
        web = HttpClient(self.server.url, seat, token or self.tokens[seat])
        try:
            yield web
        finally:
            await web.close()


class Speaker:
    """Says things, and notes the ids of what is not for everybody."""

    def __init__(self, session: str, webs: dict[str, HttpClient]) -> None:
        self.session = session
        self.webs = webs
        self.hidden: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for web in self.webs.values():
            await web.close()

    async def say(self, seat: str, type: str, payload: Any, **more: Any) -> str:
        told = await self.webs[seat].send(type, self.session, payload, **more)
        id: str = told["id"]
        return id

    async def hide(self, seat: str, type: str, payload: Any, **more: Any) -> str:
        id = await self.say(seat, type, payload, **more)
        self.hidden[f"{type} {len(self.hidden)}"] = id
        return id

    async def gate_of(self, proposal: str) -> str:
        """The gate that a proposal waits at."""
        page = await self.webs["bob"].poll(self.session, proposal)
        asked = [each["id"] for each in page["messages"] if each["type"] == "gate.request"]
        self.hidden[f"gate.request {len(self.hidden)}"] = asked[0]
        gate: str = asked[0]
        return gate


def secret(name: str) -> str:
    """A word that stands nowhere else."""
    return f"{HIDDEN}-{name}"


def note(key: str, content: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "content_type": "text", "content": content, **more}


async def aside(here: Speaker, fork: str) -> None:
    """Everything that can be said in a fork, and some of it left open."""
    where = {"fork": fork}
    prompt = PROMPT | {"content": secret("prompt")}
    asked = await here.hide("bob", "prompt.submit", prompt, **where)
    amended = {
        "original_prompt": asked,
        "amendment": secret("amendment"),
        "reason": secret("why-amend"),
    }
    await here.hide("bob", "prompt.amend", amended, **where)
    draft = {"content": secret("draft"), "contributors": ["bob"]}
    await here.say("bob", "prompt.draft", draft, **where)
    thought = {"agent": "bot", "prompt_ref": asked, "visible_to": "all"}
    about = await here.hide("bot", "thinking.start", thought, **where)
    await here.hide("bot", "thinking.chunk", {"text": secret("thought")}, ref=about, **where)
    await here.hide("bot", "thinking.end", {"summary": secret("summary")}, ref=about, **where)
    begun = await here.hide("bot", "response.start", {"agent": "bot", "prompt_ref": asked}, **where)
    await here.hide("bot", "response.chunk", {"text": secret("answer")}, ref=begun, **where)
    ended = {"finish_reason": "complete", "metadata": {"note": secret("end")}}
    await here.hide("bot", "response.end", ended, ref=begun, **where)
    await here.hide("bob", "context.add", note(secret("key"), secret("item")), **where)
    update = {"key": secret("key"), "reason": secret("why"), "new_content": secret("newer")}
    await here.hide("bob", "context.update", update, **where)
    await here.hide("bob", "context.add", note(secret("gone"), "x"), **where)
    removal = {"key": secret("gone"), "reason": secret("removed")}
    await here.hide("bob", "context.remove", removal, **where)
    await tools(here, where)
    question = {"action_type": "prompt", "quorum": QUORUM, "timeout_seconds": 600}
    question |= {"action_ref": asked, "message": secret("question")}
    await here.hide("bob", "gate.request", question, **where)
    problem = {"code": "AGENT_ERROR", "message": secret("error"), "recoverable": True}
    await here.say("bot", "error", problem, **where)


async def tools(here: Speaker, where: dict[str, str]) -> None:
    """One is run, one is refused, one is left open."""
    wish = PROPOSAL | {"description": secret("tool"), "arguments": {"argv": [secret("argv")]}}
    ran = await here.hide("bot", "tool.propose", wish, **where)
    gate = await here.gate_of(ran)
    vote = {"gate": gate, "approver": "alice", "comment": secret("comment")}
    await here.hide("alice", "gate.approve", vote, **where)
    output = {"tool_proposal": ran, "stream": "stdout", "complete": True, "text": secret("output")}
    await here.hide("bot", "tool.output", output, **where)
    result = {"tool_proposal": ran, "success": True, "duration_ms": 1, "result": secret("result")}
    await here.hide("bot", "tool.result", result, **where)
    barred = await here.hide("bot", "tool.propose", wish, **where)
    gate = await here.gate_of(barred)
    no = {"gate": gate, "rejector": "alice", "reason": secret("reason")}
    await here.hide("alice", "gate.reject", no, **where)
    waits = PROPOSAL | {"tool_name": secret("open"), "description": secret("waits")}
    await here.gate_of(await here.hide("bot", "tool.propose", waits, **where))


async def whispers(here: Speaker, prompt: str) -> None:
    """For those who are named, in the middle of the room."""
    item = note(secret("whispered-key"), secret("whispered"), visible_to=["bob"])
    await here.hide("alice", "context.add", item)
    thought = {"agent": "bot", "prompt_ref": prompt, "visible_to": ["bob"]}
    about = await here.hide("bot", "thinking.start", thought)
    await here.hide("bot", "thinking.chunk", {"text": secret("private")}, ref=about)
    shared = {"key": secret("secret-key"), "scope": ["bob"], "value_ref": secret("value")}
    await here.hide("alice", "secret.share", shared)


async def fork(here: Speaker, name: str, point: str, **more: Any) -> str:
    """A fork of bob's, with alice and the agent; returns its id."""
    made = {"name": name, "reason": "To see", "from_point": point, "copy_context": False}
    await here.say("bob", "fork.create", made | {"participants": ["alice", "bot"]}, **more)
    detail = (await here.webs["bob"].http.get(f"/sessions/{here.session}")).json()
    forks: list[str] = [each["id"] for each in detail["forks"] if each["name"] == name]
    return forks[0]


async def begin(server: ServerProcess) -> Speaker:
    """Everybody came in, and dave has left."""
    roles = {"alice": ["admin", "driver", "approver"], "bot": ["driver"]}
    webs = {
        seat: HttpClient.with_token(
            server,
            seat,
            kind="agent" if seat == "bot" else "human",
            roles=roles.get(seat, ["driver"]),
        )
        for seat in (*PEOPLE, "bot")
    }
    made = {"name": f"{EARLY}-name", "config": SESSION_CONFIG | {"max_participants": 20}}
    new = await webs["alice"].post("new", envelope("session.create", "new", "alice", made))
    here = Speaker(new.json()["session"], webs)
    for seat in ("bob", "carol", "dave", "bot"):
        kind = "agent" if seat == "bot" else "human"
        await webs[seat].join(here.session, kind=kind, roles=roles.get(seat, ["driver"]))
    return here


async def finish(here: Speaker, first: str) -> str:
    """All of it, from where dave has left; returns the fork in the fork."""
    await here.say("dave", "session.leave", {})
    await here.say("alice", "prompt.submit", PROMPT | {"content": f"{LATER}-prompt"})
    await here.say("alice", "context.add", note(f"{LATER}-key", f"{LATER}-item"))
    await here.say("bot", "tool.propose", PROPOSAL | {"description": f"{LATER}-tool"})
    assert await fork(here, FORK, first) == FORK
    await aside(here, FORK)
    inner = await fork(here, "inner", first, fork=FORK)
    await here.hide("bob", "context.add", note(secret("inner-key"), secret("inner")), fork=inner)
    await whispers(here, first)
    await here.say("alice", "context.add", note("last", LAST))
    return inner


def told(server: ServerProcess, here: Speaker, first: str, inner: str) -> Told:
    """What a test needs of it."""
    tokens = {
        seat: web.http.headers["authorization"].removeprefix("Bearer ")
        for seat, web in here.webs.items()
    }
    return Told(server, here.session, first, inner, here.hidden, tokens)
