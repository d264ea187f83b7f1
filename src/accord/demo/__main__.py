"""`python -m accord.demo` plays the story; it ends with 0 if everything happened as it should."""

import asyncio
import sys

from accord.demo.play import perform

if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(perform()))
    except KeyboardInterrupt:
        sys.exit(130)
