"""`python -m tests.fuzz TARGET`: fuzzes one target, and prints how to replay what it finds."""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.support.json_mutation import libfuzzer_dictionary
from tests.fuzz.targets import (
    CORPUS_DIR,
    FINDINGS_DIR,
    MAX_CORPUS_BYTES,
    TARGETS,
    corpus_files,
    fuzz_seconds,
    load_target,
)

MAX_INPUT_BYTES = 4096
INPUT_TIMEOUT_S = 20
MAX_MEMORY_MIB = 1500
MAX_CORPUS_FILES = 300
CHILD_COMMAND = [sys.executable, "-m", "tests.fuzz.support.libfuzzer_child"]


def main() -> int:
    """Returns 0 when nothing was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=list_targets())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("target", choices=TARGETS, nargs="?", help="without one, list the targets")
    add("--seconds", type=int, default=fuzz_seconds(), help="stop after this time")
    add("--seed", type=int, default=0, help="start libFuzzer from this seed (default: random)")
    add("--replay", type=Path, nargs="+", metavar="FILE", help="run these inputs once each")
    add("--planted", action="store_true", help="fuzz with a planted defect, which must be found")
    add("--keep", action="store_true", help="add inputs that reach new code to the corpus")
    args = parser.parse_args()
    if args.target is None:
        print(list_targets())
        return 0
    if args.replay:
        return replay(args.target, args.replay)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as work:
        code = explore(args.target, args.seconds, args.seed, Path(work), planted=args.planted)
        if args.keep and not code:
            merge_into_corpus(args.target, Path(work))
    return code


def list_targets() -> str:
    width = max(map(len, TARGETS))
    rows = "\n".join(f"  {name:{width}} {description}" for name, description in TARGETS.items())
    return f"Targets:\n{rows}"


def replay(name: str, files: list[Path]) -> int:
    """Run these inputs once each; a finding ends the program with its traceback."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as work:
        run_input = load_target(name).make_runner(Path(work))
        for file in files:
            print(f"{file}: {file.read_bytes()[:200]!r}")
            run_input(file.read_bytes())
    print("nothing found")
    return 0


def explore(name: str, seconds: int, seed: int, work: Path, *, planted: bool) -> int:
    """Run libFuzzer on the target; returns its exit code."""
    fresh, seeds, dictionary = work / "fresh", work / "seeds", work / "dictionary"
    for directory in (fresh, seeds, work / "files"):
        directory.mkdir()
    for number, data in enumerate(load_target(name).seeds()):
        (seeds / f"seed{number:04}").write_bytes(data)
    dictionary.write_text(libfuzzer_dictionary(), "utf-8")
    findings = (work if planted else FINDINGS_DIR) / name
    (CORPUS_DIR / name).mkdir(parents=True, exist_ok=True)
    findings.mkdir(parents=True, exist_ok=True)
    flags = [
        f"-max_total_time={seconds}",
        f"-seed={seed}",
        f"-artifact_prefix={findings}/",
        f"-dict={dictionary}",
        f"-max_len={MAX_INPUT_BYTES}",
        f"-timeout={INPUT_TIMEOUT_S}",
        f"-rss_limit_mb={MAX_MEMORY_MIB}",
        "-print_final_stats=1",
    ]
    child_args = [name, str(work / "files"), *(["--planted"] if planted else []), "--"]
    input_dirs = [str(directory) for directory in (fresh, seeds, CORPUS_DIR / name)]
    started = time.time()
    command = [*CHILD_COMMAND, *child_args, *flags, *input_dirs]
    code = subprocess.run(command, check=False).returncode
    if code:
        report(name, findings, started)
    return code


def report(name: str, findings: Path, started: float) -> None:
    """Print each failing input, and the command that replays it."""
    for file in sorted(findings.glob("*-*")):
        if file.stat().st_mtime >= started - 1:
            print(f"\nfound by: {file.read_bytes()[:2000]!r}")
            print(f"replay:   python -m tests.fuzz {name} --replay {file}")


def merge_into_corpus(name: str, work: Path) -> None:
    """Replace the corpus by the smallest inputs that together reach the same code and more."""
    merged = work / "merged"
    merged.mkdir()
    sources = (CORPUS_DIR / name, work / "fresh", work / "seeds")
    input_dirs = [str(directory) for directory in (merged, *sources)]
    control = f"-merge_control_file={work / 'control'}"
    child_args = [name, str(work / "files"), "--", "-merge=1", control]
    subprocess.run([*CHILD_COMMAND, *child_args, *input_dirs], check=True)
    new = smallest_files(merged)
    for file in corpus_files(name):
        file.unlink()
    for file in new:
        (CORPUS_DIR / name / file.name[:12]).write_bytes(file.read_bytes())
    print(f"{name}: {len(new)} inputs, {sum(file.stat().st_size for file in new)} bytes")


def smallest_files(folder: Path) -> list[Path]:
    """As many as fit the limits of the repository."""
    files = sorted(folder.iterdir(), key=lambda file: file.stat().st_size)[:MAX_CORPUS_FILES]
    while sum(file.stat().st_size for file in files) > MAX_CORPUS_BYTES:
        files.pop()
    return files


if __name__ == "__main__":
    sys.exit(main())
