"""Start the server.

Prints the address and, on a terminal, a link to sign in with; runs until Ctrl-C. Everything
acknowledged is on disk, so a server that was killed continues where it stopped. Flags take
precedence over the environment (ACCORD_PORT for --port), and that over the settings file.

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
from accord.cli.server_url import connectable_url
from accord.settings.client import Settings, is_local
from accord.settings.server import CONFIG_FILE, SETTINGS, Setting, load_config, parse_limit
from accord.show import style
from accord.show.text import format_duration
from accord.telemetry.logs import set_up_logging

if TYPE_CHECKING:
    from accord.server.serving import ReadyInfo

log = logging.getLogger("accord")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add --data-dir, --config, --limit and one flag for each setting."""
    parser.set_defaults(limit=[])
    add = parser.add_argument
    add(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="directory of the database and keys (default: ACCORD_HOME)",
    )
    add(
        "--config",
        metavar="FILE",
        help=f"settings file (default: {CONFIG_FILE} in the data directory)",
    )
    for setting in SETTINGS.values():
        if setting.info.has_flag:
            add_setting_flag(parser, setting)
    add(
        "--limit",
        type=limit_type,
        action="append",
        metavar="NAME=VALUE",
        help="change a limit, may be repeated; docs/reference/configuration.md lists all",
    )


def add_setting_flag(parser: argparse.ArgumentParser, setting: Setting) -> None:
    """Add the flag of a setting; without it the environment and the file decide."""

    def parse(text: str) -> object:
        try:
            return setting.parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    parser.add_argument(
        setting.flag,
        type=parse,
        default=argparse.SUPPRESS,
        metavar=setting.info.placeholder or "|".join(setting.choices) or None,
        help=f"{setting.info.description} (default: {setting.default_text})",
    )


def limit_type(text: str) -> tuple[str, int]:
    """Parse `NAME=VALUE`."""
    try:
        return parse_limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def values_from_flags(args: argparse.Namespace) -> dict[str, object]:
    """The values given on the command line, by key."""
    return {**vars(args), **dict(args.limit)}


def run(args: argparse.Namespace) -> int:
    """Serve until a signal arrives."""
    from accord.cli.data_dir_lock import lock_data_dir
    from accord.cli.serve.signals import StopSignals
    from accord.server import serving
    from accord.server.options import ServerOptions
    from accord.settings.server.open_files import ensure_enough_files

    home = Settings.for_process(home=args.data_dir).home.absolute()
    chosen = load_config(values_from_flags(args), os.environ, home)
    config = chosen.require_valid()
    set_up_logging(config.log_format, config.log_level)
    link = sys.stdout.isatty() and config.auth != "open"
    options = ServerOptions.from_config(config, home, sign_in_link=link)
    ensure_enough_files()
    with lock_data_dir(home) as lock, StopSignals() as stop:
        warn_about_setup(home, config.store)
        exposure = exposure_warning(config.host, tls=config.tls is not None)
        if exposure:
            log.warning("serve.exposed", extra={"host": config.host, "detail": exposure})

        def on_ready(ready: "ReadyInfo", codes: tuple[str, ...]) -> None:
            stop.hand_over()
            lock.write_note(ready.url)
            announce(ready, home, codes, exposure)
            if not (sys.stdout.isatty() and sys.stderr.isatty()):
                hint = open_hint(ready.url) if config.auth == "open" else token_hint(home)
                is_told = sys.stdout.isatty() or bool(config.ready_file)
                log_ready(ready, home, "" if is_told else hint)

        serving.run_server(options, on_ready)
    if sys.stdout.isatty():
        print("\nStopped. Everything acknowledged is stored.")
    return 0


def warn_about_setup(home: Path, store: str | None) -> None:
    """Log what does not prevent the start but is probably a mistake."""
    from accord.cli.doctor import data_directory
    from accord.cli.doctor.config import check_misspelled

    for typo in check_misspelled(os.environ):
        log.warning("settings.slip", extra={"detail": f"{typo.found}; {typo.fix}"})
    if lost := data_directory.missing_log(home, store):
        log.warning("store.new", extra={"data": home, "detail": f"{lost.found}; {lost.fix}"})


def log_ready(ready: "ReadyInfo", home: Path, hint: str) -> None:
    """Log the address, the version and how to get a token; never a token itself."""
    details = {"url": ready.url, "version": accord.__version__, "data": home, "detail": hint}
    log.info("serve.ready", extra=details)


def exposure_warning(host: str, *, tls: bool) -> str:
    """What to say when other machines can reach the server over plain HTTP; otherwise empty."""
    if tls or is_local(f"http://{bracketed(host)}"):
        return ""
    return (
        f"Other machines can reach {host}, and the server has no certificate: anyone on that "
        "network can read tokens and conversations. Use --tls-cert and --tls-key, or put a proxy "
        "with TLS in front and listen on 127.0.0.1"
    )


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def announce(ready: "ReadyInfo", home: Path, codes: tuple[str, ...], exposure: str = "") -> None:
    """Print the address; only a terminal also gets the sign-in links."""
    shown = ready.url
    if sys.stdout.isatty():
        warning = f"\n{style.red(f'Not encrypted. {exposure}.')}" if exposure else ""
        shown = warning + banner(ready, home, codes)
    print(shown, flush=True)


def open_hint(url: str) -> str:
    """How to use a server that needs no signing in, if it was started without a terminal."""
    address = connectable_url(url)
    return (
        "clients are trusted without a token (--auth open); "
        f"run for example: accord session create --as YOU --url {address}"
    )


def token_hint(home: Path) -> str:
    """How to sign in if the server was started without a terminal."""
    return f"to sign in, run: {invite_command(home)}, then: accord login LINK"


def invite_command(home: Path) -> str:
    """The command that makes another link for an operator, on the server's machine."""
    return f"accord invite --role admin --name YOU --data-dir {shlex.quote(str(home))}"


def banner(ready: "ReadyInfo", home: Path, codes: tuple[str, ...]) -> str:
    """Address, how to stop, and how to sign in; commands begin in the first column to be copied.

    Without codes the server trusts its clients (`--auth open`).
    """
    from accord.client.sign_in.login import make_link
    from accord.core.people.sign_in_codes import CODE_LIFE_MS
    from accord.server.options import operator_id

    url = connectable_url(ready.url)
    head = ["", f"{style.bold('Accord')} {accord.__version__} is listening on"]
    if not codes:
        head[-1] += f" {style.bold(ready.url)}"
        return "\n".join(
            [
                *head,
                f"Data in {home}. Ctrl-C stops it.",
                "Clients are trusted without a token (--auth open).",
                "",
                style.bold("In another shell"),
                f"export ACCORD_URL={url}",
                "accord session create --name 'First steps' --as YOU",
                "",
            ]
        )
    operator = operator_id()
    in_browser, in_shell = (make_link(url, code) for code in codes)
    head[-1] += f" {style.bold(ready.url)}"
    lifetime = format_duration(CODE_LIFE_MS / 1000)
    return "\n".join(
        [
            *head,
            f"Data in {home}. Ctrl-C stops it.",
            "",
            style.bold("In a browser"),
            style.link(in_browser, in_browser),
            "",
            style.bold("In another shell"),
            f"accord login '{in_shell}'",
            "accord session create --name 'First steps'",
            "",
            style.dim(
                f"Each link signs you in as the operator {operator}, once, within {lifetime}."
            ),
            style.dim("For another link or another name:"),
            style.dim(invite_command(home)),
            "",
        ]
    )
