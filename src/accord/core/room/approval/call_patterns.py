"""Patterns of calls: commands by their words, files by their paths."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from accord.core.room.state import CallSubject

ONE_WORD, REST = "*", "**"
SHELL_CHARACTERS = frozenset("'\"\\$`;&|<>()")


def words_match(pattern: Sequence[str], words: Sequence[str]) -> bool:
    """Whether words match a pattern: `*` is one word, a last `**` any words."""
    for position, part in enumerate(pattern):
        if part == REST and position == len(pattern) - 1:
            return True
        if position >= len(words) or not word_matches(part, words[position]):
            return False
    return len(words) == len(pattern)


def word_matches(part: str, word: str) -> bool:
    """`*` anywhere in a part is any text; it never turns a word into an option."""
    if ONE_WORD not in part:
        return part == word
    if word.startswith("-") and not part.startswith("-"):
        return False
    return re.fullmatch(re.escape(part).replace(r"\*", ".*"), word, re.DOTALL) is not None


def command_pattern_problems(pattern: str) -> Iterator[str]:
    """Why a text is no pattern of commands."""
    words = pattern.split()
    if not words or ONE_WORD in words[0]:
        yield f"{pattern!r} must begin with a program"
    elif REST in words[:-1]:
        yield f"{pattern!r}: `**` is allowed only at the end"
    elif SHELL_CHARACTERS & {*pattern}:
        yield f"{pattern!r}: write the words as a program gets them, without quotes and operators"


@lru_cache(maxsize=1024)
def _path_pattern(pattern: str) -> re.Pattern[str]:
    if pattern.endswith("/"):
        pattern += REST
    text = re.escape(pattern)
    text = text.replace(r"\*\*/", "(?:.*/)?").replace(r"\*\*", ".*")
    text = text.replace(r"\*", "[^/]*").replace(r"\?", "[^/]")
    return re.compile(text, re.DOTALL)


def path_matches(path: str, pattern: str) -> bool:
    """`*` stays within a component, `**` crosses them, a last `/` means everything below.

    A pattern without a slash matches the last component anywhere, as in `.gitignore`.
    """
    if "/" not in pattern:
        return _path_pattern(pattern).fullmatch(path.rsplit("/", 1)[-1]) is not None
    return _path_pattern(pattern.removeprefix("./")).fullmatch(path) is not None


def subjects_match(
    subjects: Sequence[CallSubject], run: Iterable[str], write: Iterable[str]
) -> bool:
    """Whether everything that a call does matches one of the patterns."""
    commands, files = [pattern.split() for pattern in run], tuple(write)
    return bool(subjects) and all(
        any(words_match(pattern, subject.run) for pattern in commands)
        if subject.run
        else any(path_matches(subject.write, pattern) for pattern in files)
        for subject in subjects
    )
