"""Sign out: revoke this device on the server and remove the profile.

ACCORD_PROFILE names the profile; otherwise it is that of the last login.

Examples:
  accord logout
  ACCORD_PROFILE=work accord logout
"""

import argparse
import asyncio
import os
import sys


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Revoke the device, then remove the profile."""
    from accord.client.sign_in.login import log_out
    from accord.core.kernel.refusal import Reason, Refused
    from accord.settings.profiles import select_profile
    from accord.show.output import print_json
    from accord.show.text import escape_controls

    profile = select_profile(os.environ)
    if profile is None:
        raise Refused(Reason.NOT_FOUND, "You are not logged in anywhere; there is no profile")
    confirmed = asyncio.run(log_out(profile, os.environ))
    if not confirmed:
        told = f"{profile.url} did not confirm it; an operator can revoke the device"
        print(escape_controls(f"accord: {told} {profile.device}"), file=sys.stderr)
    if args.json:
        print_json({"profile": profile.name, "url": profile.url, "revoked": confirmed})
    else:
        print(
            escape_controls(f"Signed out of {profile.url}; the profile {profile.name} was removed.")
        )
    return 0
