"""Any bytes as a series of choices, and out of them payloads that are nearly right."""

from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import inspect

from accord.core.dialects.pvp import BODIES
from tests.fuzz.mutation import VALUES

Thing = TypeVar("Thing")

SEATS = ("alice", "bob", "carol", "dave", "claude", "codex", "mallory", "system")
TEXTS = ("k0", "k1", "text", "@@ -1 +1 @@\n-text\n+more\n", "session:tasks", "env:XYZZY")
# Which ids a field usually names.
NAMES = {
    "gate": "gate.request",
    "tool_proposal": "tool.propose",
    "prompt_ref": "prompt.submit",
    "original_prompt": "prompt.submit",
    "interrupt": "interrupt.raise",
    "merge_proposal": "merge.propose",
    "action_ref": "tool.propose",
    "from_point": "prompt.submit",
    "source_fork": "fork",
    "target_fork": "fork",
    "fork": "fork",
    "grant": "grant",
    "key": "key",
    "context_keys": "key",
    "seat": "seat",
    "scope": "seat",
    "visible_to": "seat",
}
SPOKEN = sorted(BODIES)
FORMS = {name: inspect.type_info(body) for name, body in BODIES.items()}
# From here on a byte asks for something odd.
ODD = 248
USUAL: dict[str, Any] = {"v": 1, "ts": "2026-01-30T20:00:00.000Z"}
ME = {"agent", "approver", "rejector", "participant", "by", "changed_by", "id", "contributors"}


class Draw:
    """Choices, one byte each; past the end every choice is the first."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    @property
    def more(self) -> bool:
        """Whether anything is left to choose by."""
        return self.place < len(self.data)

    def byte(self) -> int:
        """The next choice."""
        self.place += 1
        return self.data[self.place - 1] if self.place <= len(self.data) else 0

    def pick(self, things: Sequence[Thing]) -> Thing:
        """One of these."""
        return things[self.byte() % len(things)]

    def raw(self) -> bytes:
        """Some bytes as they are."""
        size = self.byte() * 4
        self.place += size
        return self.data[self.place - size : self.place]


class Speech:
    """Payloads out of choices: mostly of the right form, about what there is."""

    def __init__(self, draw: Draw, ids: dict[str, list[str]]) -> None:
        self.draw = draw
        self.ids = ids

    def payload(self, name: str, me: str) -> Any:
        """A payload of that type."""
        return self._value(FORMS[name], me, name)

    def id(self, field: str, me: str) -> str:
        """What such a field may name: myself, somebody, or something that was said lately."""
        if field in ME:
            return self.draw.pick((me, me, me, *SEATS))
        known = self.ids.get(NAMES.get(field, field), [])
        if not known:
            return self.draw.pick((*SEATS, *TEXTS))
        return known[-1 - self.draw.byte() % len(known)]

    def _value(self, kind: inspect.Type, me: str, field: str) -> Any:
        choice = self.draw.byte()
        if choice >= ODD:
            return self.draw.pick(VALUES)
        match kind:
            case inspect.StructType(fields=fields):
                return self._struct(kind, fields, me)
            case inspect.UnionType(types=kinds):
                return self._value(kinds[choice % len(kinds)], me, field)
            case inspect.CollectionType(item_type=each):
                return [self._value(each, me, field) for _ in range(choice % 4)]
            case inspect.DictType():
                return {self.draw.pick(TEXTS): self.draw.pick(VALUES) for _ in range(choice % 3)}
            case inspect.LiteralType(values=values):
                return values[choice % len(values)]
            case inspect.EnumType(cls=cls):
                words = [each.value for each in cls]
                return words[choice % len(words)]
            case inspect.StrType():
                return self.id(field, me)
            case inspect.BoolType():
                return choice % 2 == 1
            case inspect.IntType():
                return (0, 1, 2, 5, 30, 300, 86_400)[choice % 7]
            case _:
                return None if choice % 2 else self.draw.pick(VALUES)

    def _struct(self, kind: inspect.StructType, fields: Any, me: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if kind.tag_field is not None:
            made[kind.tag_field] = kind.tag
        for each in fields:
            if each.required or self.draw.byte() % 2:
                made[each.encode_name] = self._value(each.type, me, each.encode_name)
        return made
