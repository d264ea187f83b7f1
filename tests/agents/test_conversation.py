"""The conversation that a model is shown: in order, in its fork, and bounded."""

from accord.agents.conversation import LEFT_OUT, Conversation
from accord.agents.providers.model import AssistantText, UserText
from accord.client import Envelope
from accord.core.kernel.messages import Body
from accord.core.room.approval.grants import ToolReject
from accord.core.room.approval.tool_proposals import ToolPropose, ToolResult
from accord.core.room.conversation.prompts import PromptAmend, PromptSubmit
from accord.core.room.conversation.responses import ResponseChunk, ResponseEnd, ResponseStart
from accord.core.room.room_settings import Category
from accord.core.room.shared_context.context_items import ContextAdd
from accord.core.room.state import Risk


class Talk:
    """Messages for a conversation, numbered."""

    def __init__(self) -> None:
        self.seen = Conversation("claude")
        self.count = 0

    def __call__(self, sender: str, body: Body, ref: str | None = None) -> str:
        self.count += 1
        id = f"m{self.count}"
        self.seen.receive(Envelope(id=id, ts="", session="s", sender=sender, body=body, ref=ref))
        return id

    def prompt(self, text: str, agent: str = "claude") -> str:
        return self("alice", PromptSubmit(text, agent, ("alice",), ()))

    def answer(self, agent: str, prompt: str, *chunks: str) -> None:
        stream = self(agent, ResponseStart(agent, prompt))
        for chunk in chunks:
            self(agent, ResponseChunk(chunk), stream)
        self(agent, ResponseEnd("complete"), stream)


def call(talk: Talk, *argv: str) -> str:
    arguments = {"argv": list(argv), "command": " ".join(argv)}
    body = ToolPropose(
        "shell", arguments, "claude", Risk.LOW, "", requires_approval=False, category=Category.ALL
    )
    return talk("claude", body)


def test_words_of_everybody_in_order() -> None:
    talk = Talk()
    first = talk.prompt("First")
    talk.answer("claude", first, "I ", "see.")
    other = talk.prompt("Review it", "codex")
    talk.answer("codex", other, "Fine.")
    talk("bob", ContextAdd("chat:1", "text", "Hello", tags=("chat",)))
    talk("alice", PromptAmend(first, "More", ""))
    last = talk.prompt("Last")

    assert talk.seen.before(last, None) == (
        UserText("alice: First"),
        AssistantText("I see."),
        UserText("alice to codex: Review it"),
        UserText("codex answered: Fine."),
        UserText("bob said: Hello"),
        UserText("alice added: More"),
    )


def test_own_calls_and_what_became_of_them() -> None:
    talk = Talk()
    talk.prompt("Go")
    talk("claude", ToolResult(call(talk, "ls"), success=True, duration_ms=1))
    talk("claude", ToolResult(call(talk, "cat"), success=False, duration_ms=1, error="exit 1"))
    talk("alice", ToolReject(call(talk, "rm", "x"), "alice", "no"))

    (_, own) = talk.seen.before(talk.prompt("Next"), None)
    assert own == AssistantText(
        "[ran shell ls; it succeeded]\n[ran shell cat; it failed: exit 1]\n"
        "[shell rm x was rejected: no]"
    )


def test_old_parts_are_left_out() -> None:
    talk = Talk()
    for number in range(40):
        talk.prompt(f"{number} " + "x" * 9000)
    entries = talk.seen.before(talk.prompt("Last"), None)

    assert entries[0] == UserText(LEFT_OUT)
    assert len(entries) == 8
    assert isinstance(entries[-1], UserText)
    assert entries[-1].text.startswith("alice: 39 ")


def test_memory_is_bounded() -> None:
    talk = Talk()
    for number in range(9000):
        talk("claude", ResponseStart("claude", "p"))
        talk.prompt(str(number))

    assert len(talk.seen._remarks) == 2000
    assert len(talk.seen._streams) == 256
    assert len(talk.seen._places) <= 8000
