"""A server as `accord serve` runs it, with its defaults but for tokens and rate limits.

python -m bench.serve HOME      writes HOME/ready.json when it is up
"""

import argparse
from pathlib import Path

from accord.app import Options
from accord.serving import run
from bench.machine import pin

READY = "ready.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("home", type=Path)
    parser.add_argument("--core", type=int, help="stay on this core")
    args = parser.parse_args()
    pin(args.core)
    options = Options(home=args.home, port=0, auth="open", rate=None, ready_file=args.home / READY)
    run(options, lambda _: None)


if __name__ == "__main__":
    main()
