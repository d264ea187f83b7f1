"""Start the server.

Prints the address and, on a terminal, a token to come in with; runs until Ctrl-C. Everything that
was acknowledged is on disk; a server that was killed goes on where it stopped. A flag beats the
environment (ACCORD_PORT for --port), that beats the file.

Examples:
  accord serve
  accord serve --port 8000 --data-dir ./data
  accord serve --auth open --rate-limit off
  accord serve --port 0 --ready-file ready.json
  accord serve --config team.toml --limit gates=50
"""

import argparse
import logging
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import accord
from accord.cli.address import reachable
from accord.config import FILE, SETTINGS, Setting, choose, limit_of
from accord.logs import set_up
from accord.settings import Settings
from accord.show import paint
from accord.show.text import span

if TYPE_CHECKING:
    from accord.serving import Ready

log = logging.getLogger("accord")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Where to listen, where to keep things, whom to trust, how much to take."""
    parser.set_defaults(limit=[])
    add = parser.add_argument
    add("--data-dir", type=Path, metavar="DIR", help="database and keys (default: ACCORD_HOME)")
    add("--config", metavar="FILE", help=f"settings (default: {FILE} in the data directory)")
    for setting in SETTINGS.values():
        if setting.says.flag:
            declare(parser, setting)
    add(
        "--limit",
        type=one_limit,
        action="append",
        metavar="NAME=VALUE",
        help="move a limit, as often as needed; the reference lists them",
    )


def declare(parser: argparse.ArgumentParser, setting: Setting) -> None:
    """The flag of a setting; what is not said is not there, so that others may say it."""

    def read(text: str) -> object:
        try:
            return setting.read(text)
        except ValueError as no:
            raise argparse.ArgumentTypeError(str(no)) from None

    parser.add_argument(
        setting.flag,
        type=read,
        default=argparse.SUPPRESS,
        metavar=setting.says.value or "|".join(setting.choices) or None,
        help=f"{setting.says.sentence} (default: {setting.usually})",
    )


def one_limit(text: str) -> tuple[str, int]:
    """`NAME=VALUE`."""
    try:
        return limit_of(text)
    except ValueError as no:
        raise argparse.ArgumentTypeError(str(no)) from None


def flags(args: argparse.Namespace) -> dict[str, object]:
    """What was said on the command line, by key."""
    return {**vars(args), **dict(args.limit)}


def run(args: argparse.Namespace) -> int:
    """Serve until a signal."""
    from accord import serving
    from accord.app import Options
    from accord.cli.lock import locked
    from accord.cli.signals import Stop
    from accord.config.descriptors import ensure_enough

    home = Settings.here(home=args.data_dir).home.absolute()
    chosen = choose(flags(args), os.environ, home)
    config = chosen.usable()
    set_up(config.log_format, config.log_level)
    # Whoever asks for any port runs several servers, and only one of them can have this one.
    bridged = config.port != 0 or "bridge_port" in chosen.sources
    options = Options.of(config, home, bridge=config.bridge_port if bridged else None)
    ensure_enough()
    with locked(home) as lock, Stop() as stop:
        warn(home, config.store)

        def told(ready: "Ready") -> None:
            stop.ready()
            lock.note(ready.url)
            announce(ready, home, is_open=config.auth == "open")
            if not (sys.stdout.isatty() and sys.stderr.isatty()):
                needs_token = not (sys.stdout.isatty() or config.ready_file)
                log_ready(ready, home, way_in(home) if needs_token else "")

        serving.run(options, told)
    if sys.stdout.isatty():
        print("\nStopped. Everything that was acknowledged is kept.")
    return 0


def warn(home: Path, store: str | None) -> None:
    """What keeps nobody from starting, and is seldom meant."""
    from accord.cli import kept
    from accord.cli.configured import slips

    for slip in slips(os.environ):
        log.warning("settings.slip", extra={"detail": f"{slip.says}; {slip.cure}"})
    if gone := kept.gone(home, store):
        log.warning("store.new", extra={"data": home, "detail": f"{gone.says}; {gone.cure}"})


def log_ready(ready: "Ready", home: Path, hint: str) -> None:
    """For whoever reads the log: what runs, where, and how to come in; never a token."""
    about = {"url": ready.url, "version": accord.__version__, "data": home, "detail": hint}
    log.info("serve.ready", extra=about)


def announce(ready: "Ready", home: Path, *, is_open: bool) -> None:
    """The way in, for a person; a pipe or a log file never gets the token."""
    shown = banner(ready, home, is_open=is_open) if sys.stdout.isatty() else ready.url
    print(shown, flush=True)


def way_in(home: Path) -> str:
    """For whoever started it without a terminal: no log holds a token, but one can be made."""
    issue = f"accord token issue --data-dir {shlex.quote(str(home))} --id YOU --type human"
    return f"a token is made by: {issue} --roles admin"


def banner(ready: "Ready", home: Path, *, is_open: bool) -> str:
    """One screen: where, how to stop, how to come in; what is long begins at the margin.

    The token stands there once: the address is a link that brings it along.
    """
    from accord.desk import USUAL_LIFE

    url = reachable(ready.url)
    address = paint.link(paint.bold(ready.url), f"{url}/#token={ready.admin_token}")
    trust = ["Every name is believed here (--auth open)."] if is_open else []
    return "\n".join(
        [
            "",
            f"{paint.bold('Accord')} {accord.__version__} listens on {address}",
            f"Data in {home}. Ctrl-C stops it.",
            *trust,
            "",
            paint.bold("In another shell"),
            f"export ACCORD_URL={url}",
            f"export ACCORD_TOKEN={paint.dim(ready.admin_token)}",
            "accord session create --name 'First steps'",
            "",
            paint.dim(
                f"The token is an operator's, good for {span(USUAL_LIFE)}; keep it to yourself."
            ),
            paint.dim(f"Sign-in link, once there is a page: {url}/#token=TOKEN"),
            "",
        ]
    )
