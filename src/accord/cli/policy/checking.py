"""`accord policy init`, `check` and `test`."""

import argparse
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from accord.cli.policy.policy_file import place_here, policy_path, read_policy, worktree
from accord.core.kernel.refusal import Reason, Refused
from accord.show.text import one_line, plural

if TYPE_CHECKING:
    from accord.core.policy.call_findings import Classification
    from accord.core.policy.policy_toml import Policy, Rule
    from accord.core.policy.reported_call import ReportedCall

# What a session gates unless it was created with other settings.
UNGATED_BY_DEFAULT = frozenset({"file_read"})
MAX_EXAMPLES = 5


def init(args: argparse.Namespace) -> int:
    """Write a starter policy; refuses to replace one."""
    from accord.core.policy.starter_policies import STACKS, stacks_in, starter_policy

    wanted = args.stack or stacks_in([each.name for each in worktree().iterdir()])
    if unknown := [name for name in wanted if name not in STACKS]:
        names = ", ".join(STACKS)
        raise Refused(
            Reason.MALFORMED, f"There is no starter for {unknown[0]}; choose from {names}"
        )
    text = starter_policy(wanted)
    path = policy_path(args)
    if args.dry_run:
        print(text, end="")
        return 0
    if path.exists():
        detail = (
            f"{path} already exists; edit it, then run `accord policy check` to see what it means"
        )
        raise Refused(Reason.WRONG_STATE, detail)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if args.json:
        from accord.show.output import print_json

        print_json({"file": str(path), "stacks": list(wanted)})
        return 0
    found = f" for {', '.join(wanted)}" if wanted else ""
    print(f"Wrote {path}{found}. Read it, change it, then `accord policy sign`.")
    return 0


def check(args: argparse.Namespace) -> int:
    """Say what a policy means."""
    from accord.cli.policy.policy_file import read_text
    from accord.core.policy.policy_toml import digest_of, policy_fields

    path = policy_path(args)
    policy = read_policy(path)
    digest = digest_of(read_text(path))
    if args.json:
        from accord.show.output import print_json

        print_json({"file": str(path), "digest": digest, "policy": policy_fields(policy)})
        return 0
    print("\n".join(map(one_line, meaning_lines(policy, path, digest))))
    return 0


def meaning_lines(policy: "Policy", path: Path, digest: str) -> Iterable[str]:
    """The policy in sentences."""
    yield f"{path} is a valid policy, {digest[:12]}"
    for rule in policy.command:
        yield f"  {' | '.join(rule.run)}: {_class_of(rule)}"
    for path_rule in policy.path:
        yield f"  writing {' | '.join(path_rule.write)}: {_class_of(path_rule)}"
    for host_rule in policy.fetch:
        yield f"  fetching from {' | '.join(host_rule.hosts)}: {_class_of(host_rule)}"
    for tool_rule in policy.tool:
        server = f" of {tool_rule.server}" if tool_rule.server else ""
        yield f"  tools {' | '.join(tool_rule.tools)}{server}: {_class_of(tool_rule)}"
    if policy.reads.outside:
        yield f"  may be read outside the worktree: {', '.join(policy.reads.outside)}"
    if policy.reads.secret:
        yield f"  secrets: {', '.join(policy.reads.secret)}"
    yield "It counts once it is signed: `accord policy sign`"


def _class_of(rule: "Rule") -> str:
    reason = f" ({rule.reason})" if rule.reason else ""
    return f"{rule.category}, {rule.risk}{reason}"


def test(args: argparse.Namespace) -> int:
    """Class one command, or the calls of sessions."""
    if (args.command is None) == (args.session is None):
        raise Refused(Reason.MALFORMED, "Name a command to classify, or a --session to test it on")
    policy = _policy_or_none(args)
    if args.command is not None:
        return test_command(args, policy)
    import asyncio

    return asyncio.run(test_sessions(args, policy))


def _policy_or_none(args: argparse.Namespace) -> "Policy":
    """The policy here as if it were signed; without a file, what holds without one."""
    from accord.core.policy.policy_toml import NO_POLICY

    path = policy_path(args)
    return read_policy(path) if args.file is not None or path.exists() else NO_POLICY


def test_command(args: argparse.Namespace, policy: "Policy") -> int:
    """Print what one command is."""
    from accord.core.policy.call_classification import classify
    from accord.core.policy.reported_call import CallKind, ReportedCall
    from accord.real_paths import resolve
    from accord.shell_parser import parse_shell
    from accord.show.output import print_json

    call = ReportedCall(CallKind.SHELL, "Bash", {"command": args.command}, place_here())
    found = classify(resolve(call, parse_shell, policy), policy, parse_shell)
    if args.json:
        print_json({"command": args.command, "outcome": outcome_of(found, policy), "class": found})
        return 0
    print(one_line(f"{args.command} → {sentence_of(found, policy)}"))
    say_what_counts(args)
    return 0


