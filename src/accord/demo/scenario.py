"""The demonstration, chapter by chapter, with a check after each step."""

import asyncio
import os
import shlex
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from accord.client import ClientError, Envelope
from accord.core.kernel.messages import Body
from accord.core.room.approval.gates import GateRequest
from accord.core.room.approval.tool_proposals import ToolOutput, ToolResult
from accord.core.room.conversation.interrupts import InterruptAcknowledge
from accord.core.room.conversation.responses import ResponseEnd
from accord.core.room.forking.merges import MergeExecute
from accord.core.room.shared_context.context_items import ContextAdd
from accord.data_dir import KEYS_DIR_NAME, store_url_of
from accord.demo.narration import MARGIN, CheckFailedError, Narrator
from accord.demo.participants import MESSAGE_TIMEOUT_S, DemoSession
from accord.demo.processes import (
    BASE_BRANCH,
    GIT_ENVIRONMENT,
    POLL_INTERVAL_S,
    TOPIC_BRANCH,
    DemoRepository,
    ServerProcess,
    run_accord,
)
from accord.operations import verify
from accord.operations.local_log import open_existing_log
from accord.show import style
from accord.show.text import format_duration, plural, strip_styles, text_width

PLAN_KEY = "manual-plan"
# A Unix socket's path has at most 103 bytes on every system; 40 of them are the demo's own.
MAX_DIRECTORY_BYTES = 60
SHORT_DIRECTORY = "/tmp"  # noqa: S108 - the directory made in it is private
WRONG_TITLE, RIGHT_TITLE = "# Teh parser", "# The parser"


def short_directory() -> str | None:
    """Where temporary files are usually kept, unless a socket there would have too long a path.

    Without its socket the server is reached by hooks on one port, which another server may have.
    """
    usual = tempfile.gettempdir()
    is_short = len(os.fsencode(usual)) <= MAX_DIRECTORY_BYTES
    return None if is_short or not Path(SHORT_DIRECTORY).is_dir() else SHORT_DIRECTORY


async def run_demo() -> int:
    """Run the demonstration; returns 0 if every check passed, else 1."""
    narrator = Narrator()
    narrator.print_lines(style.bold("Accord: a complete session, from prompt to git history"))
    try:
        with tempfile.TemporaryDirectory(prefix="accord-demo-", dir=short_directory()) as folder:
            await run_scenario(narrator, Path(folder))
    except (CheckFailedError, ClientError, OSError, RuntimeError, TimeoutError) as error:
        what = str(error) or f"something took longer than {MESSAGE_TIMEOUT_S:g} s"
        narrator.print_lines("", style.red(f"The demonstration failed: {what}"))
        return 1
    narrator.print_summary()
    return 0


async def run_scenario(narrator: Narrator, folder: Path) -> None:
    """Run all chapters in order."""
    server, repository = ServerProcess(folder), DemoRepository(folder / "repository")
    try:
        async with DemoSession(narrator, server, repository) as demo:
            await set_up(demo)
            gate = await prompt_agent(demo)
            await kill_and_restart(demo)
            await approve(demo, gate)
            await reject(demo)
            await commit_change(demo)
            await fork_and_merge(demo)
            await interrupt_agent(demo)
            await end_session(demo)
            await verify_log(narrator, server, demo.session.id)
        narrator.check("The server stops cleanly", await server.stop() == 0)
        await explain_after_squash(narrator, repository)
    finally:
        server.clean_up()


async def set_up(demo: DemoSession) -> None:
    """Start a server, create a repository, and connect Alice and the agent."""
    narrator, repository = demo.narrator, demo.repository
    narrator.print_chapter("A server, a throw-away repository, a person and an agent")
    repository.create()
    hooks = await run_accord("git", "install", cwd=repository.path, env=GIT_ENVIRONMENT)
    ready = await demo.server.start()
    login = {"ACCORD_URL": ready.url, "ACCORD_TOKEN": ready.admin_token}
    narrator.print_fact("server", f"{ready.url}, process {ready.pid}")
    narrator.print_fact(
        "repository", f"{repository.path}; README.md begins {repository.readme_title!r}"
    )
    narrator.print_fact(
        "git", f"on the branch {TOPIC_BRANCH}; hooks installed by accord git install"
    )
    alice, claude = await asyncio.gather(
        issue_token(
            login, "--id", "alice", "--type", "human", "--roles", "admin", "--name", "Alice"
        ),
        issue_token(login, "--id", "claude", "--type", "agent", "--roles", "driver"),
    )
    narrator.print_fact("alice", "a person, with a signed token")
    narrator.print_fact("claude", "an agent that follows a script, with a signed token")
    narrator.print_lines("")
    narrator.check("The git hooks are installed", hooks[0] == 0)
    narrator.print_chapter("Alice opens a session and sends a prompt")
    await demo.connect(ready.url, alice, claude)


