"""The reference says what the code says, wherever it is made."""

import re
from pathlib import Path

import msgspec
import pytest

from accord.core.dialects import pvp
from accord.core.kernel import ballot
from tests.docs.page_blocks import ROOT, parse_blocks
from tools import gendocs
from tools.reference import words

REFERENCE = ROOT / "docs" / "reference"


def examples(page: str) -> list[str]:
    text = (REFERENCE / page).read_text("utf-8")
    return [block.text for block in parse_blocks(text) if block.language == "json"]


@pytest.mark.parametrize("name", sorted(gendocs.TABLES))
def test_a_table_is_the_same_on_every_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    narrow = list(gendocs.TABLES[name]())
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("FORCE_COLOR", "1")

    assert narrow == list(gendocs.TABLES[name]())
    assert "\x1b" not in "".join(narrow)


def test_a_page_that_was_changed_by_hand_is_noticed() -> None:
    text = (REFERENCE / "errors.md").read_text("utf-8")
    changed = text.replace("| `SESSION_NOT_FOUND` |", "| `SESSION_GONE` |", 1)

    assert changed != text
    assert gendocs.fill_tables(changed) == gendocs.fill_tables(text) != changed


def test_filling_a_page_twice_is_filling_it_once() -> None:
    text = "before\n<!-- table: risks -->\nold\n<!-- end of table -->\nafter\n"
    once = gendocs.fill_tables(text)

    assert "old" not in once
    assert once == gendocs.fill_tables(once)


def test_a_table_that_nobody_makes_is_an_error() -> None:
    with pytest.raises(gendocs.PageError, match="no table 'wishes'"):
        gendocs.fill_tables("<!-- table: wishes -->\n<!-- end of table -->\n")


def test_a_table_that_no_page_holds_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing", "utf-8")

    with pytest.raises(gendocs.PageError, match="no page holds"):
        list(gendocs.generate_pages([page]))


def test_a_name_without_a_sentence_and_a_sentence_without_a_name_are_errors() -> None:
    with pytest.raises(words.WordsError, match="extreme has no sentence"):
        words.sentences_of("risks", ["low", "medium", "high", "critical", "extreme"])
    with pytest.raises(words.WordsError, match="critical is gone"):
        words.sentences_of("risks", ["low", "medium", "high"])


@pytest.mark.parametrize("text", examples("quorum.md"))
def test_the_quorums_shown_are_quorums(text: str) -> None:
    ballot.check_quorum(msgspec.json.decode(text, type=ballot.Quorum))


def test_the_envelope_shown_is_one() -> None:
    [shown] = examples("primitives.md")

    assert pvp.decode(shown.encode()).body.type == "prompt.submit"


def test_the_readme_counts_right() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    [(here, all_)] = re.findall(r"(\d+) of (\d+) message types", readme)

    assert (int(here), int(all_)) == (len(pvp.BODIES), len(pvp.PRIMITIVES))
