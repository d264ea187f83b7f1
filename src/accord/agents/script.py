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

[[reply.steps]]
share = "findings"                          # a key on the shelf, where the prompt was
text = "It is the brackets."

An amendment is looked up among the replies that have a `when`: what is found there is played
instead of the steps that are left.
"""

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from accord.core.room.state import Category, Risk

UNREADABLE = (
    UnicodeDecodeError,
    tomllib.TOMLDecodeError,
    msgspec.MsgspecError,
    RecursionError,
)


class ScriptError(ValueError):
    """The file is no script; the sentence says where it goes wrong."""


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Say something, share it as context, or propose a tool and go on as it is decided.

    `hasty` asks to run before anybody has agreed, to see that the answer is no.
    """

    say: str | None = None
    share: str | None = None
    text: str = ""
    propose: str | None = None
    arguments: dict[str, Any] = {}
    description: str = ""
    category: Category = Category.SHELL_EXECUTE
    risk: Risk = Risk.MEDIUM
    hasty: bool = False
    granted: tuple["Step", ...] = ()
    rejected: tuple["Step", ...] = ()

    def __post_init__(self) -> None:
        """Exactly one of the three."""
        if [self.say, self.share, self.propose].count(None) != 2:
            raise ValueError("a step says, shares or proposes something")


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

    def amended(self, amendment: str) -> tuple[Step, ...] | None:
        """What to do about an amendment, if any reply is meant for it."""
        found = (reply.steps for reply in self.reply if reply.when and reply.fits(amendment))
        return next(found, None)


def load(file: Path) -> Script:
    """The script in a TOML or JSON file."""
    try:
        text = file.read_text("utf-8")
        said = msgspec.json.decode(text) if file.suffix == ".json" else tomllib.loads(text)
        return msgspec.convert(said, Script)
    except OSError as error:
        raise ScriptError(f"{file} cannot be read: {error.strerror}") from None
    except UNREADABLE as error:
        raise ScriptError(f"{file}: {error}") from None
