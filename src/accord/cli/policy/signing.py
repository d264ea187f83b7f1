"""`accord policy sign`: makes the file here the policy of its repository."""

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from accord.cli.policy.policy_file import policy_path, read_policy, read_text, repository
from accord.core.kernel.refusal import Reason, Refused
from accord.show.text import escape_controls

if TYPE_CHECKING:
    from accord.api.policies import SignedPolicyText

NO_REPOSITORY_ID = "This repository has no id yet; `accord git install` gives it one"
NOT_ASKED = "There is no terminal to ask on; read the policy, then repeat with --yes"


def sign(args: argparse.Namespace) -> int:
    """Show the policy, ask, and sign it with the caller's own token."""
    path = policy_path(args)
    read_policy(path)
    text = read_text(path)
    id = repository().try_text("config", "accord.repo")
    if not id:
        raise Refused(Reason.WRONG_STATE, NO_REPOSITORY_ID)
    if not args.json:
        print(escape_controls(text), end="" if text.endswith("\n") else "\n")
    if args.dry_run:
        return 0
    if not args.yes:
        ask(f"Sign {path} as the policy of {id}?")
    signed = asyncio.run(_sign(args, id, text))
    if args.json:
        from accord.show.output import print_json

        print_json(signed)
    else:
        print(f"Signed as {signed.by}: {signed.digest[:12]} is the policy of {signed.repository}")
    return 0


def ask(question: str) -> None:
    """Refuse unless the person at the terminal says yes."""
    if not sys.stdin.isatty():
        raise Refused(Reason.MALFORMED, NOT_ASKED)
    if input(f"{question} [y/N] ").strip().lower() not in {"y", "yes"}:
        raise Refused(Reason.WRONG_STATE, "Nothing was signed")


async def _sign(args: argparse.Namespace, id: str, text: str) -> "SignedPolicyText":
    from accord.api.policies import PolicyRequest
    from accord.cli.admin.admin_api import RemoteAdmin
    from accord.cli.connection import DEFAULT_URL, resolve_settings, token_of
    from accord.cli.server_url import check_url
    from accord.core.policy.policy_toml import digest_of

    known = resolve_settings(args.url)
    admin = RemoteAdmin(check_url(known.url or DEFAULT_URL), token_of(known))
    request = PolicyRequest(repository=id, digest=digest_of(text), text=text)
    return await admin.people.sign_policy(request)
