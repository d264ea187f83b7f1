"""The audits' own model of a room: members, gates, proposals and quorums."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

APPROVING_ROLES = {"navigator", "adversary", "approver", "admin"}


@dataclass
class AuditedMember:
    """A member as the audit knows it."""

    kind: str
    roles: frozenset[str]
    capabilities: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()
    presence: str = "active"
    role_changed: bool = False

    @property
    def can_approve(self) -> bool:
        """Whether this member's vote can count."""
        return self.kind == "human" and self.has_right("approve", APPROVING_ROLES)

    @property
    def participates(self) -> bool:
        """Whether the room waits for this member."""
        return bool(self.roles - {"observer"}) or self.has_right("approve", APPROVING_ROLES)

    def has_right(self, capability: str, roles: set[str]) -> bool:
        """Whether a role or a capability gives the right."""
        return bool(self.roles & roles) or capability in self.capabilities


@dataclass
class AuditedGate:
    """An open gate."""

    action: str
    initiator: str
    quorum: dict[str, Any]
    barred: frozenset[str]
    electorate: frozenset[str]
    expires: int | None
    policy: str
    type: str
    risky: bool
    enrolled: bool = False
    yes: set[str] = field(default_factory=set)
    departed_voters: dict[str, AuditedMember] = field(default_factory=dict)


@dataclass
class AuditedTool:
    """A proposal that has not ended."""

    agent: str
    risky: bool
    grant: str | None = None
    expires: int = 0
    started: bool = False


class WireRecord(NamedTuple):
    """A record with a wire form."""

    id: str
    version: int
    to: frozenset[str] | None
    leaves: str | None


class ExpectedRecord(NamedTuple):
    """A record that must follow immediately."""

    cause: str
    kind: str
    about: str


class AuditedRecord(NamedTuple):
    """A stored record, decoded."""

    id: str
    actor: str
    stored: dict[str, Any]
    said: dict[str, Any]
    fact: dict[str, Any]

    @property
    def payload(self) -> dict[str, Any]:
        """The payload of its message."""
        payload: dict[str, Any] = self.said["payload"]
        return payload

    @property
    def cause(self) -> str:
        """The id of the message that caused it."""
        cause: str = self.stored.get("cause") or self.id
        return cause


def leaf_rules(quorum: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rules of a quorum without combinations."""
    if quorum["type"] == "all_of":
        for rule in quorum["rules"]:
            yield from leaf_rules(rule)
    else:
        yield quorum


def rule_matches(rule: dict[str, Any], person: AuditedMember) -> bool:
    """Whether the rule is about members like this one."""
    if rule["type"] == "role":
        return rule["role"] in person.roles
    if rule["type"] == "label":
        return rule["label"] in person.labels
    return True


def rule_satisfied(
    rule: dict[str, Any], able: dict[str, AuditedMember], yes: set[str], roll: frozenset[str]
) -> bool:
    """Whether these votes satisfy one rule."""
    match rule["type"]:
        case "any" | "role" | "label":
            return sum(rule_matches(rule, able[seat]) for seat in yes) >= int(rule["count"])
        case "specific":
            return set(rule["participants"]) <= yes
        case "all":
            return bool(roll) and roll <= yes
        case "majority":
            return bool(roll) and 2 * len(roll & yes) > len(roll)
        case other:
            raise AssertionError(other)
