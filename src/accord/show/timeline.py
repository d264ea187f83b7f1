"""Turn the messages of a session into a conversation: streamed chunks become one turn each."""

import json
from collections.abc import Callable, Iterable

import msgspec

from accord.core.kernel.timestamps import is_before_timeout
from accord.show.foreign_json import (
    JsonObject,
    as_int,
    as_items,
    as_listing,
    as_object,
    as_text,
    as_texts,
)
from accord.show.text import (
    MAX_SPAN_S,
    describe_quorum,
    describe_verdict,
    format_duration,
    join_words,
    plural,
    render_invocation,
    strip_styles,
)

SYSTEM = "system"
TASKS_KEY = "session:tasks"

WireEnvelope = JsonObject


class Turn(msgspec.Struct):
    """One thing a member did. `text` is prose; `code` is a command, data or a program's output.

    `mood` is `good`, `bad`, `wait` or empty.
    """

    kind: str
    at: str
    who: str
    title: str
    seq: int = 0
    text: str = ""
    code: str = ""
    mood: str = ""
    fork: str = ""

    @property
    def listing(self) -> str:
        """The code as it is shown; tool output loses its terminal colours."""
        return strip_styles(self.code) if self.kind == "output" else self.code


class Timeline:
    """Builds turns, in the order in which they began, from envelopes.

    Handlers read payloads only through `foreign_json`, because a payload may have any shape.
    """

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.name = ""
        self._answers: dict[str, Turn] = {}
        self._outputs: dict[str, Turn] = {}
        self._tools: dict[str, str] = {}
        self._granted: set[str] = set()
        self._removed: frozenset[str] = frozenset()
        self._gates: dict[str, str] = {}
        self._limits: dict[str, tuple[str, int]] = {}
        self._present: set[str] = set()
        self._joins: set[str] = set()
        self._merges: dict[str, str] = {}
        self._tasks: set[str] = set()  # lines of the task list shown last

    def add(self, envelope: WireEnvelope) -> None:
        """Add one envelope; types without a handler, such as heartbeats, are not shown."""
        message_type = as_text(envelope.get("type"))
        handler = HANDLERS_BY_TYPE.get(message_type)
        if handler is None:
            return
        payload = envelope.get("payload")
        if isinstance(payload, dict):
            handler(self, envelope, payload)
        else:
            title = f"sent {message_type} with content that Accord cannot read"
            self.add_turn(envelope, "note", title, text=as_text(payload))

    def is_complete(self, turn: Turn) -> bool:
        """Whether the turn is final: a response has ended, tool output has its result."""
        unfinished = (*self._answers.values(), *self._outputs.values())
        return all(turn is not other for other in unfinished)

    def add_turn(self, envelope: WireEnvelope, kind: str, title: str, **more: str) -> Turn:
        """Add a turn by the envelope's sender."""
        turn = Turn(
            kind,
            as_text(envelope.get("ts")),
            as_text(envelope.get("sender")),
            title,
            as_int(envelope.get("seq")),
            fork=as_text(envelope.get("fork")),
            **more,
        )
        self.turns.append(turn)
        return turn

    # Membership

    def on_session_create(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        self.name = as_text(payload.get("name"))
        self._present.add(as_text(envelope.get("sender")))
        self.add_turn(envelope, "note", "opened the session", text=self.name)

    def on_session_join(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        participant = as_object(payload.get("participant"))
        if as_text(participant.get("id")) not in self._present:
            self._joins.add(as_text(envelope.get("id")))

    def on_announce(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        if as_text(envelope.get("ref")) in self._joins:
            member = as_text(payload.get("id"))
            self._present.add(member)
            roles = join_words(as_texts(payload.get("roles")))
            turn = self.add_turn(envelope, "note", f"joined as {roles}")
            turn.who = member
            turn.text = "an agent" if payload.get("type") == "agent" else ""

    def on_session_leave(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        member = as_text(payload.get("participant")) or as_text(envelope.get("sender"))
        self._present.discard(member)
        turn = self.add_turn(envelope, "note", "left", text=as_text(payload.get("reason")))
        turn.who = member

    def on_session_end(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        title = f"ended the session: {as_text(payload.get('final_state'))}"
        self.add_turn(envelope, "note", title, text=as_text(payload.get("reason")))

    def on_config_update(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        changes = as_object(payload.get("changes"))
        settings = [f"{name} = {json.dumps(value)}" for name, value in changes.items()]
        title = f"changed the rules: {join_words(settings)}"
        self.add_turn(envelope, "note", title, text=as_text(payload.get("reason")))

    def on_role_change(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        who = as_text(payload.get("participant"))
        roles = join_words(as_texts(payload.get("new_roles")))
        was_removed = who in self._removed
        title = f"lets {who} back in, as {roles}" if was_removed else f"made {who} {roles}"
        title = title if roles else f"removed {who}"
        self._removed = self._removed - {who} if roles else self._removed | {who}
        self.add_turn(envelope, "note", title, text=as_text(payload.get("reason")))

    # Conversation

    def on_prompt(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        title = f"asks {as_text(payload.get('target_agent'))}"
        self.add_turn(envelope, "prompt", title, text=as_text(payload.get("content")))

    def on_response_start(self, envelope: WireEnvelope, _payload: JsonObject) -> None:
        turn = self.add_turn(envelope, "answer", "answers")
        self._answers[as_text(envelope.get("id"))] = turn

    def on_chunk(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        if turn := self._answers.get(as_text(envelope.get("ref"))):
            turn.text += as_text(payload.get("text"))

    def on_response_end(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        turn = self._answers.pop(as_text(envelope.get("ref")), None)
        reason = as_text(payload.get("finish_reason"))
        if turn and reason in {"interrupted", "error", "max_tokens"}:
            turn.title, turn.mood = f"answers ({reason.replace('_', ' ')})", "bad"

    def on_prompt_amend(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        title = "amends the prompt"
        if reason := as_text(payload.get("reason")):
            title += f" ({reason})"
        self.add_turn(envelope, "prompt", title, text=as_text(payload.get("amendment")))

    def on_thinking_start(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        visible_to = payload.get("visible_to")
        if visible_to in (None, "all"):
            readers = ""
        elif visible_to == "approvers_only":
            readers = " for those who may approve"
        else:
            readers = f" for {join_words(as_texts(visible_to))}"
        turn = self.add_turn(envelope, "thought", f"thinks{readers}")
        self._answers[as_text(envelope.get("id"))] = turn

    def on_thinking_end(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        turn = self._answers.pop(as_text(envelope.get("ref")), None)
        if turn and not turn.text:
            turn.text = as_text(payload.get("summary"))

    # Shared context

    def on_context_add(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        key = as_text(payload.get("key"))
        if envelope.get("sender") == SYSTEM and self._add_system_item(
            envelope, key, payload.get("content")
        ):
            return
        visible_to = as_texts(payload.get("visible_to"))
        readers = f" for {join_words(visible_to)}" if visible_to else ""
        title = f"adds the context {key}{readers}"
        self.add_turn(envelope, "context", title, code=context_excerpt(payload))

    def _add_system_item(self, envelope: WireEnvelope, key: str, content: object) -> bool:
        """Show an item that the server wrote; False if it is none of the known ones."""
        if key.startswith("decision:"):
            return self._add_ruling(envelope, key, as_object(content))
        if key == TASKS_KEY:
            return self._add_tasks(envelope, as_object(content))
        if key.startswith("review:") and isinstance(content, str):
            title = f"{key.removeprefix('review:')} waits for review"
            self.add_turn(envelope, "context", title, text=content, mood="wait")
            return True
        return False

    def _add_ruling(self, envelope: WireEnvelope, key: str, content: JsonObject) -> bool:
        id, _, part = key.removeprefix("decision:").rpartition("#")
        table, items = content.get("table"), content.get("items")
        if part == "convergence" and isinstance(table, str):
            self.add_turn(envelope, "context", f"How far the judges agree on {id}", code=table)
            return True
        if part != "convergence" and isinstance(items, dict):
            lines = [as_text(as_object(item).get("why")) for item in items.values()]
            title = f"The rules decide on {id}"
            self.add_turn(envelope, "context", title, code="\n".join(lines))
            return True
        return False

    def _add_tasks(self, envelope: WireEnvelope, content: JsonObject) -> bool:
        """List the tasks that changed since the last list; False if there is no list of tasks."""
        tasks = content.get("tasks")
        if not isinstance(tasks, list):
            return False
        lines = [task_line(task) for task in tasks]
        changed = [line for line in lines if line not in self._tasks]
        self._tasks = set(lines)
        title = f"The pact has {plural(len(tasks), 'task')}"
        self.add_turn(envelope, "context", title, code="\n".join(changed))
        return True

    def on_context_update(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        self.add_turn(
            envelope,
            "context",
            f"changes the context {as_text(payload.get('key'))}",
            text=as_text(payload.get("reason")),
            code=context_excerpt(payload),
        )

    def on_context_remove(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        key = as_text(payload.get("key"))
        title = f"removes the context {key}"
        if envelope.get("sender") == SYSTEM and key.startswith("review:"):
            title = f"{key.removeprefix('review:')} no longer waits for review"
        elif envelope.get("sender") == SYSTEM and key == TASKS_KEY:
            title = "The pact is no longer shown here"
            self._tasks = set()
        self.add_turn(envelope, "note", title, text=as_text(payload.get("reason")))

    def on_secret_share(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        scope = join_words(as_texts(payload.get("scope")))
        title = f"shares the secret {as_text(payload.get('key'))} with {scope}"
        self.add_turn(envelope, "note", title)

    def on_secret_revoke(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        key = as_text(payload.get("key"))
        title = f"revokes the secret {key}"
        if envelope.get("sender") == SYSTEM:
            title = f"The secret {key} is no longer valid"
        self.add_turn(envelope, "note", title, text=as_text(payload.get("reason")))

    # Interrupts

    def on_interrupt(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        target = as_text(payload.get("target")) or "every agent"
        urgency = as_text(payload.get("urgency"))
        demand = "stop everything (emergency)" if urgency == "emergency" else urgency
        parts = (as_text(payload.get("message")), as_text(payload.get("inject_context")))
        text = "\n".join(filter(None, parts))
        self.add_turn(envelope, "interrupt", f"tells {target} to {demand}", text=text, mood="bad")

    def on_interrupt_acknowledge(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        titles = {"paused": "has paused", "stopped": "has stopped", "ignored": "continues anyway"}
        title = titles.get(as_text(payload.get("action_taken")), "has received the interrupt")
        self.add_turn(envelope, "note", title, text=as_text(payload.get("ignore_reason")))

    # Forks and merges

    def on_fork_create(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        members = as_texts(payload.get("participants"))
        others = [member for member in members if member != envelope.get("sender")]
        company = f" with {join_words(others)}" if others else ""
        name = as_text(envelope.get("fork")) or as_text(payload.get("name"))
        reason = as_text(payload.get("reason"))
        self.add_turn(envelope, "note", f"opens the fork {name}{company}", text=reason).fork = ""

    def on_fork_switch(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        title = f"switches to {as_text(payload.get('target_fork')) or 'main'}"
        self.add_turn(envelope, "note", title)

    def on_merge_propose(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        source = as_text(payload.get("source_fork"))
        target = as_text(payload.get("target_fork")) or "main"
        self._merges[as_text(envelope.get("id"))] = source
        title = f"proposes to merge {source} into {target} ({as_text(payload.get('strategy'))})"
        self.add_turn(envelope, "merge", title, text=as_text(payload.get("summary"))).fork = ""

    def on_merge_execute(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        source = self._merges.get(as_text(payload.get("merge_proposal")), "the fork")
        resolved = [
            f"{as_text(conflict.get('conflict_id'))}: {as_text(conflict.get('resolution'))}"
            for conflict in map(as_object, as_items(payload.get("resolved_conflicts")))
        ]
        title = f"merges {source}"
        turn = self.add_turn(envelope, "merge", title, text=join_words(resolved), mood="good")
        turn.fork = ""

    # Tools and gates

    def on_tool_propose(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        name = as_text(payload.get("tool_name"))
        self._tools[as_text(envelope.get("id"))] = name
        risk, category = as_text(payload.get("risk_level")), as_text(payload.get("category"))
        self.add_turn(
            envelope,
            "proposal",
            f"proposes {name} ({category}, {risk} risk)",
            text=as_text(payload.get("description")),
            code=render_invocation(payload.get("arguments")),
            mood="bad" if risk in {"high", "critical"} else "",
        )

    def on_gate_request(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        id = as_text(envelope.get("id"))
        tool = self._tools.get(as_text(payload.get("action_ref")))
        self._gates[id] = tool or as_text(payload.get("action_type"))
        seconds = as_int(payload.get("timeout_seconds"))
        self._limits[id] = (as_text(envelope.get("ts")), seconds)
        within = f", within {format_duration(seconds)}" if seconds else ""
        title = f"The gate needs {describe_quorum(payload.get('quorum'))}{within}"
        ruling = payload.get("decision")
        if envelope.get("sender") != SYSTEM:
            text = as_text(payload.get("message"))
        else:
            text = f"By the rules of {describe_verdict(as_object(ruling))}" if ruling else ""
        self.add_turn(envelope, "gate", title, text=text, mood="wait")

    def on_approve(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        title = f"approves {self._subject(payload)}".rstrip()
        text = as_text(payload.get("comment"))
        self.add_turn(envelope, "vote", title, text=text, mood="good")

    def on_reject(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        is_granted = as_text(payload.get("tool_proposal")) in self._granted
        verb = "takes back the approval of" if is_granted else "rejects"
        title = f"{verb} {self._subject(payload)}".rstrip()
        self.add_turn(envelope, "vote", title, text=as_text(payload.get("reason")), mood="bad")

    def _subject(self, payload: JsonObject) -> str:
        gate = self._gates.get(as_text(payload.get("gate")), "")
        return self._tools.get(as_text(payload.get("tool_proposal")), gate)

    def on_gate_timeout(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        gate = as_text(payload.get("gate"))
        received = as_int(payload.get("approvals_received"))
        required = as_int(payload.get("approvals_required"))
        opened_at, limit = self._limits.get(gate, ("", 0))
        closed_early = is_before_timeout(opened_at, limit, as_text(envelope.get("ts")))
        outcome = f"time is up, {as_text(payload.get('resolution'))}"
        why = "closed with the session" if closed_early else outcome
        subject = self._gates.get(gate, "")
        title = f"{subject}: {why} ({received} of {plural(required, 'approval')})"
        self.add_turn(envelope, "vote", title.removeprefix(": "), mood="bad")

    def on_tool_execute(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        if envelope.get("sender") != SYSTEM:
            return
        self._granted.add(as_text(payload.get("tool_proposal")))
        name = self._tool_name(payload)
        approvers = join_words(as_texts(payload.get("approved_by")))
        why = f"approved by {approvers}" if approvers else "no gate needed"
        self.add_turn(envelope, "grant", f"{name} may run, {why}", mood="good")

    def on_tool_output(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        proposal = as_text(payload.get("tool_proposal"))
        if proposal not in self._outputs:
            title = f"runs {self._tool_name(payload)}"
            self._outputs[proposal] = self.add_turn(envelope, "output", title)
        self._outputs[proposal].code += as_text(payload.get("text"))

    def on_tool_result(self, envelope: WireEnvelope, payload: JsonObject) -> None:
        self._outputs.pop(as_text(payload.get("tool_proposal")), None)
        name = self._tool_name(payload)
        took = format_duration(min(as_int(payload.get("duration_ms")), MAX_SPAN_S * 1000) / 1000)
        succeeded = bool(payload.get("success"))
        title = f"finished {name} in {took}" if succeeded else f"failed at {name} after {took}"
        mood = "good" if succeeded else "bad"
        self.add_turn(envelope, "result", title, text=as_text(payload.get("error")), mood=mood)

    def _tool_name(self, payload: JsonObject) -> str:
        return self._tools.get(as_text(payload.get("tool_proposal")), "it")


MessageHandler = Callable[[Timeline, WireEnvelope, JsonObject], None]

HANDLERS_BY_TYPE: dict[str, MessageHandler] = {
    "session.create": Timeline.on_session_create,
    "session.join": Timeline.on_session_join,
    "session.leave": Timeline.on_session_leave,
    "session.end": Timeline.on_session_end,
    "session.config_update": Timeline.on_config_update,
    "participant.announce": Timeline.on_announce,
    "participant.role_change": Timeline.on_role_change,
    "prompt.submit": Timeline.on_prompt,
    "prompt.amend": Timeline.on_prompt_amend,
    "thinking.start": Timeline.on_thinking_start,
    "thinking.chunk": Timeline.on_chunk,
    "thinking.end": Timeline.on_thinking_end,
    "context.add": Timeline.on_context_add,
    "context.update": Timeline.on_context_update,
    "context.remove": Timeline.on_context_remove,
    "secret.share": Timeline.on_secret_share,
    "secret.revoke": Timeline.on_secret_revoke,
    "interrupt.raise": Timeline.on_interrupt,
    "interrupt.acknowledge": Timeline.on_interrupt_acknowledge,
    "fork.create": Timeline.on_fork_create,
    "fork.switch": Timeline.on_fork_switch,
    "merge.propose": Timeline.on_merge_propose,
    "merge.execute": Timeline.on_merge_execute,
    "response.start": Timeline.on_response_start,
    "response.chunk": Timeline.on_chunk,
    "response.end": Timeline.on_response_end,
    "tool.propose": Timeline.on_tool_propose,
    "tool.approve": Timeline.on_approve,
    "tool.reject": Timeline.on_reject,
    "tool.execute": Timeline.on_tool_execute,
    "tool.output": Timeline.on_tool_output,
    "tool.result": Timeline.on_tool_result,
    "gate.request": Timeline.on_gate_request,
    "gate.approve": Timeline.on_approve,
    "gate.reject": Timeline.on_reject,
    "gate.timeout": Timeline.on_gate_timeout,
}


def task_line(task: object) -> str:
    """`T1  in progress  owner → reviewer`; a task of another shape as JSON."""
    id, pact = as_object(task).get("id"), as_object(as_object(task).get("pact"))
    status, owner, reviewer = (pact.get(name) for name in ("status", "owner", "reviewer"))
    if not (isinstance(id, str) and isinstance(status, str)):
        return as_text(task)
    return f"{id:12} {status.replace('_', ' '):18} {as_text(owner)} → {as_text(reviewer)}"


def context_excerpt(payload: JsonObject) -> str:
    """The content of a context item, its change, or where the content is stored."""
    content = payload.get("content") or payload.get("new_content") or payload.get("diff")
    if content is None:
        ref = as_object(payload.get("content_ref") or payload.get("new_content_ref"))
        location = as_text(ref.get("uri")) or as_text(ref.get("hash"))
        return f"{location} ({as_text(ref.get('mime_type'))})"
    return as_listing(content)


def turns_of(envelopes: Iterable[WireEnvelope]) -> list[Turn]:
    """All turns of a conversation."""
    timeline = Timeline()
    for envelope in envelopes:
        timeline.add(envelope)
    return timeline.turns
