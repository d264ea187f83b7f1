"""The story: what Alice does, what must follow, and what must not."""

import asyncio
import shlex
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from accord import verify
from accord.client import ClientError, Envelope
from accord.core.kernel.log import Body
from accord.core.room.gates import GateRequest
from accord.core.room.interrupts import InterruptAcknowledge
from accord.core.room.merges import MergeExecute
from accord.core.room.shelf import ContextAdd
from accord.core.room.streams import ResponseEnd
from accord.core.room.tools import ToolOutput, ToolResult
from accord.demo.cast import PATIENCE_S, Cast
from accord.demo.props import POLL_S, QUIET, TOPIC, TRUNK, Repository, ServerProcess, accord
from accord.demo.stage import MARGIN, SceneFailedError, Stage
from accord.home import KEYS, place
from accord.reading import opened
from accord.show import paint
from accord.show.text import count, span, unstyled, width

PLAN = "manual-plan"
WRONG, RIGHT = "# Teh parser", "# The parser"


async def perform() -> int:
    """Play it; 0 if everything happened as it should."""
    stage = Stage()
    stage.write(paint.bold("Accord: the whole story, by itself"))
    try:
        with tempfile.TemporaryDirectory(prefix="accord-demo-") as folder:
            await play(stage, Path(folder))
    except (SceneFailedError, ClientError, OSError, RuntimeError, TimeoutError) as error:
        what = str(error) or f"something took longer than {PATIENCE_S:g} s"
        stage.write("", paint.red(f"It did not happen as it should: {what}"))
        return 1
    stage.curtain()
    return 0


async def play(stage: Stage, folder: Path) -> None:
    """All chapters."""
    server, repository = ServerProcess(folder), Repository(folder / "repository")
    try:
        async with Cast(stage, server, repository) as cast:
            await gather(cast)
            gate = await ask(cast)
            await crash(cast)
            await agree(cast, gate)
            await refuse(cast)
            await commit(cast)
            await explore(cast)
            await stop(cast)
            await part(cast)
            await prove(stage, server, cast.room.id)
        stage.proved("The server stops cleanly", await server.stop() == 0)
        await remember(stage, repository)
    finally:
        server.clean_up()


async def gather(cast: Cast) -> None:
    """A server, a repository, two identities, one session."""
    stage, repository = cast.stage, cast.repository
    stage.chapter("A server, a throw-away repository, a person and an agent")
    repository.make()
    hooks = await accord("git", "install", cwd=repository.path, env=QUIET)
    ready = await cast.server.start()
    login = {"ACCORD_URL": ready.url, "ACCORD_TOKEN": ready.admin_token}
    stage.fact("server", f"{ready.url}, process {ready.pid}")
    stage.fact("repository", f"{repository.path}; README.md begins {repository.title!r}")
    stage.fact("git", f"on the branch {TOPIC}; accord git install has put in its hooks")
    alice, claude = await asyncio.gather(
        token(login, "--id", "alice", "--type", "human", "--roles", "admin", "--name", "Alice"),
        token(login, "--id", "claude", "--type", "agent", "--roles", "driver"),
    )
    stage.fact("alice", "a person, with a signed token")
    stage.fact("claude", "an agent that follows a script, with a signed token")
    stage.write("")
    stage.proved("Git will remember why", hooks[0] == 0)
    stage.chapter("Alice opens a session and asks")
    await cast.enter(ready.url, alice, claude)


async def token(login: dict[str, str], *words: str) -> str:
    """A signed identity, as an operator makes it."""
    code, said = await accord("token", "issue", *words, env=login)
    if code:
        raise SceneFailedError(f"accord token issue: {said}")
    return said.splitlines()[-1]


async def ask(cast: Cast) -> str:
    """A prompt, an answer as it is written, a proposal, a gate; returns the gate's id."""
    await cast.room.prompt("README.md has a typo in its title. Can you fix it?", "claude")
    gate = await cast.ears.next(GateRequest)
    no = await asyncio.wait_for(cast.too_early, PATIENCE_S)
    cast.stage.write("")
    cast.stage.proved("Running it before anybody agreed was refused", no.code == "INVALID_STATE")
    cast.stage.proved("README.md is unchanged", cast.repository.title == WRONG)
    return gate.id


async def crash(cast: Cast) -> None:
    """The server is killed while the gate is open; everybody finds back and nothing is lost."""
    cast.stage.chapter("The server is killed in the middle of it")
    began = time.monotonic()
    await cast.server.kill()
    cast.stage.fact("kill -9", "the server is gone; alice and claude try to come back")
    ready = await cast.server.start()
    took = span(time.monotonic() - began)
    cast.stage.fact("restart", f"process {ready.pid} on the same files, {took} later")
    cast.stage.write("")
    gates = (await cast.alice.session(cast.room.id)).gates
    cast.stage.proved("The gate is still open", len(gates) == 1)


