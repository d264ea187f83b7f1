"""What the server finds a reported call to be, beside what its agent claims."""

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from accord.core.kernel.context import Command
from accord.core.kernel.refusal import Reason, Refused
from accord.core.room.approval.gates import NEVER_AUTO_CATEGORIES
from accord.core.room.room_settings import CallRules, Category
from accord.core.room.state import ComputedClass, Risk, Room, without_keys

if TYPE_CHECKING:
    from accord.core.room.approval.tool_proposals import ToolPropose

# In the metadata of a proposal: a hook or executor saw this call, and what the server made of it.
REPORTED_KEY, COMPUTED_KEY = "reported", "computed"
KEYS = frozenset({REPORTED_KEY, COMPUTED_KEY})
RISKS = tuple(Risk)


class ShownClass(msgspec.Struct, frozen=True):
    """`metadata.computed`: what the server found, and what the agent claimed."""

    category: Category
    risk_level: Risk
    explanation: str
    policy: str | None
    claimed_category: Category
    claimed_risk_level: Risk


def compute(room: Room, command: Command, body: "ToolPropose") -> ComputedClass | None:
    """The class of a reported call; None for a call that only its agent describes.

    Raises Refused for a call that agents may never make.
    """
    metadata = body.metadata or {}
    if COMPUTED_KEY in metadata:
        detail = f"Leave out metadata.{COMPUTED_KEY}; the server fills it in"
        raise Refused(Reason.MALFORMED, detail)
    rules: CallRules | None = command.policy.call_rules
    if rules is None:
        return None
    return rules.judge(room.workspace, body.tool_name, body.arguments, metadata)


def with_computed(body: "ToolPropose", computed: ComputedClass) -> "ToolPropose":
    """The proposal with the computed category and risk, which the agent's claim can only raise."""
    claims_more = _gravity(body.category) > _gravity(computed.category)
    shown = ShownClass(
        category=computed.category,
        risk_level=computed.risk,
        explanation=computed.explanation,
        policy=computed.policy or None,
        claimed_category=body.category,
        claimed_risk_level=body.risk_level,
    )
    return replace(
        body,
        category=body.category if claims_more else computed.category,
        risk_level=max(body.risk_level, computed.risk, key=RISKS.index),
        metadata={**(body.metadata or {}), COMPUTED_KEY: msgspec.to_builtins(shown)},
    )


def _gravity(category: Category) -> int:
    """A read, what may be approved beforehand, and what may not."""
    return 0 if category is Category.FILE_READ else 2 if category in NEVER_AUTO_CATEGORIES else 1


def without_computed(said: "ToolPropose") -> "ToolPropose":
    """The proposal as its agent sent it."""
    metadata = said.metadata or {}
    try:
        shown = msgspec.convert(metadata.get(COMPUTED_KEY), ShownClass)
    except msgspec.ValidationError:  # an agent wrote it before the key had a meaning, or none did
        return said
    return replace(
        said,
        category=shown.claimed_category,
        risk_level=shown.claimed_risk_level,
        metadata=without_keys(metadata, COMPUTED_KEY),
    )
