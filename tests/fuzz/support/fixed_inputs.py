"""The inputs of the default suite: a fixed number, mutated from the corpus with a fixed seed.

The same inputs on every machine and in every run, so a failure is a change of the code and never
luck. They need no fuzzer; `make soak` hunts for new ones with libFuzzer, by time.
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random

from tests.fuzz.support.json_mutation import (
    DICTIONARY_WORDS,
    HTTP_WORDS,
    MAX_MUTATED_BYTES,
    mutate_json_line,
)
from tests.fuzz.targets import FINDINGS_DIR, corpus_files, load_target

SEED = 1
JSON_MUTATION_SHARE = 0.7
WORDS = tuple(word.encode() for word in (*DICTIONARY_WORDS, *HTTP_WORDS))
ODD_BYTES = (0x00, 0x0A, 0x0D, 0x22, 0x5C, 0x7F, 0x80, 0xC0, 0xFF)


def run_inputs(
    name: str, inputs: Iterable[bytes], directory: Path, findings: Path = FINDINGS_DIR
) -> None:
    """Run them all; the first that fails is saved under `findings` and named in the error."""
    run_input = load_target(name).make_runner(directory)
    for data in inputs:
        try:
            run_input(data)
        except Exception as error:
            file = findings / name / f"fixed-{hashlib.sha256(data).hexdigest()[:12]}"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            again = f"replay: python -m tests.fuzz {name} --replay {file}"
            raise AssertionError(f"{error!r}\nfound by: {data[:2000]!r}\n{again}") from error


def known_inputs(name: str) -> Iterator[bytes]:
    """The seeds of a target, then its corpus."""
    yield from load_target(name).seeds()
    for file in corpus_files(name):
        yield file.read_bytes()


def fixed_inputs(name: str, count: int) -> Iterator[bytes]:
    """The first `count` mutations of what is known; the same ones in every run."""
    known = list(known_inputs(name))
    random = Random(f"{name}:{SEED}")
    for _ in range(count):
        yield mutate(random.choice(known), known, random)


def mutate(data: bytes, known: list[bytes], random: Random) -> bytes:
    """Another input, not far from this one."""
    if random.random() < JSON_MUTATION_SHARE:
        try:
            mutated = mutate_json_line(data, random)
        except (ValueError, RecursionError, MemoryError):  # too deep or too long to encode again
            mutated = None
        if mutated is not None:
            return mutated
    for _ in range(random.choice((1, 1, 2, 4))):
        data = mutate_bytes(data, known, random)
    return data[:MAX_MUTATED_BYTES]


def mutate_bytes(data: bytes, known: list[bytes], random: Random) -> bytes:
    """One range of bytes replaced, removed, repeated, or joined with another input."""
    start = random.randrange(len(data) + 1)
    end = min(len(data), start + random.choice((0, 1, 1, 2, 4, 16, 64)))
    match random.randrange(6):
        case 0:
            return data[:start] + data[end:]
        case 1:
            return data[:start] + random.choice(WORDS) + data[end:]
        case 2:
            return data[:start] + bytes((random.choice(ODD_BYTES),)) + data[end:]
        case 3:
            return data[:end] + data[start:]
        case 4:
            other = random.choice(known)
            return data[:start] + other[random.randrange(len(other) + 1) :]
        case _:
            return data[:start] + random.randbytes(end - start) + data[end:]
