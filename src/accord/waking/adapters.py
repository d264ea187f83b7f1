"""How each vendor's command line resumes a conversation: a table of argument arrays.

A further runtime is a row here and a form of its ids in `core/attention/runtimes.py`. Nothing is
ever given to a shell. The prompt is one argument that begins with our mark, so it is no option; the
id has the vendor's exact form, so it is none either.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

REF, PROMPT, OPTIONS = "{runtime_ref}", "{prompt}", "{options}"


class Adapter(NamedTuple):
    """One vendor's command line; templates begin after the program."""

    program: str
    resume: tuple[str, ...]
    spawn: tuple[str, ...]
    # Prints the conversations that are open; one that is there is not resumed, because it would
    # split: the program that has it open never sees what the resumed one says.
    list_open: tuple[str, ...] = ()
    # What the program prints when it finds by itself that the conversation is open elsewhere.
    open_elsewhere: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()  # variables it needs besides the common ones


ADAPTERS: Mapping[str, Adapter] = {
    "claude_code": Adapter(
        "claude",
        # Its options may take several values, so nothing may follow them.
        resume=("-p", "--resume", REF, PROMPT, OPTIONS),
        spawn=("-p", PROMPT, OPTIONS),
        list_open=("agents", "--json"),
        environment=("ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR"),
    ),
    "codex_cli": Adapter(
        "codex",
        resume=("exec", "resume", OPTIONS, REF, PROMPT),
        spawn=("exec", OPTIONS, PROMPT),
        open_elsewhere=("already has an active writer",),
        environment=("OPENAI_API_KEY", "CODEX_HOME"),
    ),
    "gemini_cli": Adapter(
        "gemini",
        resume=(OPTIONS, "--resume", REF, "-p", PROMPT),
        spawn=(OPTIONS, "-p", PROMPT),
        environment=("GEMINI_API_KEY",),
    ),
}


def arguments(
    template: Sequence[str], *, options: Sequence[str] = (), runtime_ref: str = "", prompt: str
) -> list[str]:
    """The arguments of a command; every placeholder is a whole argument."""
    return list(_filled(template, {REF: (runtime_ref,), PROMPT: (prompt,), OPTIONS: options}))


def _filled(template: Sequence[str], values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for part in template:
        yield from values.get(part, (part,))
