"""Start the server.

Prints the address with a sign-in link, and runs until Ctrl-C. Everything that was acknowledged is
on disk; a server that was killed goes on where it stopped.

Examples:
  accord serve
  accord serve --port 8000 --data-dir ./data
  accord serve --auth open --rate-limit off
  accord serve --port 0 --ready-file ready.json
"""

import argparse
import logging
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from accord.settings import Settings
from accord.show import paint

if TYPE_CHECKING:
    from accord.serving import Ready

BRIDGE_PORT = 9847


def arguments(parser: argparse.ArgumentParser) -> None:
    """Where to listen, where to keep things, whom to trust."""
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    add("--port", type=port, default=7420, help="0 picks a free one (default: %(default)s)")
    add("--store", metavar="URL", help="where the log is (default: sqlite: in the data directory)")
    add("--data-dir", type=Path, metavar="DIR", help="database and keys (default: ACCORD_HOME)")
    add(
        "--auth",
        choices=("token", "open"),
        default="token",
        help="ask for signed tokens, or trust every name; open works on this machine alone",
    )
    add(
        "--durability",
        choices=("full", "normal"),
        default="full",
        help="full: acknowledged means on disk; normal: a power cut may cost the last moments",
    )
    add(
        "--rate-limit",
        type=rate,
        default=200.0,
        metavar="N|off",
        help="messages a second for each participant (default: 200)",
    )
    add(
        "--bridge-port",
        type=bridge,
        default=None,
        metavar=f"{BRIDGE_PORT}|off",
        help="the git bridge, which this version does not have yet (default: off)",
    )
    add("--ready-file", type=Path, metavar="FILE", help="written once connections are accepted")


def run(args: argparse.Namespace) -> int:
    """Serve until a signal."""
    from accord import serving
    from accord.app import Options
    from accord.cli.lock import locked
    from accord.cli.signals import Stop

    if args.bridge_port is not None:
        print("accord: warning: this version has no git bridge; going on without", file=sys.stderr)
    log_to_stderr()
    home = Settings.here(home=args.data_dir).home.absolute()
    options = Options(
        home=home,
        host=args.host,
        port=args.port,
        store=args.store,
        auth=args.auth,
        durability=args.durability,
        rate=args.rate_limit,
        ready_file=args.ready_file,
    )
    with locked(home) as lock, Stop() as stop:

        def told(ready: "Ready") -> None:
            stop.ready()
            lock.note(ready.url)
            announce(ready, home, is_open=args.auth == "open")
            if not (sys.stdout.isatty() or args.ready_file):
                print(way_in(home), file=sys.stderr, flush=True)

        serving.run(options, told)
    if sys.stdout.isatty():
        print("\nStopped. Everything that was acknowledged is kept.")
    return 0


def announce(ready: "Ready", home: Path, *, is_open: bool) -> None:
    """The way in, for a person; a pipe or a log file never gets the token."""
    shown = banner(ready, home, is_open=is_open) if sys.stdout.isatty() else ready.url
    print(shown, flush=True)


def way_in(home: Path) -> str:
    """For whoever started it without a terminal: no log holds a token, but one can be made."""
    issue = f"accord token issue --data-dir {shlex.quote(str(home))} --id YOU --type human"
    return f"accord: no token is printed without a terminal; to make one: {issue} --roles admin"


def banner(ready: "Ready", home: Path, *, is_open: bool) -> str:
    """One screen: where, how to stop, how to come in; what is long begins at the margin."""
    url, token = reachable(ready.url), paint.dim(ready.admin_token)
    heading = f"{paint.bold('Accord')} is listening on {paint.bold(ready.url)}"
    trust = ["Every name is believed here (--auth open)."] if is_open else []
    return "\n".join(
        [
            "",
            heading,
            f"Data in {home}. Ctrl-C stops it.",
            *trust,
            "",
            paint.bold("From a shell"),
            f"export ACCORD_URL={url}",
            f"export ACCORD_TOKEN={token}",
            "accord session create --name 'First steps'",
            "",
            paint.bold("Sign-in link, with the same token, for a browser once there is a page"),
            f"{paint.blue(f'{url}/#token=')}{token}",
            "",
        ]
    )


def reachable(url: str) -> str:
    """An address one can open, where the server listens on all of them."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def log_to_stderr() -> None:
    """What Accord reports; of the libraries only what is wrong."""
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(stream=sys.stderr, format=form, level=logging.WARNING)
    logging.getLogger("accord").setLevel(logging.INFO)
    logging.getLogger("accord.websocket").setLevel(logging.WARNING)


def port(text: str) -> int:
    """A port number."""
    if not (text.isascii() and text.isdigit() and int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text!r} is no port; write a number up to 65535")
    return int(text)


def rate(text: str) -> float | None:
    """Messages a second, or None for no limit."""
    if text == "off":
        return None
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no rate; write a number above 0, or off")
    return float(text)


def bridge(text: str) -> int | None:
    """The bridge's port, or None for no bridge."""
    return None if text == "off" else port(text)
