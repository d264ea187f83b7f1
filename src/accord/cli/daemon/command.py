"""See or stop the daemon that gate hooks ask, or run it in the foreground.

The first hook that needs the daemon starts it, and one of a newer version replaces it, so you
rarely need this command. There is one for each user. It classes the calls of connected hosts, and
proposes and reports them as their agents. It decides nothing: it never votes, signs, grants,
invites or gives a token away. Stopping it loses nothing.

Examples:
  accord daemon status
  accord daemon stop
  accord daemon run
"""

from __future__ import annotations

import os
from pathlib import Path

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    import argparse
    from typing import Any

LOG_FILE = "daemon.log"
MAX_LOG_BYTES = 1 << 20
STOP_TIMEOUT_S = 35.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the verb, --json and --directory."""
    parser.add_argument(
        "verb", nargs="?", choices=("status", "stop", "run"), default="status", help="what to do"
    )
    parser.add_argument("--json", action="store_true", help="print the status as JSON")
    parser.add_argument(
        "--directory", type=Path, help="the configuration directory (default: the user's)"
    )


def run(args: argparse.Namespace) -> int:
    """Run the verb in the configuration directory."""
    directory = chosen_directory(args.directory)
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chdir(directory)
    return {"status": show_status, "stop": stop, "run": run_daemon}[args.verb](args)


def chosen_directory(given: Path | None) -> Path:
    from accord.settings.profiles import config_dir

    return given if given is not None else Path(config_dir(os.environ))


def show_status(args: argparse.Namespace) -> int:
    """Print whether the daemon runs, and for which agents."""
    from accord.daemon.takeover import STATUS, ask_daemon

    status = ask_daemon(STATUS)
    if args.json:
        import json

        print(json.dumps({"running": status is not None, **(status or {})}))
    else:
        print("\n".join(status_lines(status)))
    return 0


def status_lines(status: dict[str, Any] | None) -> list[str]:
    if status is None:
        return ["The daemon is not running. The next gate hook starts it."]
    lines = [f"The daemon runs: version {status['version']}, process {status['pid']}."]
    for each in status["connections"]:
        state = "connected" if each["is_live"] else f"not connected: {each['problem']}"
        lines.append(f"  {each['agent']} ({each['host']}) in {each['session']}: {state}")
    return lines if status["connections"] else [*lines, "  No host has asked it yet."]


def stop(_args: argparse.Namespace) -> int:
    """End the daemon and wait until it no longer listens."""
    from accord.daemon.takeover import STOP, ask_daemon

    stopped = ask_daemon(STOP, STOP_TIMEOUT_S)
    print("The daemon was not running." if stopped is None else "The daemon has stopped.")
    return 0


def run_daemon(_args: argparse.Namespace) -> int:
    """Serve hooks until a newer daemon replaces this one."""
    from accord.daemon.takeover import AlreadyRunningError, take_lock

    try:
        lock = take_lock()
    except AlreadyRunningError:
        print("The daemon is running already.")
        return 0
    serve(lock)
    return 0


def serve(lock: int) -> None:
    """Listen and answer; what is slow to import is imported once the lock is held."""
    import gc
    import logging
    import signal

    open_log()
    log = logging.getLogger("accord.daemon")
    try:
        from accord.daemon.requests import RequestHandler
        from accord.daemon.server import DaemonServer

        server = DaemonServer(RequestHandler(Path.cwd(), os.environ), lock)
    except Exception:
        log.exception("the daemon cannot start")
        raise
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(each, lambda *_: server.stop())
    gc.collect()
    gc.freeze()
    log.info("listening, process %d", os.getpid())
    server.serve()


def open_log() -> None:
    """Write problems to a private file that does not grow beyond its limit."""
    import logging

    path = Path(LOG_FILE)
    is_full = path.exists() and path.stat().st_size > MAX_LOG_BYTES
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    if is_full:
        os.ftruncate(handle, 0)
    stream = os.fdopen(handle, "a", encoding="utf-8")
    line = "%(asctime)s %(levelname)s %(message)s"
    logging.basicConfig(stream=stream, level=logging.INFO, format=line)
