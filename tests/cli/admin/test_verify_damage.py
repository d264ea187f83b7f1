"""`accord verify` over each page of a damaged file: every line is one of our sentences.

An exception's text, or one of SQLite's about cells and trees, helps nobody who has to restore a
backup, and may quote what was stored.
"""

import asyncio
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from accord.cli.main import main
from accord.data_dir import DATABASE_NAME
from tests.helpers.stores.sample_log import build_log

PAGE = 4096
FLIPPED = 0.02  # of the bytes
EXIT_CODES = {0, 5}
SENTENCES = (
    r"",
    r"(holds|broken) +(room|people)/\w+( +\d+ records?, (all signed|not yet signed))?",
    r" +(good up to )?\d+:[0-9a-f]{64}",
    (
        r" +record \d+ (cannot be read, because the store is damaged there|has an invalid signature"
        r"|is missing|does not follow from the one before it|is not in a form that Accord writes)"
    ),
    r"damaged  the file is damaged, so that SQLite cannot check it",
    (
        r"damaged  the file is damaged: (some of its pages are not as they were written"
        r"|an index does not agree with its records|records lack some of their fields)"
    ),
    r"damaged  the list of streams or of signatures cannot be read, so no stream was checked",
    r"damaged  a signature is not in a form that Accord writes",
    r"damaged  \d+ records? (was|were) signed, but the signatures are missing; .*",
    r"The log is broken\. Records after a bad record prove nothing; compare with a backup\.",
    r"The log is intact\. Signed records are as the server wrote them, .*",
    r"accord: \S+ is damaged and was not changed; restore a backup with `accord restore --force`",
    r"accord: \S+ is not a log of Accord and was not changed; name another --data-dir",
)
KNOWN = re.compile("|".join(f"(?:{sentence})" for sentence in SENTENCES))


def damaged_pages(page: bytes, other: bytes, rng: random.Random) -> Iterator[bytes]:
    """The page as torn writes and failing disks leave it."""
    half = len(page) // 2
    yield bytes(len(page))
    yield b"\xff" * len(page)
    yield page[:half] + bytes(half)
    yield bytes(half) + page[half:]
    yield other
    yield rng.randbytes(len(page))
    yield rng.randbytes(16) + page[16:]
    yield bytes(each ^ rng.randrange(256) if rng.random() < FLIPPED else each for each in page)


def damaged_files(whole: bytes) -> Iterator[bytes]:
    """The file with each of its pages damaged in each way, and cut off at each page."""
    rng = random.Random(15)
    for at in range(0, len(whole), PAGE):
        for page in damaged_pages(whole[at : at + PAGE], whole[PAGE : 2 * PAGE], rng):
            yield whole[:at] + page + whole[at + PAGE :]
        yield whole[: at + PAGE // 2]


async def test_every_line_about_a_damaged_page_is_a_sentence_of_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ACCORD_URL", "ACCORD_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    await build_log(tmp_path)
    file = tmp_path / DATABASE_NAME
    found = 0
    for content in damaged_files(file.read_bytes()):
        for other in (f"{DATABASE_NAME}-wal", f"{DATABASE_NAME}-shm"):
            (tmp_path / other).unlink(missing_ok=True)
        file.write_bytes(content)
        code = await asyncio.to_thread(main, ["verify", "--data-dir", str(tmp_path)])
        printed = "".join(capsys.readouterr())
        strange = [line for line in printed.splitlines() if not KNOWN.fullmatch(line)]
        assert code in EXIT_CODES, printed
        assert not strange, printed
        found += code != 0
    assert found > len(file.read_bytes()) // PAGE
