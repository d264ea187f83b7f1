"""`python -m tests.fuzz TARGET`: tries one target, and says how to see again what it finds."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.mutation import dictionary
from tests.fuzz.targets import CORPUS, FOUND, LARGEST_CORPUS, TARGETS, kept, load, seconds

LONGEST_INPUT = 4096
LONGEST_TRIAL = 20
MOST_MEMORY = 1500
MOST_KEPT = 300
CHILD = [sys.executable, "-m", "tests.fuzz.child"]


def main() -> int:
    """0 when nothing was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=listing())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("target", choices=TARGETS, nargs="?")
    parser.add_argument("--seconds", type=int, default=seconds())
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--planted", action="store_true", help="with a defect that must be found")
    parser.add_argument("--keep", action="store_true", help="add to the corpus what is new")
    args = parser.parse_args()
    if args.target is None:
        print(listing())
        return 0
    if args.replay:
        return replay(args.target, args.replay)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as work:
        found = explore(args.target, args.seconds, Path(work), planted=args.planted)
        if args.keep and not found:
            keep(args.target, Path(work))
    return found


def listing() -> str:
    """The targets."""
    rows = "\n".join(f"  {name:10} {what}" for name, what in TARGETS.items())
    return f"Targets:\n{rows}"


def replay(name: str, files: list[Path]) -> int:
    """Try these inputs once each; a finding ends it with its traceback."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as work:
        trial = load(name).trial(Path(work))
        for file in files:
            print(f"{file}: {file.read_bytes()[:200]!r}")
            trial(file.read_bytes())
    print("nothing found")
    return 0


def explore(name: str, budget: int, work: Path, *, planted: bool) -> int:
    """Let the fuzzer try what it can in that time."""
    fresh, begin, words = work / "fresh", work / "seeds", work / "words"
    for each in (fresh, begin):
        each.mkdir()
    for number, seed in enumerate(load(name).seeds()):
        (begin / f"seed{number:04}").write_bytes(seed)
    words.write_text(dictionary(), "utf-8")
    found = (work if planted else FOUND) / name
    (CORPUS / name).mkdir(parents=True, exist_ok=True)
    found.mkdir(parents=True, exist_ok=True)
    flags = [
        f"-max_total_time={budget}",
        f"-artifact_prefix={found}/",
        f"-dict={words}",
        f"-max_len={LONGEST_INPUT}",
        f"-timeout={LONGEST_TRIAL}",
        f"-rss_limit_mb={MOST_MEMORY}",
        "-print_final_stats=1",
        # The same inputs each time where a change is judged, as with hypothesis; others elsewhere.
        *(["-seed=1"] if os.environ.get("CI") else []),
    ]
    ways = [name, str(work / "place"), *(["--planted"] if planted else []), "--"]
    places = [str(each) for each in (fresh, begin, CORPUS / name)]
    (work / "place").mkdir()
    began = time.time()
    code = subprocess.run([*CHILD, *ways, *flags, *places], check=False).returncode
    if code:
        report(name, found, began)
    return code


def report(name: str, found: Path, began: float) -> None:
    """Where the failing input is, and how to see it fail again."""
    for file in sorted(found.glob("*-*")):
        if file.stat().st_mtime >= began - 1:
            print(f"\nfound by: {file.read_bytes()[:2000]!r}")
            print(f"replay:   python -m tests.fuzz {name} --replay {file}")


def keep(name: str, work: Path) -> None:
    """Put the smallest inputs that reach something new into the corpus."""
    into = work / "merged"
    into.mkdir()
    places = [str(each) for each in (into, CORPUS / name, work / "fresh", work / "seeds")]
    control = f"-merge_control_file={work / 'control'}"
    subprocess.run(
        [*CHILD, name, str(work / "place"), "--", "-merge=1", control, *places], check=True
    )
    new = smallest(into)
    for file in kept(name):
        file.unlink()
    for file in new:
        (CORPUS / name / file.name[:12]).write_bytes(file.read_bytes())
    print(f"{name}: {len(new)} inputs, {sum(file.stat().st_size for file in new)} bytes")


def smallest(folder: Path) -> list[Path]:
    """As many as a repository should hold."""
    files = sorted(folder.iterdir(), key=lambda file: file.stat().st_size)[:MOST_KEPT]
    while sum(file.stat().st_size for file in files) > LARGEST_CORPUS:
        files.pop()
    return files


if __name__ == "__main__":
    sys.exit(main())
