"""What a scripted agent says and does, read from a file.

[[reply]]
when = "changelog"                          # a prompt that contains this; absent: any prompt

[[reply.steps]]
say = "I add a line to the changelog."

[[reply.steps]]
propose = "shell"
arguments = { argv = ["git", "status"] }
description = "See what has changed"
category = "shell_execute"
risk = "low"
granted = [{ say = "It printed: {output}" }]
rejected = [{ say = "Then I leave it: {reason}" }]
"""

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from accord.core.room.state import Category, Risk


class ScriptError(ValueError):
    """The file is no script; the sentence says where it goes wrong."""


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Say something, or propose a tool and go on as it is decided.

    `hasty` asks to run before anybody has agreed, to see that the answer is no.
    """

    say: str | None = None
    propose: str | None = None
    arguments: dict[str, Any] = {}
    description: str = ""
    category: Category = Category.SHELL_EXECUTE
    risk: Risk = Risk.MEDIUM
    hasty: bool = False
    granted: tuple["Step", ...] = ()
    rejected: tuple["Step", ...] = ()

    def __post_init__(self) -> None:
        """Exactly one of the two."""
        if (self.say is None) == (self.propose is None):
            raise ValueError("a step says something or proposes something")


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What follows on a prompt that contains `when`."""

    steps: tuple[Step, ...]
    when: str = ""

    def fits(self, prompt: str) -> bool:
        """Whether this answers the prompt; letters' case does not matter."""
        return self.when.casefold() in prompt.casefold()


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replies in order; the first that fits is played."""

    reply: tuple[Reply, ...]

    def answer(self, prompt: str) -> tuple[Step, ...]:
        """What to do about this prompt."""
        found = (reply.steps for reply in self.reply if reply.fits(prompt))
        return next(found, (Step(say="I have no line for that."),))


def load(file: Path) -> Script:
    """The script in a TOML or JSON file."""
    try:
        text = file.read_text("utf-8")
        said = msgspec.json.decode(text) if file.suffix == ".json" else tomllib.loads(text)
        return msgspec.convert(said, Script)
    except OSError as error:
        raise ScriptError(f"{file} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.MsgspecError) as error:
        raise ScriptError(f"{file}: {error}") from None