async def issue_token(login: dict[str, str], *words: str) -> str:
    """A token from `accord token issue`."""
    code, output = await run_accord("token", "issue", *words, env=login)
    if code:
        raise CheckFailedError(f"accord token issue: {output}")
    return output.splitlines()[-1]


async def prompt_agent(demo: DemoSession) -> str:
    """Alice prompts, the agent responds and proposes a change; returns the id of its gate."""
    await demo.session.prompt("README.md has a typo in its title. Can you fix it?", "claude")
    gate = await demo.watcher.wait_for_next(GateRequest)
    refusal = await asyncio.wait_for(demo.early_refusal, MESSAGE_TIMEOUT_S)
    demo.narrator.print_lines("")
    demo.narrator.check("Running it before approval was refused", refusal.code == "INVALID_STATE")
    demo.narrator.check("README.md is unchanged", demo.repository.readme_title == WRONG_TITLE)
    return gate.id


async def kill_and_restart(demo: DemoSession) -> None:
    """Kill the server while the gate is open: both clients reconnect and nothing is lost."""
    demo.narrator.print_chapter("The server is killed while the gate is open")
    started = time.monotonic()
    await demo.server.kill()
    demo.narrator.print_fact("kill -9", "the server is gone; alice and claude try to reconnect")
    ready = await demo.server.start()
    took = format_duration(time.monotonic() - started)
    demo.narrator.print_fact("restart", f"process {ready.pid} on the same files, {took} later")
    demo.narrator.print_lines("")
    gates = (await demo.alice.session(demo.session.id)).gates
    demo.narrator.check("The gate is still open", len(gates) == 1)


async def approve(demo: DemoSession, gate: str) -> None:
    """Alice approves, and the edit is made."""
    demo.narrator.print_chapter("Alice approves, and the edit is made")
    await demo.session.approve(gate, "One word. Good.")
    result = await demo.watcher.wait_for(lambda envelope: isinstance(envelope.body, ToolResult))
    await demo.watcher.wait_for_next(ResponseEnd)
    done = isinstance(result.body, ToolResult) and result.body.success
    demo.narrator.check("The edit was made", done)
    demo.narrator.check(
        f"README.md begins {RIGHT_TITLE!r} now", demo.repository.readme_title == RIGHT_TITLE
    )
    await check_history(demo)


async def check_history(demo: DemoSession) -> None:
    """Alice received every recorded message once and in order, across the restart."""
    record = [envelope async for envelope in demo.alice.history(demo.session.id)]
    await demo.watcher.wait_for(lambda envelope: envelope.id == record[-1].id)
    received = [
        envelope.id for envelope in demo.watcher.received if 0 < envelope.seq <= record[-1].seq
    ]
    same = received == [envelope.id for envelope in record]
    what = (
        f"Despite the crash Alice received all {len(record)} messages, none twice and none missing"
    )
    demo.narrator.check(what, same)


async def reject(demo: DemoSession) -> None:
    """Alice rejects a proposal, and it does not run."""
    demo.narrator.print_chapter("A dangerous proposal, which Alice rejects")
    await demo.session.prompt("The docs are old. What would you do about them?", "claude")
    gate = await demo.watcher.wait_for_next(GateRequest)
    await demo.session.reject(gate.id, "Not all of it. We rewrite it page by page.")
    await demo.watcher.wait_for_next(ResponseEnd)
    runs = sum(isinstance(envelope.body, ToolResult) for envelope in demo.watcher.received)
    demo.narrator.check("The rejected command did not run", runs == 1)
    demo.narrator.check("docs/manual.md is still there", demo.repository.docs.exists())


