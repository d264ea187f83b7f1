"""Sign in to a server with a one-time link or code.

The link is what `accord serve` or `accord invite` printed. It works once and makes a profile with a
key of this machine; from then on every command uses that profile and renews its token by itself.
Without a link, or with an address alone, the rest is asked for, so that no code needs to be in the
shell's history; from a pipe it is read as one line.

Examples:
  accord login 'http://127.0.0.1:7420#code=k2vq7…'
  accord login https://accord.example.org --code k2vq7…
  accord login https://accord.example.org
  accord login --profile work < link.txt
"""

import argparse
import asyncio
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from accord.api.people import SignedIn
    from accord.client.sign_in.login import SignInLink
    from accord.settings.profiles import Profile


NO_LINK = (
    "There is no link: standard input is empty. Use `accord login LINK`; `accord serve` prints a "
    "link at its start, and an operator makes one with `accord invite`"
)
NO_CODE = (
    "There is no code: the link has none, and standard input is empty. Use "
    "`accord login URL --code CODE`; `accord invite` prints a link with a code"
)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The link, --code, --profile and --json."""
    parser.add_argument("link", nargs="?", metavar="LINK", help="the link, or the server's address")
    parser.add_argument("--code", help="the one-time code, where the link has none")
    parser.add_argument(
        "--profile",
        metavar="NAME",
        help="name of the profile (default: ACCORD_PROFILE, or ID@HOST)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Use the code and store the profile."""
    from accord.client.sign_in.login import log_in
    from accord.settings.profiles import PROFILE_VARIABLE

    name = args.profile or os.environ.get(PROFILE_VARIABLE) or ""
    profile, account = asyncio.run(log_in(link_of(args), os.environ, name))
    show(profile, account, as_json=args.json)
    return 0


def link_of(args: argparse.Namespace) -> "SignInLink":
    """The address and the code, asking for what was not given."""
    from accord.cli.server_url import check_url
    from accord.client.sign_in.login import SignInLink, parse_link
    from accord.core.kernel.refusal import Reason, Refused

    text = args.link or ask("Link: ")
    if not text:
        raise Refused(Reason.MALFORMED, NO_LINK)
    check_url(text.partition("#")[0])
    link = parse_link(text)
    if link.code and args.code:
        raise Refused(Reason.MALFORMED, "The link has a code already; leave out --code")
    code = link.code or args.code or ask("One-time code: ")
    if not code:
        raise Refused(Reason.MALFORMED, NO_CODE)
    return SignInLink(link.url, code)


def ask(prompt: str) -> str:
    """A line from standard input; on a terminal it is not shown."""
    if sys.stdin.isatty():
        from getpass import getpass

        return getpass(prompt).strip()
    return sys.stdin.readline().strip()


def show(profile: "Profile", account: "SignedIn", *, as_json: bool) -> None:
    """Print who one is now; never the token or the key."""
    from accord.cli.people.whoami import account_for_json
    from accord.show.output import print_json
    from accord.show.text import escape_controls

    if as_json:
        print_json(account_for_json(account, profile.url, profile.name))
        return
    roles = ", ".join(account.roles)
    print(escape_controls(f"Signed in to {profile.url} as {account.id} ({roles})."))
    print(escape_controls(f"Profile {profile.name}; `accord logout` signs this device out."))
