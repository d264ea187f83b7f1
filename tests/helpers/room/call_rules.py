"""A server whose rules find every reported call to be what the test says."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from accord.core.room.room_settings import Category, ServerPolicy
from accord.core.room.state import CallSubject, ComputedClass, Risk
from tests.helpers.room.scenario import DEFAULT_POLICY

REPORTED: dict[str, Any] = {"reported": {}}


class FixedRules:
    """Finds every call to be what the test says."""

    def __init__(self, **found: Any) -> None:
        fields: dict[str, Any] = {
            "category": Category.SHELL_EXECUTE,
            "risk": Risk.LOW,
            "explanation": "runs the tests",
            "categories": (Category.SHELL_EXECUTE,),
            "repository": "repo",
            "policy": "0" * 64,
            "subjects": (CallSubject(run=("pytest", "-q")),),
        }
        self.found = ComputedClass(**{**fields, **found})

    def judge(
        self, workspace: str, tool: str, arguments: Mapping[str, Any], metadata: Mapping[str, Any]
    ) -> ComputedClass:
        return self.found


def policy_with(**found: Any) -> ServerPolicy:
    return replace(DEFAULT_POLICY, call_rules=FixedRules(**found))
