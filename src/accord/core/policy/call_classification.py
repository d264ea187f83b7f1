"""Classifies one reported call with a policy."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from msgspec.structs import replace

from accord.core.policy import paths
from accord.core.policy.call_findings import Classification, Finding, combine, read
from accord.core.policy.path_rules import PathRules
from accord.core.policy.policy_toml import Policy
from accord.core.policy.program_effects import HOST_TOOLS, SKILL_TOOLS
from accord.core.policy.reported_call import (
    LISTING_TOOLS,
    CallKind,
    ReportedCall,
    deletes_files,
    patched_paths,
)
from accord.core.policy.search_patterns import searching
from accord.core.policy.shell_rules import ShellRules
from accord.core.policy.shell_syntax import ShellParser
from accord.core.room.approval.call_patterns import word_matches
from accord.core.room.room_settings import Category
from accord.core.room.state import CallSubject, Risk

MAX_SUBJECTS = 16
COMMAND_KEYS = ("command", "argv", "cmd", "script", "code")


def classify(call: ReportedCall, policy: Policy, parse: ShellParser) -> Classification:
    """Category, risk and, perhaps, a refusal; what is not understood is gated."""
    places = PathRules(call.place, policy)
    subjects: list[CallSubject | None] = []
    found = combine(_findings(call, policy, places, parse, subjects))
    known = tuple(each for each in subjects if each is not None)
    is_whole = len(known) == len(subjects) <= MAX_SUBJECTS
    return replace(found, subjects=known) if is_whole else found


def paths_named(call: ReportedCall, policy: Policy, parse: ShellParser) -> tuple[str, ...]:
    """The absolute paths, perhaps with globs, that `Place.resolved` has to tell about."""
    places = PathRules(call.place, policy)
    list(_findings(call, policy, places, parse, []))
    return tuple(places.asked)


def _findings(
    call: ReportedCall,
    policy: Policy,
    places: PathRules,
    parse: ShellParser,
    subjects: list[CallSubject | None],
) -> Iterator[Finding]:
    """Everything that the call does; `subjects` gets None for what cannot be taken apart."""
    cwd = paths.normalize(call.place.cwd)
    match call.kind:
        case CallKind.SHELL:
            yield from _shell(call, ShellRules(policy, places, parse, cwd, subjects))
        case CallKind.WRITE:
            yield from _files(call, places, cwd, writes=True)
            subjects += _written(call.paths or (), places, cwd)
        case CallKind.READ:
            yield from _files(call, places, cwd, writes=False)
        case CallKind.PATCH:
            yield from _patch(call, places, cwd)
            subjects += _written(tuple(patched_paths(call.patch or "")), places, cwd)
        case CallKind.FETCH:
            yield _fetch(call, policy)
        case _:  # MCP and all others
            yield _tool(call, policy)


def _written(named: tuple[str, ...], places: PathRules, cwd: str) -> Iterator[CallSubject | None]:
    for path in named:
        absolute = places.absolute(path, cwd)
        inside = places.is_inside(absolute)
        yield CallSubject(write=places.relative(absolute)) if inside else None


def _shell(call: ReportedCall, rules: ShellRules) -> Iterator[Finding]:
    if (argv := call.argv) is not None:
        yield from rules.words_findings(argv)
    elif (command := call.command) is not None:
        yield from rules.findings(command)
    else:
        yield _unclear(call, "names no single command")


def _unclear(call: ReportedCall, problem: str) -> Finding:
    return Finding(Category.SHELL_EXECUTE, Risk.HIGH, f"the call of {call.tool} {problem}")


def _files(call: ReportedCall, places: PathRules, cwd: str, *, writes: bool) -> Iterator[Finding]:
    named, patterns = call.paths, call.patterns
    if named is None or patterns is None or any(key in call.arguments for key in COMMAND_KEYS):
        yield _unclear(call, "names no plain paths")
    elif writes and not named:
        yield _unclear(call, "names no file")
    else:
        shows = call.tool not in LISTING_TOOLS
        for path in named or (cwd,):
            absolute = places.absolute(path, cwd)
            yield places.writing(absolute) if writes else places.reading(absolute)
            for pattern in patterns:
                yield from searching(places, pattern, absolute, shows=shows)


def _patch(call: ReportedCall, places: PathRules, cwd: str) -> Iterator[Finding]:
    patch = call.patch
    named = tuple(patched_paths(patch or ""))
    if patch is None or not named:
        yield _unclear(call, "names no file to patch")
        return
    for path in named:
        yield places.writing(places.absolute(path, cwd))
    if deletes_files(patch):
        yield Finding(Category.FILE_DELETE, Risk.HIGH, "deletes files")


def _fetch(call: ReportedCall, policy: Policy) -> Finding:
    url = call.arguments.get("url")
    host = (urlsplit(url).hostname or "") if isinstance(url, str) else ""
    for rule in policy.fetch:
        for pattern in rule.hosts:
            below = pattern.startswith("*.") and host.endswith(pattern[1:])
            if host and (below or host == pattern):
                return Finding(
                    rule.category, rule.risk, f"{pattern}: {rule.reason or 'a rule of the policy'}"
                )
    return Finding(Category.NETWORK_REQUEST, Risk.MEDIUM, f"fetches from {host or 'an address'}")


def _tool(call: ReportedCall, policy: Policy) -> Finding:
    server = call.place.mcp_server if call.kind is CallKind.MCP else ""
    for rule in policy.tool:
        if rule.server == server and any(word_matches(each, call.tool) for each in rule.tools):
            return Finding(rule.category, rule.risk, rule.reason or "a rule of the policy")
    if call.kind is CallKind.MCP:
        return Finding(
            Category.EXTERNAL_API, Risk.MEDIUM, f"calls {call.tool} of {server or 'a server'}"
        )
    if call.tool in SKILL_TOOLS:
        why = "loads a skill, and the host runs commands that are written in it without asking"
        return Finding(Category.SHELL_EXECUTE, Risk.HIGH, why)
    if call.tool in HOST_TOOLS:
        return read(f"{call.tool} changes nothing outside the host")
    return Finding(
        Category.SHELL_EXECUTE,
        Risk.HIGH,
        f"{call.tool} is not a tool that Accord or the policy knows",
    )
