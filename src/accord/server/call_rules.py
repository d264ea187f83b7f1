"""Classes reported calls with the signed policy of their repository."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from accord.core.kernel.refusal import Reason, Refused
from accord.core.people.state import People
from accord.core.policy.call_classification import classify
from accord.core.policy.policy_toml import NO_POLICY, Policy, PolicyError, parse_policy
from accord.core.policy.reported_call import ReportedCall, reported_of
from accord.core.room.approval.gates import possible_categories
from accord.core.room.room_settings import Category
from accord.core.room.state import ComputedClass

# What a call of this kind does anyway; other categories that a tool's name suggests are kept.
NAMED_BY_KIND = {
    "shell": Category.SHELL_EXECUTE,
    "write": Category.FILE_WRITE,
    "patch": Category.FILE_WRITE,
    "read": Category.FILE_READ,
}
MAX_EXPLANATION = 1024


class SignedCallRules:
    """The rules of the newest signed policies, as the log has them."""

    def __init__(self, people: Callable[[], People]) -> None:
        self._people = people

    def judge(
        self, workspace: str, tool: str, arguments: Mapping[str, Any], metadata: Mapping[str, Any]
    ) -> ComputedClass:
        """What a reported call is; without a signed policy all but reads has to be gated."""
        from accord.shell_parser import parse_shell  # only servers that see such calls load it

        try:
            reported = reported_of(metadata)
        except msgspec.ValidationError as error:
            raise Refused(Reason.MALFORMED, f"metadata.reported is malformed: {error}") from None
        if reported is None:
            raise Refused(Reason.MALFORMED, "metadata.reported must be an object")
        signed = self._people().policy_of(workspace, reported.repository)
        policy = NO_POLICY if signed is None else policy_of_text(signed.text)
        call = ReportedCall(reported.kind, tool, arguments, reported.place)
        found = classify(call, policy, parse_shell)
        if found.refusal:
            detail = f"Agents may not do this, and no approval changes that: {found.refusal}"
            raise Refused(Reason.FORBIDDEN, detail)
        own = NAMED_BY_KIND.get(reported.kind, Category.FILE_READ)
        named = possible_categories(tool, own) - {own}
        return ComputedClass(
            category=found.category,
            risk=found.risk,
            explanation=found.explanation[:MAX_EXPLANATION],
            categories=tuple(sorted({*found.categories, *named})),
            repository=reported.repository,
            policy=signed.digest if signed is not None and policy.signed else "",
            subjects=found.subjects,
            must_be_gated=not policy.signed and not found.is_read,
        )


@lru_cache(maxsize=64)
def policy_of_text(text: str) -> Policy:
    """The policy; a text that an older version accepted and this one does not counts as absent."""
    try:
        return parse_policy(text)
    except PolicyError:
        return NO_POLICY