async def commit_change(demo: DemoSession) -> None:
    """The agent commits the approved change, and the hooks record the decision."""
    demo.narrator.print_chapter("The agent commits, and git records why")
    await demo.session.prompt("Then commit the title alone, please.", "claude")
    gate = await demo.watcher.wait_for_next(GateRequest)
    await demo.session.approve(gate.id, "Yes")
    await demo.watcher.wait_for_next(ResponseEnd)
    git = demo.repository.git
    demo.narrator.print_command("git log -1 --format=%B", git("log", "-1", "--format=%B"), cut=True)
    note = msgspec.json.decode(git("notes", "--ref=pvp", "show"))
    (decision,) = note["decisions"]
    demo.narrator.print_lines("")
    demo.narrator.print_fact("git notes", summarize_note(note))
    demo.narrator.print_lines("")
    message = git("log", "-1", "--format=%(trailers)")
    demo.narrator.check(
        "The commit names its session", f"PVP-Session: {demo.session.id}" in message
    )
    demo.narrator.check(
        "The commit names who approved its content", "Approved-By: human:alice" in message
    )
    demo.narrator.check(
        "Its note lists the rejected alternative", decision["alternatives_considered"]
    )


def summarize_note(note: dict[str, Any]) -> str:
    """One line on the contents of a commit's note."""
    messages = plural(len(note["conversation"]["messages"]), "message")
    tools = plural(len(note["tools"]["executions"]), "tool")
    return f"{plural(len(note['decisions']), 'decision')}, {messages} of the conversation, {tools}"


async def fork_and_merge(demo: DemoSession) -> None:
    """Explore an alternative in a fork, and merge its context item back."""
    demo.narrator.print_chapter("An alternative, explored in a fork and merged back")
    fork = await demo.session.fork(
        "Rewrite the manual", ["claude"], reason="There may be less to do"
    )
    fork_view = demo.session.within(fork)
    await fork_view.prompt("Could we rewrite it instead? See how much there is.", "claude")
    gate = await demo.watcher.wait_for(
        lambda envelope: isinstance(envelope.body, GateRequest) and envelope.fork == fork
    )
    await fork_view.approve(gate.id)
    shared = await demo.watcher.wait_for(lambda envelope: isinstance(envelope.body, ContextAdd))
    await demo.watcher.wait_for(
        lambda envelope: isinstance(envelope.body, ResponseEnd) and envelope.seq > shared.seq
    )
    before = await context_keys(demo, None)
    demo.narrator.check("Claude responded only in the fork", answered_only_in_fork(demo, fork))
    demo.narrator.check("The plan is not in the trunk yet", PLAN_KEY not in before)
    merge = await demo.session.propose_merge(fork, "Rewriting is less work than deleting")
    await demo.session.execute_merge(merge)
    await demo.watcher.wait_for(lambda envelope: isinstance(envelope.body, MergeExecute))
    demo.narrator.check(
        "After the merge the plan is in the trunk", PLAN_KEY in await context_keys(demo, None)
    )


async def context_keys(demo: DemoSession, fork: str | None) -> set[str]:
    """The keys of the context items of a fork; None is the trunk."""
    items = (await demo.alice.session(demo.session.id)).context
    return {item.key for item in items if item.fork == fork}


def answered_only_in_fork(demo: DemoSession, fork: str) -> bool:
    """Whether all messages of the agent since the fork was created are in that fork."""
    received = demo.watcher.received
    since = next(at for at, envelope in enumerate(received) if envelope.fork == fork)
    own = [envelope.fork for envelope in received[since:] if envelope.sender == "claude"]
    return bool(own) and set(own) == {fork}


