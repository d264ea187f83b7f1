"""Entries in JSON files: added in place, taken out to the byte, everything else untouched."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.hosts.configuration.entry import ConfigurationError, Entry, without_spans
from accord.hosts.configuration.json_entries import JsonFile
from accord.hosts.configuration.jsonc import MAX_DEPTH, parse
from tests.hosts.configuration.config_texts import (
    ENTRIES,
    GATE,
    MCP,
    RECORD,
    STOP,
    json_texts,
)

STRICT, LENIENT = JsonFile(comments=False), JsonFile(comments=True)
lenient_texts = json_texts(with_comments=True)
strict_texts = json_texts(with_comments=False)


def with_ours(document: dict[str, Any]) -> dict[str, Any]:
    """What the file must mean afterwards."""
    result = copy.deepcopy(document)
    result.setdefault("mcpServers", {})["accord"] = MCP.value
    for entry in (GATE, STOP):
        result.setdefault("hooks", {}).setdefault(entry.path[-1], []).insert(0, entry.value)
    return result


@given(strict_texts)
def test_a_strict_file_is_read_as_json_reads_it(text: str) -> None:
    assert STRICT.values(text) == json.loads(text)


@given(lenient_texts)
def test_entries_are_added_and_nothing_else_changes_its_meaning(text: str) -> None:
    added = LENIENT.add(text, ENTRIES)

    assert LENIENT.values(added.text) == with_ours(LENIENT.values(text))


@given(strict_texts)
def test_a_strict_file_stays_strict(text: str) -> None:
    assert json.loads(STRICT.add(text, ENTRIES).text) == with_ours(json.loads(text))


@given(lenient_texts)
def test_the_inserted_spans_are_all_that_differs(text: str) -> None:
    added = LENIENT.add(text, ENTRIES)

    assert without_spans(added.text, added.spans) == text


@given(lenient_texts)
def test_stripping_an_edited_file_leaves_what_it_meant_before(text: str) -> None:
    added = LENIENT.add(text, ENTRIES)

    stripped = LENIENT.strip(added.text, ENTRIES, added.created)

    assert LENIENT.values(stripped) == LENIENT.values(text)
    assert sorted(comment_marks(stripped)) == sorted(comment_marks(text))


def comment_marks(text: str) -> list[str]:
    """All characters but blanks and commas, which may move with an entry."""
    return [each for each in text if each not in " \t\r\n,"]


@given(strict_texts, st.sampled_from([None, 2, 4]))
def test_a_file_that_the_host_rewrote_loses_our_entries_alone(text: str, indent: int) -> None:
    added = STRICT.add(text, ENTRIES)
    changed = json.loads(added.text)
    changed["numStartups"] = 7
    for group in changed["hooks"]["PreToolUse"]:
        if RECORD in json.dumps(group):
            group["hooks"][0]["timeout"] = 5

    stripped = STRICT.strip(json.dumps(changed, indent=indent), ENTRIES, added.created)

    assert json.loads(stripped) == {**json.loads(text), "numStartups": 7}


@given(lenient_texts)
def test_stripping_what_was_never_added_changes_nothing(text: str) -> None:
    assert LENIENT.strip(text, ENTRIES, ()) == text


def test_the_style_of_the_file_is_kept() -> None:
    text = '{\n    // mine\n    "model": "opus",\n    "hooks": {"Stop": []}\n}\n'

    assert LENIENT.add(text, [Entry(path=("hooks", "Stop"), value={"a": 1})]).text == (
        '{\n    // mine\n    "model": "opus",\n    "hooks": {"Stop": [\n        {\n'
        '            "a": 1\n        }\n    ]}\n}\n'
    )
    assert LENIENT.add(text, [Entry(path=("mcp",), key="accord", value=1)]).text == (
        '{\n    "mcp": {\n        "accord": 1\n    },\n    // mine\n    "model": "opus",\n'
        '    "hooks": {"Stop": []}\n}\n'
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1, column 1: the text ends too early"),
        ("[]", "one object in braces"),
        ('{"a": 1,}', "line 1, column 8: the last comma is one too many"),
        ("{} x", "something follows"),
        ('{"a" 1}', "a colon is missing"),
        ('{"a": 1 "b": 2}', "a comma is missing"),
        ('{"a": [1 2]}', "a comma is missing"),
        ('{\n  "a": }', "line 2, column 8: a value is missing"),
        ("{a: 1}", "a key in double quotes"),
        ('{"a": "\n"}', "line 1, column 8: Invalid control character"),
        ("{} // x", "comments are not allowed"),
        ('{"a": ' + "[" * (MAX_DEPTH + 9), "levels"),
        ('{"hooks": 1}', "hooks is not an object"),
        ('{"hooks": {"PreToolUse": {}}}', "hooks.PreToolUse is not a list"),
        ('{"mcpServers": {"accord": {}}}', "already has mcpServers.accord"),
    ],
)
def test_a_file_that_cannot_be_changed_says_where_and_why(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        STRICT.add(text, ENTRIES)

    assert said in str(error.value)


def test_an_open_comment_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="a comment has no end"):
        parse("{} /*", comments=True)


def test_of_two_equal_keys_the_last_one_gets_the_entry() -> None:
    added = STRICT.add('{"mcpServers": {}, "mcpServers": {"x": 1}}', [MCP])

    assert json.loads(added.text)["mcpServers"] == {"accord": MCP.value, "x": 1}


def test_strip_passes_over_containers_of_another_kind() -> None:
    text = '{"hooks": {"PreToolUse": 1}, "mcpServers": []}'

    assert STRICT.strip(text, ENTRIES, [("hooks", "Stop"), ("gone", "too")]) == text


def test_a_created_container_with_a_comment_stays() -> None:
    added = LENIENT.add("{}", [MCP])
    commented = added.text.replace('"accord"', '// why\n"accord"')

    assert LENIENT.values(LENIENT.strip(commented, [MCP], added.created)) == {"mcpServers": {}}
