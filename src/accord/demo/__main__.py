"""`python -m accord.demo` runs the demonstration; exits with 0 if every check passed."""

import asyncio
import sys

from accord.demo.scenario import run_demo

if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(run_demo()))
    except KeyboardInterrupt:
        sys.exit(130)
