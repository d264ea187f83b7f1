"""Calls for the tests of policy, in a worktree where every path is what it seems to be."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from accord.core.policy.call_classification import classify, paths_named
from accord.core.policy.call_findings import Classification
from accord.core.policy.policy_toml import NO_POLICY, Policy
from accord.core.policy.reported_call import CallKind, Place, ReportedCall
from accord.shell_parser import parse_shell

HOME = "/home/ada"
WORKTREE = f"{HOME}/shop"
OWN = (f"{HOME}/.config/accord", f"{HOME}/.local/share/accord", "/run/user/1000/accord")
PLACE = Place(WORKTREE, WORKTREE, HOME, OWN)


def call_of(
    kind: CallKind, tool: str, arguments: Mapping[str, Any], place: Place = PLACE
) -> ReportedCall:
    return ReportedCall(kind, tool, arguments, place)


def shell(command: str, place: Place = PLACE) -> ReportedCall:
    return call_of(CallKind.SHELL, "Bash", {"command": command}, place)


def class_of(
    call: ReportedCall, policy: Policy = NO_POLICY, links: Mapping[str, str] | None = None
) -> Classification:
    """The classification, where only the paths in `links` lead somewhere else."""
    resolved = {
        path: (links[path],) if links and path in links else ()
        for path in paths_named(call, policy, parse_shell)
    }
    return classify(
        replace(call, place=replace(call.place, resolved=resolved)), policy, parse_shell
    )


def class_of_command(command: str, policy: Policy = NO_POLICY) -> Classification:
    return class_of(shell(command), policy)
