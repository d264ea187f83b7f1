"""What a browser loads before a screen works stays within its budget, compressed as served."""

import gzip
import json
import re
import struct
from collections.abc import Iterable
from pathlib import Path

import pytest

from tools.page import BUILT, WEB

KIB = 1024
ASSETS = BUILT / "assets"
FIRST_SCREENS = ("Home", "Session", "Gate")
# They are part of the frame, or show nothing of their own.
NOT_COUNTED = {"SignIn", "Unknown"}
FURTHER_SCREENS = sorted(
    file.stem
    for file in (WEB / "src" / "screens").glob("*.svelte")
    if file.stem not in {*FIRST_SCREENS, *NOT_COUNTED}
)
STATIC_IMPORT = re.compile(r'(?:from|import)"\./([\w.-]+\.js)"')


def entry() -> Path:
    found = re.search(r'<script [^>]*src="/assets/([^"]+)"', (BUILT / "index.html").read_text())
    assert found
    return ASSETS / found[1]


def chunk(screen: str) -> Path:
    (found,) = ASSETS.glob(f"{screen}-*.js")
    return found


def loaded(*roots: Path) -> set[Path]:
    """These files and everything that they import before they run."""
    found: set[Path] = set()
    waiting = list(roots)
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting += [ASSETS / name for name in STATIC_IMPORT.findall(file.read_text("utf-8"))]
    return found


def kib(files: Iterable[Path]) -> float:
    return sum(len(gzip.compress(file.read_bytes(), 9, mtime=0)) for file in files) / KIB


def test_home_session_and_gate_need_at_most_90_kib_of_script() -> None:
    assert kib(loaded(entry(), *map(chunk, FIRST_SCREENS))) <= 90


def test_gate_alone_needs_less_than_60_kib_of_script() -> None:
    assert kib(loaded(entry(), chunk("Gate"))) < 60


@pytest.mark.parametrize("screen", FURTHER_SCREENS)
def test_further_screen_adds_at_most_25_kib_of_script(screen: str) -> None:
    first = loaded(entry(), *map(chunk, FIRST_SCREENS))

    assert kib(loaded(chunk(screen)) - first) <= 25


def test_fonts_need_at_most_90_kib() -> None:
    assert sum(file.stat().st_size for file in ASSETS.glob("*.woff2")) <= 90 * KIB


def test_count_sees_what_a_file_imports() -> None:
    """A bundler that writes imports in another way would make the other tests pass for nothing."""
    first = loaded(entry(), *map(chunk, FIRST_SCREENS))

    assert len(first) > len(FIRST_SCREENS) + 1
    assert kib(first) > 60


def test_installed_page_has_icons_of_the_sizes_it_declares() -> None:
    manifest = json.loads((BUILT / "manifest.webmanifest").read_text("utf-8"))
    drawn = [icon for icon in manifest["icons"] if icon["type"] == "image/png"]

    assert {icon["sizes"] for icon in drawn} == {"192x192", "512x512"}
    for icon in drawn:
        header = (BUILT / icon["src"].lstrip("/")).read_bytes()[:24]
        width, height = struct.unpack(">II", header[16:24])
        assert icon["sizes"] == f"{width}x{height}"
