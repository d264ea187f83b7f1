"""What a timeline knows so far: its turns, and what later messages refer to."""

from collections.abc import Callable

import msgspec

from accord.show.foreign_json import JsonObject, as_int, as_text
from accord.show.text import strip_styles

SYSTEM = "system"

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


class TimelineState:
    """The turns, in the order in which they began, and what later messages refer to."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.name = ""
        self.answers: dict[str, Turn] = {}  # responses and thinking that have not ended
        self.outputs: dict[str, Turn] = {}  # of tools without a result yet, by proposal
        self.tools: dict[str, str] = {}  # the tool of each proposal
        self.granted: set[str] = set()  # proposals
        self.removed: frozenset[str] = frozenset()
        self.gates: dict[str, str] = {}  # the tool or action of each gate
        self.limits: dict[str, tuple[str, int]] = {}  # of gates: opened at, seconds
        self.present: set[str] = set()
        self.joins: set[str] = set()  # ids of the messages
        self.merges: dict[str, str] = {}  # the source of each proposed merge
        self.tasks: set[str] = set()  # lines of the task list shown last

    def is_complete(self, turn: Turn) -> bool:
        """Whether the turn is final: a response has ended, tool output has its result."""
        unfinished = (*self.answers.values(), *self.outputs.values())
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


MessageHandler = Callable[[TimelineState, WireEnvelope, JsonObject], None]