async def agree(cast: Cast, gate: str) -> None:
    """Alice says yes, and then it runs."""
    cast.stage.chapter("Alice agrees, and then it runs")
    await cast.room.approve(gate, "One word. Good.")
    result = await cast.ears.until(lambda said: isinstance(said.body, ToolResult))
    await cast.ears.next(ResponseEnd)
    done = isinstance(result.body, ToolResult) and result.body.success
    cast.stage.proved("It ran", done)
    cast.stage.proved(f"README.md begins {RIGHT!r} now", cast.repository.title == RIGHT)
    await complete(cast)


async def complete(cast: Cast) -> None:
    """Alice heard everything that is on record, each once and in order, over both servers."""
    record = [said async for said in cast.alice.history(cast.room.id)]
    await cast.ears.until(lambda said: said.id == record[-1].id)
    heard = [said.id for said in cast.ears.heard if 0 < said.seq <= record[-1].seq]
    same = heard == [said.id for said in record]
    what = f"Over the crash Alice heard all {len(record)} messages, none twice and none missing"
    cast.stage.proved(what, same)


async def refuse(cast: Cast) -> None:
    """A proposal that Alice rejects never runs."""
    cast.stage.chapter("A dangerous proposal, which Alice rejects")
    await cast.room.prompt("The docs are old. What would you do about them?", "claude")
    gate = await cast.ears.next(GateRequest)
    await cast.room.reject(gate.id, "Not all of it. We rewrite it page by page.")
    await cast.ears.next(ResponseEnd)
    runs = sum(isinstance(said.body, ToolResult) for said in cast.ears.heard)
    cast.stage.proved("It never ran", runs == 1)
    cast.stage.proved("docs/manual.md is still there", cast.repository.docs.exists())


async def commit(cast: Cast) -> None:
    """The agent commits what was agreed; hooks write down why."""
    cast.stage.chapter("The agent commits, and git writes down why")
    await cast.room.prompt("Then commit the title alone, please.", "claude")
    gate = await cast.ears.next(GateRequest)
    await cast.room.approve(gate.id, "Yes")
    await cast.ears.next(ResponseEnd)
    git = cast.repository.git
    cast.stage.typed("git log -1 --format=%B", git("log", "-1", "--format=%B"), cut=True)
    note = msgspec.json.decode(git("notes", "--ref=pvp", "show"))
    (made,) = note["decisions"]
    cast.stage.write("")
    cast.stage.fact("git notes", contents(note))
    cast.stage.write("")
    message = git("log", "-1", "--format=%(trailers)")
    cast.stage.proved("The commit names its session", f"PVP-Session: {cast.room.id}" in message)
    cast.stage.proved("It says who approved", "Approved-By: human:alice" in message)
    cast.stage.proved("Its record has the proposal that lost", made["alternatives_considered"])


def contents(note: dict[str, Any]) -> str:
    """What a note holds, in a line."""
    said = count(len(note["conversation"]["messages"]), "message")
    ran = count(len(note["tools"]["executions"]), "tool")
    return f"{count(len(note['decisions']), 'decision')}, {said} of the conversation, {ran}"


async def explore(cast: Cast) -> None:
    """An alternative in a fork; what came of it is merged back."""
    cast.stage.chapter("Another way, explored in a fork and merged back")
    fork = await cast.room.fork("Rewrite the manual", ["claude"], reason="There may be less to do")
    aside = cast.room.within(fork)
    await aside.prompt("Could we rewrite it instead? See how much there is.", "claude")
    gate = await cast.ears.until(
        lambda said: isinstance(said.body, GateRequest) and said.fork == fork
    )
    await aside.approve(gate.id)
    shared = await cast.ears.until(lambda said: isinstance(said.body, ContextAdd))
    await cast.ears.until(lambda said: isinstance(said.body, ResponseEnd) and said.seq > shared.seq)
    before = await keys(cast, None)
    cast.stage.proved("Claude answered in the fork alone", whole_answer(cast, fork))
    cast.stage.proved("The trunk knows nothing of the plan yet", PLAN not in before)
    merge = await cast.room.propose_merge(fork, "Rewriting is less work than deleting")
    await cast.room.execute_merge(merge)
    await cast.ears.until(lambda said: isinstance(said.body, MergeExecute))
    cast.stage.proved("Now the plan is in the trunk", PLAN in await keys(cast, None))


