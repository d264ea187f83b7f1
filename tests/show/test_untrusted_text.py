"""Whatever others write, wherever they write it, steers no terminal and marks up no page."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accord.cli.session.command import _render_session
from accord.show.gate_card import render_gate
from accord.show.html_page import render_page
from accord.show.markdown import render_markdown
from accord.show.output import print_json, print_table
from accord.show.text import escape_json
from accord.show.timeline.timeline import HANDLERS_BY_TYPE, turns_of
from accord.show.transcript import render_transcript
from tests.helpers.seeds import LONG

Detail = dict[str, Any]
TIME = "2026-01-30T20:00:00Z"
MARKUP = re.compile(r"(?<!\\)(?:\\\\)*[`*_{}\[\]<>#|~&]")
NASTY = [
    "\x1b[2J",
    "\x9b31m",
    "\u202e",
    "\u2066",
    "\r",
    "\0",
    "\x7f",
    "<script>",
    "`",
    "](x)",
    "# h",
]
WORDS = st.lists(st.sampled_from(NASTY) | st.text(), min_size=1, max_size=4).map(
    lambda parts: "x" + "".join(parts)
)


def rules(word: str) -> list[Detail]:
    kinds: list[Detail] = [
        {"type": "label", "label": word, "count": 1},
        {"type": "role", "role": word, "count": 1},
        {"type": "specific", "participants": [word, word]},
        {"type": word},
    ]
    return [*kinds, {"type": "all_of", "rules": kinds}]


def envelopes(word: str) -> list[Detail]:
    """One of each type that is told, with the word in every place that holds text."""
    payload = {
        **dict.fromkeys(("name", "reason", "comment", "error", "text", "message"), word),
        **dict.fromkeys(("action_ref", "gate", "tool_proposal"), "x"),
        **dict.fromkeys(("id", "type", "final_state", "target_agent", "content"), word),
        **dict.fromkeys(("finish_reason", "tool_name", "risk_level", "category"), word),
        **dict.fromkeys(("description", "action_type", "resolution"), word),
        **dict.fromkeys(("amendment", "key", "content_type", "urgency", "target"), word),
        **dict.fromkeys(("inject_context", "action_taken", "ignore_reason", "summary"), word),
        **dict.fromkeys(("source_fork", "target_fork", "strategy", "diff", "new_content"), word),
        **dict.fromkeys(("original_prompt", "interrupt", "merge_proposal", "from_point"), "x"),
        **{name: [word] for name in ("scope", "participants", "visible_to", "tags")},
        "resolved_conflicts": [{"conflict_id": word, "resolution": word, "custom_value": word}],
        "participant": word,
        "roles": [word],
        "new_roles": [word],
        "approved_by": [word],
        "changes": {word: word},
        "arguments": {word: [word]},
        "quorum": rules(word)[-1],
        "timeout_seconds": 0,
        "approvals_received": 0,
        "approvals_required": 1,
        "success": False,
        "duration_ms": 1,
    }
    plain = [
        {"id": "x", "ts": TIME, "sender": word, "seq": 1, "ref": "x", "type": type_}
        | {"payload": payload | ({"participant": {"id": word}} if type_ == "session.join" else {})}
        for type_ in HANDLERS_BY_TYPE
    ]
    typed = payload | {"arguments": {"argv": [word]}}
    return [*plain, plain[-1] | {"type": "tool.propose", "payload": typed, "ts": word}]


def detail(word: str) -> Detail:
    action = {
        **dict.fromkeys(("id", "agent", "tool_name", "category", "risk_level"), word),
        "description": word,
        "arguments": {word: word},
        "approved": True,
    }
    gates = [
        {
            "id": word,
            "initiator": word,
            "request": {"action_type": word, "quorum": rule, "message": word, "action_ref": word},
            "approvals": [word],
            "approvals_received": 1,
            "approvals_required": 2,
            "lacks": [{"rule": rule, "missing": 1, "possible": False}],
            "expires_at": word,
            "action": about,
        }
        for rule in rules(word)
        for about in (action, None)
    ]
    config = {
        "require_approval_for": [word],
        "default_gate_quorum": rules(word)[-1],
        "on_participant_timeout": "wait",
        "away_timeout_seconds": 1,
        "max_participants": 1,
    }
    member = {"id": word, "name": word, "type": word, "roles": [word], "presence": word}
    return {
        **dict.fromkeys(("id", "name", "status", "created_by"), word),
        "created_at": TIME,
        "config": config,
        "members": [member],
        "gates": gates,
        "tools": [action],
        "open_gates": 1,
        "halted": {word: word},
        "forks": [
            {
                **dict.fromkeys(("id", "name", "from_point", "created_by", "into"), word),
                "parent": None,
                "members": [word],
                "created_at": TIME,
                "merged": True,
            }
        ],
        "merges": [],
        "context": [{"key": word, "fork": word, "author": word}],
    }


def harmless(shown: str) -> bool:
    return all(letter.isprintable() or letter in "\n\u200d" for letter in shown)


@example("x" + "".join(NASTY))
@settings(max_examples=100 if LONG else 30)
@given(WORDS)
def test_no_words_of_others_steer_a_terminal(word: str) -> None:
    told, about = turns_of(envelopes(word)), detail(word)

    assert harmless("\n".join(render_transcript(told, whole=True)))
    assert harmless("\n".join(_render_session(about)))
    assert harmless("\n".join(line for gate in about["gates"] for line in render_gate(gate, word)))
    assert harmless(render_markdown(about, told))
    assert harmless(render_page(about, told, head=word))


@given(WORDS)
def test_json_says_the_same_without_steering_a_terminal(word: str) -> None:
    said = json.dumps({word: word}, ensure_ascii=False, indent=2)

    assert harmless(escape_json(said))
    assert json.loads(escape_json(said)) == {word: word}


def test_columns_and_results_are_harmless_too(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("A",), [("\x1b[2J\x9b\u202e",)])
    print_json({"a": "\x1b[2J\x9b\u202e"})

    assert harmless(capsys.readouterr().out)


class Tags(HTMLParser):
    """The tags of a page, in order."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(f"{tag} {sorted(name for name, _ in attrs)}")


def alike(word: str, read: Callable[[str], object]) -> bool:
    """Whether a document has the same parts with these words as with harmless ones."""
    return read(word) == read("x")


@example("x" + "".join(NASTY))
@settings(max_examples=100 if LONG else 30)
@given(WORDS)
def test_no_words_of_others_are_markup_of_a_page(word: str) -> None:
    assert alike(
        word, lambda said: Tags(render_page(detail(said), turns_of(envelopes(said)))).found
    )


@example("x" + "".join(NASTY))
@settings(max_examples=100 if LONG else 30)
@given(WORDS)
def test_no_words_of_others_are_markup_of_markdown(word: str) -> None:
    def marks(said: str) -> list[str]:
        text = render_markdown(detail(said), turns_of(envelopes(said)))
        prose = re.sub(r"(?ms)^(`{3,})text$.*?^\1$", "", text)
        prose = re.sub(r"(?m)^(> ?|## ?|# |- Session: `.*`$)", "", prose)
        return sorted(set(map(str.strip, MARKUP.findall(prose.replace("**", "")))))

    assert alike(word, marks)
