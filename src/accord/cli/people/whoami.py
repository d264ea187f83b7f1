"""Show who you are, on which server, and by which credential.

Examples:
  accord whoami
  accord whoami --json
"""

import argparse
import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accord.api.people import Account


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", help="the server (default: ACCORD_URL, or your profile)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Ask the server who the caller is."""
    from accord.api.people import Account
    from accord.cli.connection import DEFAULT_URL, identity_hint, resolve_settings, token_of
    from accord.cli.server_url import check_url
    from accord.client.http_client import HttpClient
    from accord.client.identity import parse_address
    from accord.core.kernel.refusal import Reason, Refused
    from accord.show.labelled_values import render_labelled
    from accord.show.output import print_json
    from accord.show.text import escape_controls

    known = resolve_settings(args.url)
    if not known.token:
        raise Refused(Reason.UNAUTHENTICATED, identity_hint(known))
    address = parse_address(check_url(known.url or DEFAULT_URL))
    account = asyncio.run(HttpClient(address, token_of(known)).read(Account, ("sign-in",)))
    profile = known.profile.name if known.profile else ""
    if args.json:
        print_json(account_for_json(account, address.base_url, profile))
        return 0
    facts = (
        ("roles", ", ".join(account.roles) or "none"),
        ("workspace", account.workspace),
        ("profile", profile or "none; ACCORD_TOKEN is used"),
        ("device", account.device),
        ("token", f"until {account.expires_at}{', renewed automatically' if profile else ''}"),
    )
    print(escape_controls(f"{account.id} ({account.type}) at {address.base_url}"))
    for line in render_labelled((name, escape_controls(value)) for name, value in facts):
        print(line)
    return 0


def account_for_json(account: "Account", url: str, profile: str) -> dict[str, Any]:
    """Who one is for programs; never the token."""
    return {
        "id": account.id,
        "type": account.type,
        "name": account.name,
        "roles": account.roles,
        "workspace": account.workspace,
        "url": url,
        "server": account.server,
        "profile": profile or None,
        "device": account.device or None,
        "expires_at": account.expires_at,
    }
