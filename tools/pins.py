"""Writes into pyproject.toml what the locks pin, so that a wheel asks for exactly that.

python tools/pins.py            writes
python tools/pins.py --check    says whether there is something to write
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "pyproject.toml"
LOCKS = ROOT / "requirements"
# The list in pyproject.toml, the lock that it repeats, and the lock whose lines it leaves out.
LISTS = (
    ("requires", "build", None),
    ("dependencies", "runtime", None),
    ("otel", "otel", "runtime"),
)
PIN = re.compile(r"^[\w.-]+==[^\\\n]+", re.MULTILINE)


def pins(name: str) -> list[str]:
    """What a lock names, without the hashes: metadata have no place for them."""
    found = PIN.findall((LOCKS / f"{name}.txt").read_text("utf-8"))
    return [" ".join(line.split()).replace(" ; ", "; ") for line in found]


def written(package: str) -> str:
    """The text of pyproject.toml with the lists as they should be."""
    for key, lock, without in LISTS:
        others = pins(without) if without else []
        lines = [f'    "{line}",\n' for line in pins(lock) if line not in others]
        block = re.compile(rf"^{key} = \[\n.*?^\]", re.DOTALL | re.MULTILINE)
        package, count = block.subn(f"{key} = [\n{''.join(lines)}]", package)
        if count != 1:
            sys.exit(f"pyproject.toml has {count} lists called {key}, and not one")
    return package


def main() -> None:
    """Write, or tell."""
    before = PACKAGE.read_text("utf-8")
    after = written(before)
    if sys.argv[1:] == ["--check"]:
        sys.exit(None if before == after else "pyproject.toml and the locks differ: make pin")
    PACKAGE.write_text(after, "utf-8")


if __name__ == "__main__":
    main()
