"""What the paths of a call really are on this machine: links followed, globs expanded."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from glob import iglob
from itertools import islice
from os import path as os_path

from msgspec.structs import replace

from accord.core.policy.call_classification import paths_named
from accord.core.policy.path_rules import PathRules
from accord.core.policy.paths import GLOB_CHARACTERS
from accord.core.policy.policy_toml import NO_POLICY, Policy
from accord.core.policy.reported_call import MAX_RESOLVED, ReportedCall
from accord.core.policy.shell_syntax import ShellParser


def resolve(call: ReportedCall, parse: ShellParser, policy: Policy = NO_POLICY) -> ReportedCall:
    """The call with `Place.resolved` filled in."""
    found: dict[str, tuple[str, ...]] = {}
    rules = PathRules(call.place, policy)
    for path in paths_named(call, policy, parse):
        real = _real_paths(path, rules.is_special)
        if real is not None:
            found[path] = real
    return replace(call, place=replace(call.place, resolved=found))


def _real_paths(path: str, is_special: Callable[[str], bool]) -> tuple[str, ...] | None:
    """Where this leads, if it leads somewhere else; None if there is too much of it.

    Of what a glob stands for, also the files that a rule names: their names are not in the call.
    """
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
    named = {match for match in matches if is_special(match) and may_match(path, match)}
    return tuple(sorted(elsewhere | named))


def may_match(pattern: str, path: str) -> bool:
    """Whether a shell may put this path for the pattern, of which it has every plain component."""
    pairs = zip(pattern.split("/"), path.split("/"), strict=True)
    return all(name == part or may_match_name(part, name) for part, name in pairs)


def may_match_name(part: str, name: str) -> bool:
    """The same of one component; classes differ between shells, so what follows one may be all."""
    if name.startswith(".") and not part.startswith("."):
        return False  # hidden files are meant only where the dot is written
    before, bracket, _ = part.partition("[")
    return fnmatchcase(name, f"{before}*" if bracket else part)
