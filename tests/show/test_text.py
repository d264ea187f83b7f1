"""Words from others, made fit to be shown."""

import shlex
import subprocess
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accord.show import text
from accord.show.html_page import render_page
from accord.show.markdown import code_block, escape_markdown
from accord.show.output import fit_columns
from accord.show.timeline.state import Turn
from accord.show.timeline.timeline import turns_of
from accord.show.transcript import render_listing, render_transcript

SESSION = {
    "id": "ses_1",
    "name": "",
    "status": "active",
    "created_at": "2026-01-30T20:00:00.000Z",
    "created_by": "alice",
}


@given(st.text())
def test_nothing_that_is_shown_can_steer_a_terminal(words: str) -> None:
    shown = text.escape_controls(words)

    assert all(letter.isprintable() or letter in "\n\u200d" for letter in shown)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        ("plain – é 漢 👩‍💻", "plain – é 漢 👩‍💻"),
        ("one\r\ntwo\ttabs", "one\ntwo tabs"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("user\u202etxt.exe", r"user\u202etxt.exe"),
        ("a\rb", r"a\rb"),
        ("\x9b31m", r"\x9b31m"),
    ],
)
def test_control_characters_are_spelled_out(words: str, shown: str) -> None:
    assert text.escape_controls(words) == shown


def test_of_what_a_tool_printed_colours_are_dropped_and_the_rest_is_kept() -> None:
    assert text.strip_styles("\x1b[01;34mdir\x1b[0m \x1b[2J") == "dir \x1b[2J"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (0.051, "51 ms"),
        (1.2, "1.2 s"),
        (3, "3 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (299, "4 min 59 s"),
        (3600, "1 h"),
        (43_199, "11 h 59 min"),
        (90_000, "1 d 1 h"),
    ],
)
def test_durations_are_said_as_people_say_them(seconds: float, said: str) -> None:
    assert text.format_duration(seconds) == said


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"type": "any", "count": 1}, "1 approval"),
        ({"type": "any", "count": 2}, "2 approvals"),
        ({"type": "all"}, "the approval of everyone who may approve"),
        ({"type": "majority"}, "the approval of more than half of those who may"),
        ({"type": "role", "role": "approver", "count": 2}, "2 approvals by role approver"),
        ({"type": "label", "label": "legal", "count": 1}, "1 approval by label legal"),
        ({"type": "specific", "participants": ["a", "b"]}, "the approval of a and b"),
        (
            {"type": "all_of", "rules": [{"type": "any", "count": 2}, {"type": "all"}]},
            "2 approvals and the approval of everyone who may approve",
        ),
        ({"type": "of a later version"}, '{"type": "of a later version"}'),
    ],
)
def test_a_quorum_is_said_in_words(rule: dict[str, object], said: str) -> None:
    assert text.describe_quorum(rule) == said


TWO_MORE = '{\n  "argv": [\n    "ls"\n  ],\n  "cwd": 1,\n  "decision": 2\n}'


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"argv": ["git", "commit", "-m", "a b"]}, "$ git commit -m 'a b'"),
        ({"command": "ls -l"}, "$ ls -l"),
        ({"argv": ["ls"], "cwd": "/"}, '{\n  "argv": [\n    "ls"\n  ],\n  "cwd": "/"\n}'),
        ({"argv": ["ls", "a b"], "command": "ls 'a b'", "full_command": "ls 'a b'"}, "$ ls 'a b'"),
        ({"command": "npm", "full_command": "npm test"}, "$ npm test"),
        ({"full_command": "npm test"}, "$ npm test"),
        ({"command": 7, "full_command": 7}, '{\n  "command": 7,\n  "full_command": 7\n}'),
        (
            {"argv": ["rm"], "command": "ls"},
            f'{text.CONTRADICTION}\n{{\n  "argv": [\n    "rm"\n  ],\n  "command": "ls"\n}}',
        ),
        (
            {"command": "ls", "full_command": "rm x"},
            f'{text.CONTRADICTION}\n{{\n  "command": "ls",\n  "full_command": "rm x"\n}}',
        ),
        ({"argv": "ls"}, '{\n  "argv": "ls"\n}'),
        ({"argv": ["ls"], "decision": {"step": "a\nb"}}, 'decision {"step": "a\\nb"}\n$ ls'),
        ({"argv": ["ls"], "cwd": 1, "decision": 2}, TWO_MORE),
        ({"decision": "x"}, '{\n  "decision": "x"\n}'),
    ],
)
def test_what_would_be_run_is_shown_whole(arguments: dict[str, object], shown: str) -> None:
    assert text.render_invocation(arguments) == shown


