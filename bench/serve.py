"""A server as `accord serve` runs it, with its defaults but for tokens and rate limits.

python -m bench.serve HOME      writes HOME/ready.json when it is up
"""

import argparse
from pathlib import Path

from accord.server.options import ServerOptions
from accord.server.serving import run_server
from bench.machine import pin

READY = "ready.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("home", type=Path)
    parser.add_argument("--core", type=int, help="stay on this core")
    args = parser.parse_args()
    pin(args.core)
    options = ServerOptions(
        home=args.home,
        port=0,
        auth="open",
        rate_limit=None,
        bridge_port=None,
        ready_file=args.home / READY,
    )
    run_server(options, lambda _ready, _code: None)


if __name__ == "__main__":
    main()