async def keys(cast: Cast, fork: str | None) -> set[str]:
    """What lies on the shelf there."""
    items = (await cast.alice.session(cast.room.id)).context
    return {item.key for item in items if item.fork == fork}


def whole_answer(cast: Cast, fork: str) -> bool:
    """Whether everything that the agent said since the fork was said in it."""
    heard = cast.ears.heard
    since = next(at for at, said in enumerate(heard) if said.fork == fork)
    own = [said.fork for said in heard[since:] if said.sender == "claude"]
    return bool(own) and set(own) == {fork}


async def stop(cast: Cast) -> None:
    """Something that would run for ever, and Alice who stops it."""
    cast.stage.chapter("A command that never ends, and Alice stops it")
    prompt = await cast.room.prompt("Please watch the manual for changes.", "claude")
    proposal = await cast.ears.until(lambda said: said.ref == prompt)
    await cast.ears.until(lambda said: about(said, proposal.id, GateRequest))
    await cast.room.approve(proposal.id)
    await cast.ears.until(lambda said: about(said, proposal.id, ToolOutput))
    await cast.room.interrupt("stop", "Thank you, that was enough", "claude")
    result = await cast.ears.until(lambda said: about(said, proposal.id, ToolResult))
    answer = await cast.ears.until(lambda said: isinstance(said.body, InterruptAcknowledge))
    failed = isinstance(result.body, ToolResult) and not result.body.success
    halted = (await cast.alice.session(cast.room.id)).halted
    cast.stage.proved("The command is dead", failed)
    cast.stage.proved("Claude says that it has stopped", answer.sender == "claude")
    cast.stage.proved("The server lets it do nothing until it is asked again", "claude" in halted)


def about(said: Envelope, proposal: str, kind: type[Body]) -> bool:
    """Whether this is what was said of that kind about a proposal."""
    named = getattr(said.body, "tool_proposal", None) or getattr(said.body, "action_ref", None)
    return isinstance(said.body, kind) and named == proposal


async def remember(stage: Stage, repository: Repository) -> None:
    """Squashed as a forge does it, branch and server gone: the line still knows its decision."""
    stage.chapter("Later: squashed, the branch deleted, the server gone, and a question")
    title = "Spell the title right (#42)"
    for words in (
        ("switch", "--quiet", TRUNK),
        ("merge", "--quiet", "--squash", TOPIC),
        ("commit", "--quiet", "--message", title),
        ("branch", "--quiet", "-D", TOPIC),
    ):
        repository.git(*words)
        stage.typed(shlex.join(["git", *words]).replace("--quiet ", ""), "")
    stage.write("")
    asked = ("why", f"{repository.readme.name}:1")
    env = {**QUIET, **as_here()}
    code, said = await accord(*asked, "--offline", cwd=repository.path, env=env)
    stage.typed(shlex.join(["accord", *asked]), said)
    stage.write("")
    text = unstyled(said)
    stage.proved("One commit on main, with another message", repository.title_of_head == title)
    stage.proved("The line leads to its decision", code == 0 and "dec_" in text)
    stage.proved("The line says who approved it", "approved by  human:alice" in text)
    stage.proved("The line says what was not done instead", "instead of   Delete the whole" in text)


async def part(cast: Cast) -> None:
    """The end of the session."""
    cast.stage.chapter("The end, and the proof")
    await cast.room.end("The title is right")
    await cast.ears.until(lambda said: said.type == "session.end")


async def prove(stage: Stage, server: ServerProcess, session: str) -> None:
    """The log holds, checked from the files alone while the server goes on."""
    await signed(server.home, session)
    code, said = await accord("verify", session, "--data-dir", str(server.home), env=as_here())
    stage.write("")
    stage.typed(f"accord verify {session}", said)
    stage.write("")
    stage.proved("Nobody has changed what is on record", code == 0)


def as_here() -> dict[str, str]:
    """What a command must know to look as if it were typed on this screen."""
    colours = {"FORCE_COLOR": "1"} if paint.in_colour() else {"NO_COLOR": "1"}
    return {"COLUMNS": str(width() - len(MARGIN)), **colours}


async def signed(home: Path, session: str) -> None:
    """The server has signed the end of the session; it does so once a second."""
    async with asyncio.timeout(PATIENCE_S), opened(place(home)) as events:
        stream = f"room/{session}"
        keys = await verify.gather(events, home / KEYS)
        while (await verify.check_stream(events, stream, keys)).unsigned:  # noqa: ASYNC110 - no event crosses processes
            await asyncio.sleep(POLL_S)