async def interrupt_agent(demo: DemoSession) -> None:
    """Alice interrupts a command that would never end."""
    demo.narrator.print_chapter("A command that never ends, and Alice stops it")
    prompt = await demo.session.prompt("Please watch the manual for changes.", "claude")
    proposal = await demo.watcher.wait_for(lambda envelope: envelope.ref == prompt)
    await demo.watcher.wait_for(lambda envelope: is_about(envelope, proposal.id, GateRequest))
    await demo.session.approve(proposal.id)
    await demo.watcher.wait_for(lambda envelope: is_about(envelope, proposal.id, ToolOutput))
    await demo.session.interrupt("stop", "Thank you, that was enough", "claude")
    result = await demo.watcher.wait_for(
        lambda envelope: is_about(envelope, proposal.id, ToolResult)
    )
    answer = await demo.watcher.wait_for(
        lambda envelope: isinstance(envelope.body, InterruptAcknowledge)
    )
    failed = isinstance(result.body, ToolResult) and not result.body.success
    halted = (await demo.alice.session(demo.session.id)).halted
    demo.narrator.check("The command was killed", failed)
    demo.narrator.check("Claude acknowledged the stop", answer.sender == "claude")
    demo.narrator.check(
        "The server refuses everything from Claude until the next prompt", "claude" in halted
    )


def is_about(envelope: Envelope, proposal: str, kind: type[Body]) -> bool:
    """Whether this is a message of that kind about the proposal."""
    named = getattr(envelope.body, "tool_proposal", None) or getattr(
        envelope.body, "action_ref", None
    )
    return isinstance(envelope.body, kind) and named == proposal


async def explain_after_squash(narrator: Narrator, repository: DemoRepository) -> None:
    """After a squash merge, without branch and server, `accord why` still explains the line."""
    narrator.print_chapter(
        "Later: squash-merged, the branch deleted, the server gone. Why this line?"
    )
    title = "Spell the title right (#42)"
    for words in (
        ("switch", "--quiet", BASE_BRANCH),
        ("merge", "--quiet", "--squash", TOPIC_BRANCH),
        ("commit", "--quiet", "--message", title),
        ("branch", "--quiet", "-D", TOPIC_BRANCH),
    ):
        repository.git(*words)
        narrator.print_command(shlex.join(["git", *words]).replace("--quiet ", ""), "")
    narrator.print_lines("")
    asked = ("why", f"{repository.readme.name}:1")
    env = {**GIT_ENVIRONMENT, **terminal_environment()}
    code, output = await run_accord(*asked, "--offline", cwd=repository.path, env=env)
    narrator.print_command(shlex.join(["accord", *asked]), output)
    narrator.print_lines("")
    text = strip_styles(output)
    narrator.check("One commit on main, with a different message", repository.head_subject == title)
    narrator.check("accord why finds the decision behind the line", code == 0 and "dec_" in text)
    narrator.check("accord why says who approved it", "approved by  human:alice" in text)
    narrator.check("accord why says what was rejected", "instead of   Delete the whole" in text)


async def end_session(demo: DemoSession) -> None:
    demo.narrator.print_chapter("The end, and the proof")
    await demo.session.end("The title is right")
    await demo.watcher.wait_for(lambda envelope: envelope.type == "session.end")


async def verify_log(narrator: Narrator, server: ServerProcess, session: str) -> None:
    """Verify the log from its files while the server runs."""
    await wait_until_signed(server.home, session)
    code, output = await run_accord(
        "verify", session, "--data-dir", str(server.home), env=terminal_environment()
    )
    narrator.print_lines("")
    narrator.print_command(f"accord verify {session}", output)
    narrator.print_lines("")
    narrator.check("The log has not been tampered with", code == 0)


def terminal_environment() -> dict[str, str]:
    """Variables that make a command print with this terminal's width and colors."""
    colors = {"FORCE_COLOR": "1"} if style.supports_color() else {"NO_COLOR": "1"}
    return {"COLUMNS": str(text_width() - len(MARGIN)), **colors}


async def wait_until_signed(home: Path, session: str) -> None:
    """Wait until the server has signed the end of the session; it signs once a second."""
    async with asyncio.timeout(MESSAGE_TIMEOUT_S), open_existing_log(store_url_of(home)) as events:
        stream = f"room/{session}"
        keys = await verify.load_keys(events, home / KEYS_DIR_NAME)
        while (await verify.check_stream(events, stream, keys)).unsigned:  # noqa: ASYNC110 - no event crosses processes
            await asyncio.sleep(POLL_INTERVAL_S)
