"""The script of a scripted agent, read from a TOML or JSON file.

[[reply]]
when = "changelog"                          # for prompts containing this; absent: any prompt

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
share = "findings"                          # the key of a context item, in the prompt's fork
text = "It is the brackets."

An amendment is matched against the replies that have a `when`; the steps of the matching reply
replace the remaining ones.
"""

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from accord.core.room.room_settings import Category
from accord.core.room.state import Risk

PARSE_ERRORS = (
    UnicodeDecodeError,
    tomllib.TOMLDecodeError,
    msgspec.MsgspecError,
    RecursionError,
)


class ScriptError(ValueError):
    """The file is not a valid script; the message says where and why."""


class ScriptStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step: say something, share a context item, or propose a tool and follow up.

    `hasty` tries to run the tool before it is approved, to show that the server refuses.
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
    granted: tuple["ScriptStep", ...] = ()
    rejected: tuple["ScriptStep", ...] = ()

    def __post_init__(self) -> None:
        """Check that the step does exactly one thing."""
        if [self.say, self.share, self.propose].count(None) != 2:
            raise ValueError("a step needs exactly one of say, share and propose")


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The steps for prompts that contain `when`."""

    steps: tuple[ScriptStep, ...]
    when: str = ""

    def matches(self, prompt: str) -> bool:
        """Whether the prompt contains `when`, ignoring case."""
        return self.when.casefold() in prompt.casefold()


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replies in order; the first match is used."""

    reply: tuple[Reply, ...]

    def steps_for_prompt(self, prompt: str) -> tuple[ScriptStep, ...]:
        """The steps of the first matching reply."""
        matching = (reply.steps for reply in self.reply if reply.matches(prompt))
        return next(matching, (ScriptStep(say="My script has no reply to that."),))

    def steps_for_amendment(self, amendment: str) -> tuple[ScriptStep, ...] | None:
        """The steps of the first reply whose `when` matches; None if there is none."""
        matching = (reply.steps for reply in self.reply if reply.when and reply.matches(amendment))
        return next(matching, None)


def load_script(file: Path) -> Script:
    """Read a script; raises ScriptError."""
    try:
        text = file.read_text("utf-8")
        data = msgspec.json.decode(text) if file.suffix == ".json" else tomllib.loads(text)
        return msgspec.convert(data, Script)
    except OSError as error:
        raise ScriptError(f"{file} cannot be read: {error.strerror}") from None
    except PARSE_ERRORS as error:
        raise ScriptError(f"{file}: {error}") from None