def say_what_counts(args: argparse.Namespace) -> None:
    """The answer is about the file; a session goes by the text that was signed last."""
    path = policy_path(args)
    if path.exists():
        print(one_line(f"As if {path} were signed as it is now; only the signed text counts."))


def waits(found: "Classification", policy: "Policy", ungated: frozenset[str]) -> bool:
    """Whether a call waits for people in a session that lets these categories pass."""
    risky = found.risk in ("high", "critical")
    return risky or (not found.is_read and not policy.signed) or not {*found.categories} <= ungated


def outcome_of(found: "Classification", policy: "Policy") -> str:
    """`refused`, `approval` or `passes`, in a session with the usual settings."""
    if found.refusal:
        return "refused"
    return "approval" if waits(found, policy, UNGATED_BY_DEFAULT) else "passes"


def sentence_of(found: "Classification", policy: "Policy") -> str:
    """`deploy, high: needs approval because git push sends commits to a remote`."""
    if found.refusal:
        return f"refused to agents, and no approval changes that: {found.refusal}"
    head = f"{found.category}, {found.risk}"
    if outcome_of(found, policy) == "passes":
        return f"{head}: needs no approval, {found.explanation}"
    reason = "" if policy.signed else " (no policy: everything but built-in reads waits)"
    return f"{head}: needs approval because {found.explanation}{reason}"


# Past sessions


class PastCall(NamedTuple):
    """A call that was proposed, and what this policy makes of it."""

    shown: str
    outcome: str
    sentence: str


async def test_sessions(args: argparse.Namespace, policy: "Policy") -> int:
    """Count the past calls that would have waited, and show the most frequent ones."""
    from accord.show.output import print_json

    calls = [call async for call in past_calls(args, policy)]
    outcomes = Counter(call.outcome for call in calls)
    waited = Counter(call.shown for call in calls if call.outcome == "approval")
    if args.json:
        print_json({"calls": len(calls), "outcomes": outcomes, "waited": dict(waited)})
        return 0
    total = plural(len(calls), "call")
    refused = f", {outcomes['refused']} would have been refused" if outcomes["refused"] else ""
    print(f"{outcomes['approval']} of {total} on record would have waited{refused}")
    print("Reads that passed are not on record, so a rule that makes reads secret is not tried.")
    say_what_counts(args)
    for shown, count in waited.most_common(MAX_EXAMPLES):
        sentence = next(call.sentence for call in calls if call.shown == shown)
        print(one_line(f"  {count} × {shown}: {sentence}"))
    return 0


async def past_calls(args: argparse.Namespace, policy: "Policy") -> AsyncIterator[PastCall]:
    """The proposals of the sessions, classed with this policy."""
    from accord.cli import connection
    from accord.core.policy.call_classification import classify
    from accord.shell_parser import parse_shell

    async with connection.open_source(args) as source:
        for session in args.session:
            config = (await source.detail(session))["config"] or {}
            ungated = _ungated(config)
            async for envelope in source.transcript(session):
                payload = envelope.get("payload")
                if envelope.get("type") != "tool.propose" or not isinstance(payload, dict):
                    continue
                call = call_of(payload)
                try:
                    found = classify(call, policy, parse_shell)
                except Refused as refused:
                    yield PastCall(shown_call(call), "refused", refused.detail)
                    continue
                gated = waits(found, policy, ungated)
                outcome = "refused" if found.refusal else "approval" if gated else "passes"
                yield PastCall(shown_call(call), outcome, sentence_of(found, policy))


def _ungated(config: dict[str, Any]) -> frozenset[str]:
    from accord.core.room.room_settings import Category

    gated = {*config.get("require_approval_for", ())}
    return frozenset() if "all" in gated else frozenset({*Category} - gated)


def call_of(payload: dict[str, Any]) -> "ReportedCall":
    """A proposal as a call; one without a report counts as made here, by the look of it."""
    import msgspec

    from accord.core.policy.reported_call import CallKind, Place, ReportedCall, reported_of

    arguments = payload.get("arguments")
    arguments = arguments if isinstance(arguments, dict) else {}
    tool = str(payload.get("tool_name", ""))
    try:
        reported = reported_of(payload.get("metadata"))
    except msgspec.ValidationError:
        reported = None
    if reported is not None:
        return ReportedCall(reported.kind, tool, arguments, reported.place)
    kind = CallKind.SHELL if {"command", "argv"} & arguments.keys() else CallKind.OTHER
    here = place_here()
    return ReportedCall(kind, tool, arguments, Place(here.worktree, here.worktree, here.home))


def shown_call(call: "ReportedCall") -> str:
    """The command, or the tool's name with its first path."""
    if call.command is not None:
        return call.command
    if call.argv is not None:
        return " ".join(call.argv)
    return " ".join([call.tool, *(call.paths or ())[:1]])
