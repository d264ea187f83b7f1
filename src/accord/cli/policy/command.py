"""Check, test and sign how calls of agents are classified; give standing grants.

`.accord/policy.toml` says what category and risk a call has. It counts once a person with an admin
token signed it, and only as it was signed: after any change sign it again. A standing grant is your
yes, given beforehand, to calls alike of one agent in one session; it never covers high risk,
deploying, databases, secrets or deleting.

Examples:
  accord policy init
  accord policy check
  accord policy test 'git push --force'
  accord policy test --session $ACCORD_SESSION
  accord policy sign
  accord policy grant claude --run 'pytest **' --count 20 --for 1h
  accord policy grant claude --write 'src/**' --session $ACCORD_SESSION
  accord policy list
  accord policy revoke 01JZ0Q6Y5W3V8T2N4M6K8H0F2D
"""

import argparse
from pathlib import Path

from accord.cli import connection

DEFAULT_COUNT = 20
MAX_COUNT = 500
DEFAULT_SECONDS = 3600
MAX_SECONDS = 28_800


def arguments(parser: argparse.ArgumentParser) -> None:
    """`init`, `check`, `test`, `sign`, `grant`, `list` and `revoke`."""
    verbs = parser.add_subparsers(
        dest="verb", required=True, metavar="init|check|test|sign|grant|list|revoke"
    )
    init = verbs.add_parser("init", help="write a starter policy for a person to review")
    init.add_argument("--stack", action="append", help="python, node, rust or go; default: found")
    init.add_argument("--dry-run", action="store_true", help="print it, write nothing")
    check = verbs.add_parser("check", help="say what the file means, or what is wrong with it")
    test = verbs.add_parser("test", help="classify one command, or the calls of past sessions")
    test.add_argument("command", nargs="?", metavar="COMMAND", help="a command as bash gets it")
    test.add_argument("--session", action="append", help="count what would have waited there")
    sign = verbs.add_parser("sign", help="make this file the policy of this repository")
    sign.add_argument("--yes", action="store_true", help="do not ask")
    sign.add_argument("--dry-run", action="store_true", help="show what would be signed")
    grant = verbs.add_parser("grant", help="approve similar calls of one agent in advance")
    _grant_arguments(grant)
    listing = verbs.add_parser("list", help="the standing grants of your sessions")
    revoke = verbs.add_parser("revoke", help="end a standing grant")
    revoke.add_argument("grant", metavar="GRANT", help="its id, or the beginning of it")
    revoke.add_argument("--reason", help="why, for the record")
    for verb in (init, check, test, sign):
        verb.add_argument(
            "--file", type=Path, metavar="FILE", help="default: .accord/policy.toml here"
        )
    connection.arguments(test, files=True)
    for verb in (sign, grant, listing, revoke):
        connection.arguments(verb)
    for verb in (init, check):
        verb.add_argument("--json", action="store_true", help="print JSON")


def _grant_arguments(grant: argparse.ArgumentParser) -> None:
    from accord.cli.durations import duration_type
    from accord.cli.parsing import BoundedInt

    grant.add_argument("agent", metavar="AGENT", help="the agent's id")
    grant.add_argument("--run", action="append", default=[], help="commands, such as 'pytest **'")
    grant.add_argument("--write", action="append", default=[], help="files, such as 'src/**'")
    grant.add_argument(
        "--count",
        type=BoundedInt(1, MAX_COUNT),
        default=DEFAULT_COUNT,
        help="how often (default: %(default)s)",
    )
    grant.add_argument(
        "--for",
        dest="seconds",
        type=duration_type(60, MAX_SECONDS),
        default=DEFAULT_SECONDS,
        metavar="TIME",
        help="how long, up to 8h (default: 1h)",
    )
    grant.add_argument("--session", help="default: ACCORD_SESSION")
    grant.add_argument("--comment", help="a comment for the other members")


def run(args: argparse.Namespace) -> int:
    from accord.cli.policy import checking, granting, signing

    verbs = {
        "init": checking.init,
        "check": checking.check,
        "test": checking.test,
        "sign": signing.sign,
        "grant": granting.grant,
        "list": granting.list_grants,
        "revoke": granting.revoke,
    }
    return verbs[args.verb](args)
