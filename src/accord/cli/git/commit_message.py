"""`accord git check-message` and `accord git parse`."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accord.cli.json_values import finding_for_json, snake_case_keys
from accord.show.text import one_line, replace_surrogates

if TYPE_CHECKING:
    from accord.core.provenance.commit_message.lint import LintFinding
    from accord.git.repository import Repository

EXIT_BAD_MESSAGE = 2


def check_message(repo: "Repository", args: argparse.Namespace) -> int:
    """Print the problems of a commit message."""
    from accord.core.provenance.commit_message.lint import lint, strip_comments
    from accord.show.output import print_json

    raw = sys.stdin.buffer.read() if args.file == "-" else Path(args.file).read_bytes()
    found = lint(strip_comments(raw.decode("utf-8", "replace")))
    if args.json:
        print_json({"findings": [lint_finding_for_json(each) for each in found]})
    else:
        for each in found:
            print(f"{one_line(str(each))}. {one_line(each.mend)}")
    return EXIT_BAD_MESSAGE if any(each.error for each in found) else 0


def lint_finding_for_json(found: "LintFinding") -> dict[str, Any]:
    """A problem of a commit message, for programs."""
    severity = "error" if found.error else "warning"
    return finding_for_json(found.problem, found.mend, severity=severity, line=found.line)


def parse(repo: "Repository", args: argparse.Namespace) -> int:
    """Print the metadata in a commit's message."""
    from accord.core.provenance.commit_message.parser import commit_metadata, parse_message
    from accord.git import user_arguments
    from accord.show.output import print_json

    commit = repo.commit(user_arguments.resolve_commit(repo, args.rev))
    metadata = commit_metadata(parse_message(replace_surrogates(commit.message)))
    if args.json:
        print_json(snake_case_keys(metadata))
        return 0
    for name, value in metadata.items():
        print(f"{name:12}  {one_line(format_value(value))}")
    return 0


def format_value(value: Any) -> str:
    """A value on one line."""
    match value:
        case list():
            return ", ".join(map(format_value, value))
        case {"type": kind, "identifier": name}:
            return f"{kind}:{name}"
        case _:
            return str(value)
