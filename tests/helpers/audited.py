"""What an audit knows of a room: its people, gates and tools, and when a quorum has enough."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

APPROVING = {"navigator", "adversary", "approver", "admin"}


@dataclass
class Person:
    """A member."""

    kind: str
    roles: frozenset[str]
    capabilities: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    presence: str = "active"
    settled: bool = False

    @property
    def approves(self) -> bool:
        """Whether this person's yes can count."""
        return self.kind == "human" and self.may("approve", APPROVING)

    @property
    def takes_part(self) -> bool:
        """Whether the room waits for this person."""
        return bool(self.roles - {"observer"}) or self.may("approve", APPROVING)

    def may(self, capability: str, roles: set[str]) -> bool:
        """By a role or beside all roles."""
        return bool(self.roles & roles) or capability in self.capabilities


@dataclass
class Gate:
    """An open question."""

    action: str
    initiator: str
    quorum: dict[str, Any]
    barred: frozenset[str]
    roll: frozenset[str]
    expires: int | None
    policy: str
    type: str
    risky: bool
    enrolled: bool = False
    yes: set[str] = field(default_factory=set)
    gone: dict[str, Person] = field(default_factory=dict)


@dataclass
class Tool:
    """A proposal that is not over."""

    agent: str
    risky: bool
    grant: str | None = None
    expires: int = 0
    started: bool = False


class Heard(NamedTuple):
    """A record that has a form on the wire."""

    id: str
    version: int
    to: frozenset[str] | None
    leaves: str | None


class Next(NamedTuple):
    """What has to follow at once."""

    cause: str
    kind: str
    about: str


class Entry(NamedTuple):
    """A record as it is stored."""

    id: str
    actor: str
    stored: dict[str, Any]
    said: dict[str, Any]
    fact: dict[str, Any]

    @property
    def payload(self) -> dict[str, Any]:
        """What was said."""
        payload: dict[str, Any] = self.said["payload"]
        return payload

    @property
    def cause(self) -> str:
        """The message that led to it."""
        cause: str = self.stored.get("cause") or self.id
        return cause


def leaves(quorum: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The plain rules in a quorum."""
    if quorum["type"] == "all_of":
        for rule in quorum["rules"]:
            yield from leaves(rule)
    else:
        yield quorum


def fits(rule: dict[str, Any], person: Person) -> bool:
    """Whether the rule asks for people like this one."""
    if rule["type"] == "role":
        return rule["role"] in person.roles
    if rule["type"] == "label":
        return rule["label"] in person.labels
    return True


def enough(
    rule: dict[str, Any], able: dict[str, Person], yes: set[str], roll: frozenset[str]
) -> bool:
    """Whether these yeses satisfy one plain rule."""
    match rule["type"]:
        case "any" | "role" | "label":
            return sum(fits(rule, able[seat]) for seat in yes) >= int(rule["count"])
        case "specific":
            return set(rule["participants"]) <= yes
        case "all":
            return bool(roll) and roll <= yes
        case "majority":
            return bool(roll) and 2 * len(roll & yes) > len(roll)
        case other:
            raise AssertionError(other)
