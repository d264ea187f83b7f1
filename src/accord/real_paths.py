"""What the paths of a call really are on this machine: links followed, globs expanded."""

from glob import iglob
from itertools import islice
from os import path as os_path

from msgspec.structs import replace

from accord.core.policy.call_classification import paths_named
from accord.core.policy.paths import GLOB_CHARACTERS
from accord.core.policy.policy_toml import NO_POLICY, Policy
from accord.core.policy.reported_call import MAX_RESOLVED, ReportedCall
from accord.core.policy.shell_syntax import ShellParser


def resolve(call: ReportedCall, parse: ShellParser, policy: Policy = NO_POLICY) -> ReportedCall:
    """The call with `Place.resolved` filled in."""
    found: dict[str, tuple[str, ...]] = {}
    for path in paths_named(call, policy, parse):
        real = _real_paths(path)
        if real is not None:
            found[path] = real
    return replace(call, place=replace(call.place, resolved=found))


def _real_paths(path: str) -> tuple[str, ...] | None:
    """Where this leads, if it leads somewhere else; None if there is too much of it."""
    parts = path.split("/")
    if not any(GLOB_CHARACTERS & {*part} for part in parts):
        real = os_path.realpath(path)
        return () if real == path else (real,)
    # Wider than what bash matches: the classes of its patterns differ from Python's.
    wide = "/".join("*" if GLOB_CHARACTERS & {*part} else part for part in parts)
    matches = list(islice(iglob(wide, include_hidden=True), MAX_RESOLVED + 1))  # noqa: PTH207 - text in, text out
    if len(matches) > MAX_RESOLVED:
        return None
    elsewhere = {real for match in matches if (real := os_path.realpath(match)) != match}
    return tuple(sorted(elsewhere))
