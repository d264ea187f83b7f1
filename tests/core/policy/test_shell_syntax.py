"""Words and scripts as values: what is literal, and what is not understood."""

import pytest

from accord.core.policy.shell_syntax import read_word
from accord.shell_parser import MAX_SCRIPT_BYTES, parse_shell


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("a", "a"),
        ("'a b'", "a b"),
        ('"a b"', "a b"),
        ("a\\ b", "a b"),
        ('"a\\"b"', 'a"b'),
        ('"a\\nb"', "a\\nb"),
        ("a'b'\"c\"", "abc"),
        ("HEAD~1", "HEAD~1"),
        ("stash@{0}", "stash@{0}"),
        ("~/x", "~/x"),
    ],
)
def test_quotes_are_removed_as_bash_does(raw: str, text: str) -> None:
    word = read_word(raw)

    assert (word.text, word.literal) == (text, True)


@pytest.mark.parametrize(
    "raw",
    [
        *("$x", "`x`", '"$x"', "a`b`", "{a,b}", "{1..3}", "~root", "a=~", "a:~", "$'x'", "<(x)"),
        *("'a", '"a'),
    ],
)
def test_what_bash_would_expand_is_not_literal(raw: str) -> None:
    assert not read_word(raw).literal


@pytest.mark.parametrize("raw", ["\\", "a\\\nb", '"a\\\nb"', '"a\\'])
def test_a_line_continuation_is_not_literal(raw: str) -> None:
    assert not read_word(raw).literal


def test_globs_and_home_are_noticed_where_they_are_not_quoted() -> None:
    assert read_word("*.py").glob
    assert not read_word("'*.py'").glob
    assert read_word("~").home
    assert not read_word("'~'").home


@pytest.mark.parametrize(
    "text",
    [
        *("ls (", "f() { ls; }", "\0", "\ud800", "{\U000e23ee}"),
        *("x" * (MAX_SCRIPT_BYTES + 1), "ls\n" * 600),
    ],
    ids=["syntax", "function", "NUL", "surrogate", "brace", "size", "commands"],
)
def test_what_cannot_be_read_as_a_whole_has_a_problem_and_is_not_plain(text: str) -> None:
    script = parse_shell(text)

    assert script.problem
    assert not script.plain


def test_letters_of_all_alphabets_stay_as_they_are() -> None:
    (command,) = parse_shell("cat 'ü b' é.txt").commands

    assert [word.text for word in command.words] == ["cat", "ü b", "é.txt"]


def test_a_deeply_nested_script_has_a_problem() -> None:
    assert parse_shell("(" * 300 + "ls" + ")" * 300).problem
