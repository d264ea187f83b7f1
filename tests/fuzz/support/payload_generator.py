"""Any bytes as a series of choices, and out of them payloads that are nearly right."""

from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec import inspect

from accord.core.dialects.pvp import BODIES
from tests.fuzz.support.json_mutation import ODD_VALUES

Thing = TypeVar("Thing")

PRINCIPALS = ("alice", "bob", "carol", "dave", "claude", "codex", "mallory", "system")
SAMPLE_TEXTS = ("k0", "k1", "text", "@@ -1 +1 @@\n-text\n+more\n", "session:tasks", "env:XYZZY")
# Which ids a field usually names.
ID_FIELDS = {
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
MESSAGE_TYPES = sorted(BODIES)
TYPE_INFO = {name: inspect.type_info(body) for name, body in BODIES.items()}
# From here on a byte asks for something odd.
ODD_VALUE_THRESHOLD = 248
ENVELOPE_DEFAULTS: dict[str, Any] = {"v": 1, "ts": "2026-01-30T20:00:00.000Z"}
SENDER_FIELDS = {
    "agent",
    "approver",
    "rejector",
    "participant",
    "by",
    "changed_by",
    "id",
    "contributors",
}


class ByteChoices:
    """Choices, one byte each; past the end every choice is the first."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    @property
    def has_more(self) -> bool:
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


class PayloadGenerator:
    """Payloads out of choices: mostly of the right form, about what there is."""

    def __init__(self, draw: ByteChoices, ids: dict[str, list[str]]) -> None:
        self.draw = draw
        self.ids = ids

    def payload(self, name: str, me: str) -> Any:
        """A payload of that type."""
        return self._value(TYPE_INFO[name], me, name)

    def id(self, field: str, me: str) -> str:
        """What such a field may name: myself, somebody, or something that was said lately."""
        if field in SENDER_FIELDS:
            return self.draw.pick((me, me, me, *PRINCIPALS))
        known = self.ids.get(ID_FIELDS.get(field, field), [])
        if not known:
            return self.draw.pick((*PRINCIPALS, *SAMPLE_TEXTS))
        return known[-1 - self.draw.byte() % len(known)]

    def _value(self, kind: inspect.Type, me: str, field: str) -> Any:
        choice = self.draw.byte()
        if choice >= ODD_VALUE_THRESHOLD:
            return self.draw.pick(ODD_VALUES)
        match kind:
            case inspect.StructType(fields=fields):
                return self._struct(kind, fields, me)
            case inspect.UnionType(types=kinds):
                return self._value(kinds[choice % len(kinds)], me, field)
            case inspect.CollectionType(item_type=each):
                return [self._value(each, me, field) for _ in range(choice % 4)]
            case inspect.DictType():
                return {
                    self.draw.pick(SAMPLE_TEXTS): self.draw.pick(ODD_VALUES)
                    for _ in range(choice % 3)
                }
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
                return None if choice % 2 else self.draw.pick(ODD_VALUES)

    def _struct(self, kind: inspect.StructType, fields: Any, me: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if kind.tag_field is not None:
            made[kind.tag_field] = kind.tag
        for each in fields:
            if each.required or self.draw.byte() % 2:
                made[each.encode_name] = self._value(each.type, me, each.encode_name)
        return made
