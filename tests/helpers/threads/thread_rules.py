"""The rules of a thread without an engine: each command is decided and folded at once."""

from itertools import count
from typing import Any

from accord.core.kernel.actor import Actor, CredentialRights
from accord.core.kernel.context import Command
from accord.core.kernel.ids import SYSTEM
from accord.core.kernel.messages import Body, Message
from accord.core.kernel.records import Event, Record
from accord.core.kernel.role_permissions import Kind, ThreadRole
from accord.core.kernel.timestamps import to_iso
from accord.core.room.threads import CONTEXT
from accord.core.room.threads.state import MessageKind, Thread, ThreadStatus, ThreadType
from accord.core.room.threads.thread_creation import ThreadCreate
from accord.core.room.threads.thread_posts import ThreadPost
from accord.core.room.threads.thread_status import ThreadSetStatus

T0 = 1_770_000_000_000


def agent(name: str, role: ThreadRole = ThreadRole.WORKER, workspace: str = "default") -> Actor:
    """An agent with a credential; an operator is a human."""
    kind = Kind.HUMAN if role is ThreadRole.OPERATOR else Kind.AGENT
    return Actor(name, kind, f"run-{name}", workspace, CredentialRights(), None, role)


WORKER, OTHER = agent("worker"), agent("other")
REVIEWER = agent("reviewer", ThreadRole.REVIEWER)
ORCHESTRATOR = agent("lead", ThreadRole.ORCHESTRATOR)
OPERATOR = agent("olga", ThreadRole.OPERATOR)
OUTSIDER = agent("outsider")
SERVER = Actor(f"{SYSTEM}:timer", Kind.SYSTEM)


class ThreadRules:
    """A thread of worker, other and reviewer."""

    def __init__(self, *, created: bool = True) -> None:
        self.state: Thread = CONTEXT.initial_state("thread/th_1")
        self.records: list[Record] = []
        self._ids = count(1)
        if created:
            self.create()

    def create(self, by: Actor = WORKER, **more: Any) -> None:
        wanted: dict[str, Any] = {
            "workspace": by.workspace,
            "title": "Review",
            "thread_type": ThreadType.WORKFLOW,
            "participants": ("worker", "other", "reviewer"),
        }
        self.do(by, ThreadCreate(**(wanted | more)))

    def do(self, actor: Actor, body: Body, ref: str | None = None) -> Record:
        """Decide and fold one command; raises Refused."""
        id, at = f"m{next(self._ids)}", T0 + len(self.records)
        sender = SYSTEM if actor.kind is Kind.SYSTEM else actor.principal
        message = Message(id, to_iso(at), self.state.id, sender, body, ref)
        command = Command(message, actor, at, {}, None)
        CONTEXT.admit(self.state, command)
        [event] = tuple(CONTEXT.decide[type(body)](self.state, command, body))
        assert isinstance(event, Event)
        said = getattr(event, "said", None)
        seq = 0 if said is None else self.state.last_seq + 1
        place = ("thread/th_1", len(self.records) + 1, seq, id, at, actor.principal, id)
        record = Record(*place, to_iso(at), sender, event, said, ref)
        self.state = CONTEXT.evolve[type(event)](self.state, event, record)
        self.records.append(record)
        return record

    def chat(self, actor: Actor, text: str = "hello", **metadata: Any) -> Record:
        return self.do(actor, ThreadPost(MessageKind.CHAT, text, metadata or None))

    def event(
        self, actor: Actor, event_type: str, ref: str | None = None, **metadata: Any
    ) -> Record:
        named = {"event_type": event_type, **metadata}
        return self.do(actor, ThreadPost(MessageKind.EVENT, f"about {event_type}", named), ref)

    def set(self, actor: Actor, status: ThreadStatus, reason: str = "", **more: Any) -> Record:
        return self.do(actor, ThreadSetStatus(status, reason, **more))