def test_prose_is_wrapped_and_its_own_lines_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")

    lines = list(
        text.wrap("one two three four five six\n\n  - item that is longer than that", "> ")
    )

    assert lines == [
        "> one two three four five six",
        ">",
        ">   - item that is longer than",
        ">   that",
    ]
    assert list(text.wrap("a\nb\nc", max_lines=1)) == ["a", "… 2 more lines"]


def test_rules_are_said_in_one_line() -> None:
    def said(*categories: str) -> str:
        config = {
            "require_approval_for": list(categories),
            "default_gate_quorum": {"type": "any", "count": 1},
        }
        return text.describe_gating(config)

    assert said() == "only risky actions need 1 approval"
    assert said("all") == "everything needs 1 approval"
    assert said("deploy", "database") == "deploy and database need 1 approval"
    assert said(*text.ALL_BUT_READ_CATEGORIES) == "everything but reading files needs 1 approval"


def test_long_output_is_cut_and_a_proposal_never(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    many = "\n".join(map(str, range(100)))

    def shown(kind: str, *, whole: bool = False) -> list[str]:
        turn = Turn(kind, "2026-01-30T20:00:00Z", "claude", "does", code=many)
        return list(render_transcript([turn], whole=whole))

    assert shown("output")[-1] == "          │ … 60 more lines; --full shows all"
    assert shown("output", whole=True)[-1] == "          │ 99"
    assert shown("proposal")[-1] == "          │ 99"
    assert list(render_listing("x" * 100, indent="")) == ["│ " + "x" * 98, "│↪ xx"]


def test_a_line_that_goes_on_below_cannot_be_taken_for_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "30")

    assert list(render_listing("$ git push --force origin main:main\n↪ done", indent="")) == [
        "│ $ git push --force origin",
        "│↪  main:main",
        "│ ↪ done",
    ]


def lack(missing: int, *, possible: bool = True, **rule: object) -> dict[str, object]:
    return {"rule": rule, "missing": missing, "possible": possible}


def test_what_is_still_missing_is_said_by_rule() -> None:
    anybody = lack(1, type="any", count=2)
    security = lack(1, type="label", label="security", count=1, possible=False)
    both = lack(1, type="specific", participants=["alice", "bob"])

    assert text.describe_missing([anybody], ["alice"]) == "1 more approval"
    assert text.describe_missing([anybody, security], ["alice"]) == "1 approval by label security"
    assert text.describe_missing([both], ["alice"]) == "the approval of bob"
    assert (
        text.describe_missing([lack(2, type="all")], [])
        == "2 more approvals, as everyone must agree"
    )
    assert text.describe_missing([], ["alice"]) == ""


def test_each_day_has_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Turn("note", "2026-01-30T12:00:00Z", "alice", "came")
    two = Turn("note", "2026-01-31T12:00:00Z", "alice", "went")

    days = [line for line in render_transcript([one, two]) if "2026" in line]

    assert days == ["Friday, 30 January 2026", "Saturday, 31 January 2026"]


def test_the_page_of_an_empty_session_says_so() -> None:
    assert "This session has no messages yet." in render_page(SESSION, [])


