"""Entries in TOML files: tables at the end, taken out to the byte, everything else untouched."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accord.hosts.configuration.entry import ConfigurationError, Entry, without_spans
from accord.hosts.configuration.toml_entries import TomlFile, prune, value_text
from tests.hosts.configuration.config_texts import HOOK, RECORD, TOML_TABLES, texts, toml_texts

TOML = TomlFile()
MCP = Entry(
    path=("mcp_servers",),
    key="accord",
    value={"command": "accord", "args": ["mcp"], "required": True, "env": {"A b": "1"}},
)
GATE, STOP = (
    Entry(
        path=("hooks", event),
        value={"hooks": [{"type": "command", "command": HOOK, "timeout": 60}]},
        mark=RECORD,
    )
    for event in ("PreToolUse", "Stop")
)
ENTRIES = (MCP, GATE, STOP)


@given(toml_texts())
def test_entries_are_added_and_the_inserted_span_is_all_that_differs(text: str) -> None:
    added = TOML.add(text, ENTRIES)

    before, after = TOML.values(text), TOML.values(added.text)
    assert after["mcp_servers"]["accord"] == MCP.value
    assert after["hooks"]["Stop"] == [*before.get("hooks", {}).get("Stop", []), STOP.value]
    assert without_spans(added.text, added.spans) == text


@given(toml_texts(), st.lists(st.sampled_from(TOML_TABLES), unique=True, max_size=2))
def test_what_others_append_stays_when_our_tables_go(text: str, later: list[str]) -> None:
    added = TOML.add(text, ENTRIES)
    new = [table for table in later if table.splitlines()[0] not in text]
    edited = added.text + "\n".join(["", *new, ""])

    stripped = TOML.strip(edited, ENTRIES, ())

    wanted = text + "\n".join(["", *new, ""])
    assert prune(TOML.values(stripped)) == prune(TOML.values(wanted))
    assert filled_lines(stripped) == filled_lines(wanted)
    assert RECORD not in stripped


def filled_lines(text: str) -> list[str]:
    """All lines, comments included, but those that are blank."""
    return [line for line in text.splitlines() if line.strip()]


@given(toml_texts())
def test_stripping_what_was_never_added_changes_nothing(text: str) -> None:
    assert TOML.strip(text, ENTRIES, ()) == text


@given(texts)
def test_every_text_is_written_as_it_is(text: str) -> None:
    assert tomllib.loads(f"a = {value_text(text)}") == {"a": text}


def test_an_edited_entry_is_still_found() -> None:
    edited = TOML.add('model = "x"\n', ENTRIES).text.replace("timeout = 60", "timeout = 5 # why")

    assert TOML.strip(edited, ENTRIES, ()) == 'model = "x"\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("= 1", "line 1"),
        ("a = [" * 3000, "line 1"),
        ('[mcp_servers.accord]\ncommand = "x"', "already has mcp_servers.accord"),
        ("mcp_servers = {}", "cannot be added as tables"),
        ("[hooks]\nStop = [{}]", "cannot be added as tables"),
        ("hooks = 1", "cannot be added as tables"),
        ("[hooks]\nStop = 1", "cannot be added as tables"),
    ],
)
def test_a_file_that_cannot_be_changed_says_why(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        TOML.add(text, ENTRIES)

    assert said in str(error.value) or "levels" in str(error.value)


def test_entries_that_were_rewritten_inline_are_left_to_the_person() -> None:
    text = 'mcp_servers = { accord = { command = "accord" } }\n'

    with pytest.raises(ConfigurationError, match="remove it by hand"):
        TOML.strip(text, ENTRIES, ())


def test_no_entries_change_nothing() -> None:
    assert TOML.add("a = 1", ()).text == "a = 1"