class Tags(HTMLParser):
    """The tags of a page, in order."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(f"{tag} {sorted(name for name, _ in attrs)}")


@given(st.text(min_size=1))
def test_no_words_of_others_become_markup_of_the_page(words: str) -> None:
    words = f"x{words}"

    def tags(by: str) -> list[str]:
        turn = Turn("answer", "2026-01-30T20:00:00Z", by, by, text=by, code=by)
        named = {**SESSION, "id": by, "name": by, "status": by, "created_by": by}
        return Tags(render_page(named, [turn], head=by)).found

    assert tags(words) == tags("x")


def test_a_fence_is_longer_than_any_inside() -> None:
    assert list(code_block("a\n````\nb")) == ["`````text", "a\n````\nb", "`````"]
    assert escape_markdown("*a* <b> [c](d) `e`") == r"\*a\* \<b\> \[c\](d) \`e\`"


def said(type_: str, payload: dict[str, object], **more: object) -> dict[str, object]:
    head = {"id": type_, "ts": "2026-01-30T20:00:00Z", "sender": "system", "seq": 1}
    return {**head, "type": type_, "payload": payload, **more}


def test_what_is_rare_has_its_words_too() -> None:
    told = turns_of(
        [
            said("session.create", {"name": None}, sender="alice"),
            said("session.leave", {"participant": "bob", "reason": "Connection lost"}),
            said("session.config_update", {"changes": {"a": 1}, "reason": "r"}, sender="alice"),
            said(
                "participant.role_change",
                {"participant": "bob", "new_roles": ["approver"]},
                sender="alice",
            ),
            said(
                "gate.timeout",
                {
                    "gate": "g",
                    "resolution": "rejected",
                    "approvals_received": 0,
                    "approvals_required": 1,
                },
            ),
            said("response.start", {"agent": "claude", "prompt_ref": "p"}, id="r"),
            said("response.end", {"finish_reason": "max_tokens"}, ref="r"),
            said(
                "tool.result",
                {"tool_proposal": "t", "success": False, "duration_ms": 5, "error": "no"},
            ),
            said("of.a.later.version", {}),
        ]
    )

    assert [(turn.who, turn.title) for turn in told] == [
        ("alice", "opened the session"),
        ("bob", "left"),
        ("alice", "changed the rules: a = 1"),
        ("alice", "made bob approver"),
        ("system", "time is up, rejected (0 of 1 approval)"),
        ("system", "answers (max tokens)"),
        ("system", "failed at it after 5 ms"),
    ]


def test_forks_interrupts_context_and_thinking_read_like_the_rest() -> None:
    add: dict[str, object] = {"key": "plan", "content_type": "text", "content": "Twelve rules"}
    hashed: dict[str, object] = {
        "hash": "ab",
        "size_bytes": 1,
        "mime_type": "text/plain",
        "storage": "s3",
    }
    ref: dict[str, object] = {
        "key": "log",
        "content_type": "reference",
        "content_ref": hashed,
        "visible_to": ["bob"],
    }
    point: dict[str, object] = {
        "name": "Try",
        "from_point": "m",
        "reason": "why",
        "copy_context": True,
    }
    offer: dict[str, object] = {
        "source_fork": "try",
        "target_fork": "",
        "strategy": "manual",
        "summary": "Good",
    }
    answer: dict[str, object] = {"conflict_id": "plan", "resolution": "use_source"}
    stop: dict[str, object] = {
        "urgency": "stop",
        "message": "Wait",
        "target": "claude",
        "inject_context": "It burns",
    }
    told = turns_of(
        [
            said("context.add", add),
            said("context.add", ref),
            said("context.update", {"key": "plan", "reason": "r", "new_content": {"a": 1}}),
            said("context.remove", {"key": "plan", "reason": "old"}),
            said("secret.share", {"key": "db", "scope": ["bob"], "value_ref": ""}, sender="alice"),
            said("secret.revoke", {"key": "db", "reason": "It has expired"}),
            said("secret.revoke", {"key": "db", "reason": "Rotated"}, sender="alice"),
            said("prompt.amend", {"original_prompt": "p", "amendment": "More", "reason": "r"}),
            said("thinking.start", {"visible_to": "all"}, id="t"),
            said("thinking.chunk", {"text": "Hm."}, ref="t"),
            said("thinking.end", {"summary": "Yes"}, ref="t"),
            said("thinking.start", {"visible_to": ["bob"]}, id="u"),
            said("thinking.end", {"summary": "No"}, ref="u"),
            said("interrupt.raise", stop),
            said("interrupt.acknowledge", {"interrupt": "i", "action_taken": "stopped"}),
            said("fork.create", {**point, "participants": ["bob"]}, fork="try", sender="alice"),
            said("fork.switch", {"target_fork": ""}),
            said("merge.propose", offer, id="o"),
            said("merge.execute", {"merge_proposal": "o", "resolved_conflicts": [answer]}),
            said("prompt.submit", {"target_agent": "claude", "content": "x"}, fork="try"),
        ]
    )

    assert [(turn.title, turn.text) for turn in told] == [
        ("adds the context plan", ""),
        ("adds the context log for bob", ""),
        ("changes the context plan", "r"),
        ("removes the context plan", "old"),
        ("shares the secret db with bob", ""),
        ("The secret db is no longer valid", "It has expired"),
        ("revokes the secret db", "Rotated"),
        ("amends the prompt (r)", "More"),
        ("thinks", "Hm."),
        ("thinks for bob", "No"),
        ("tells claude to stop", "Wait\nIt burns"),
        ("has stopped", ""),
        ("opens the fork try with bob", "why"),
        ("switches to main", ""),
        ("proposes to merge try into main (manual)", "Good"),
        ("merges try", "plan: use_source"),
        ("asks claude", "x"),
    ]
    assert [turn.code for turn in told[:3]] == ["Twelve rules", "ab (text/plain)", '{\n  "a": 1\n}']
    assert [turn.fork for turn in told if turn.fork] == ["try"]
    assert "asks claude · in try" in "\n".join(render_transcript(told[-1:]))
    assert "asks claude · in try" in render_page(SESSION, told[-1:])


def test_a_table_fits_the_terminal_and_its_first_column_stays_whole() -> None:
    heads = ("SESSION", "NAME", "GATES", "OPENED")
    rows = [("ses_01M7GN81AE60EE63YYXDSKNV8F", "a long name " * 9, "", "2026-01-30 20:00")]

    lines = fit_columns([heads, *rows], 80)

    assert lines[0] == ["SESSION", "NAME", "OPENED"]
    assert [lines[1][0], lines[1][2]] == [rows[0][0], rows[0][3]]
    assert lines[1][1].endswith("…")
    assert sum(map(len, lines[1])) + 4 <= 80
    assert fit_columns([heads, *rows], 500) == [heads, *rows]
    assert fit_columns([heads, *rows], 10)[1][0] == rows[0][0]


def test_a_joiner_is_shown_beside_plain_letters_and_holds_emoji_together() -> None:
    family = "\U0001f469\u200d\U0001f467"

    assert text.escape_controls(f"{family}\n") == f"{family}\n"
    assert text.escape_controls("requireme\u200dnts") == "requireme\\u200dnts"


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("plain", "plain"),
        ("two words", "'two words'"),
        ("printf 'a\\n' >> x", "\"printf 'a\\n' >> x\""),
        ("it's $HOME", "'it'\"'\"'s $HOME'"),
    ],
)
def test_a_word_with_quotes_is_shown_in_others(word: str, shown: str) -> None:
    assert text.shell_quote(word) == shown


@given(st.text(st.sampled_from("ab '\"$`!\\\n"), max_size=12))
@settings(deadline=None, max_examples=60)
def test_a_shell_reads_the_very_word(word: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f"printf %s {text.shell_quote(word)}"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == word
    assert shlex.split(text.shell_quote(word)) == [word]
