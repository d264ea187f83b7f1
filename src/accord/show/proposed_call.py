"""What a proposal would run, line by line: a command, a change of a file as a diff, or JSON."""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from accord.core.kernel.command_line import COMMAND, FULL_COMMAND, lines_agree
from accord.show import style
from accord.show.text import command_line, render_invocation

Arguments = dict[str, Any]
PATH_NAMES = ("path", "file_path", "filepath", "filename", "file")
CONTENT_NAMES = ("content", "contents", "file_text", "new_content", "text")
OLD_AND_NEW_NAMES = (
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("old_text", "new_text"),
    ("old", "new"),
    ("search", "replace"),
)
PATCH_NAMES = ("patch", "diff")
CODEX_PATCH_NAMES = (COMMAND, "input", "patch")
CODEX_PATCH_ENDS = ("*** Begin Patch", "*** End Patch")
ADDED, REMOVED, KEPT = "+", "-", " "
DIFF_SIGNS = (ADDED, REMOVED, KEPT)
LINE_STYLES: dict[str, style.Style] = {ADDED: style.green, REMOVED: style.red}
# Comparing longer texts could take minutes.
MAX_COMPARED_PAIRS = 1_000_000
NO_NEWLINE = "(no line break at the end)"


class CallLine(NamedTuple):
    """One line of a proposed call; `sign` is that of a diff, empty outside one."""

    text: str
    sign: str = ""

    @property
    def style(self) -> style.Style:
        return LINE_STYLES.get(self.sign, str)


def call_lines(arguments: Any) -> list[CallLine]:
    """Everything that would run; nothing of the arguments is left out."""
    return [*_commits_tree(arguments), *_call_lines(arguments)]


def _commits_tree(arguments: Any) -> Iterator[CallLine]:
    """What the approval of a commit covers, first of all: it must not be folded away."""
    if not isinstance(arguments, dict):
        return
    tree, argv = arguments.get("tree"), arguments.get("argv")
    is_commit = isinstance(argv, list) and argv[:2] == ["git", "commit"]
    if is_commit and isinstance(tree, str) and lines_agree(arguments):
        yield CallLine("Your yes covers every file of this commit:")
        yield CallLine(f"  git show {visible_returns(tree)[:64]}")


def _call_lines(arguments: Any) -> list[CallLine]:
    if isinstance(arguments, dict) and lines_agree(arguments):
        for change_of in CHANGES if command_line(arguments) is None else CHANGES[:1]:
            if (lines := change_of(arguments)) is not None:
                return lines
    return [CallLine(line) for line in visible_returns(render_invocation(arguments)).split("\n")]


def visible_returns(text: str) -> str:
    """Carriage returns spelled out, because a change of line endings must be seen."""
    return text.replace("\r", "\\r")


def _edit(arguments: Arguments) -> list[CallLine] | None:
    """`old` is replaced by `new` in a file."""
    path = _find_text(arguments, PATH_NAMES)
    for names in OLD_AND_NEW_NAMES:
        old, new = (_find_text(arguments, (name,)) for name in names)
        if path and old and new:
            head = CallLine(f"edit {_quoted(path)}")
            return [head, *_diff(old.text, new.text), *_rest(arguments, path, old, new)]
    return None


def _edits(arguments: Arguments) -> list[CallLine] | None:
    """Several replacements in one file."""
    path, edits = _find_text(arguments, PATH_NAMES), arguments.get("edits")
    if path is None or not isinstance(edits, list) or not edits:
        return None
    lines: list[CallLine] = []
    for number, edit in enumerate(edits, 1):
        change = _edit({path.name: path.text, **edit}) if isinstance(edit, dict) else None
        if change is None or (isinstance(edit, dict) and path.name in edit):
            return None
        lines += [CallLine(f"edit {_quoted(path)}, {number} of {len(edits)}"), *change[1:]]
    return [*lines, *_rest(arguments, path, Found("edits", ""))]


def _patch(arguments: Arguments) -> list[CallLine] | None:
    """A patch as the agent wrote it."""
    patch = _find_text(arguments, PATCH_NAMES)
    if patch is None:
        return None
    path = _find_text(arguments, PATH_NAMES)
    used = [patch, *([path] if path else [])]
    head = f"apply a patch to {_quoted(path)}" if path else "apply a patch"
    return [CallLine(head), *_signed_lines(patch.text), *_rest(arguments, *used)]


def _signed_lines(patch: str) -> list[CallLine]:
    lines = visible_returns(patch).removesuffix("\n").split("\n")
    return [
        CallLine(line[1:], line[0]) if line.startswith(DIFF_SIGNS) else CallLine(line)
        for line in lines
    ]


def _codex_patch(arguments: Arguments) -> list[CallLine] | None:
    """The patch of Codex's `apply_patch`, which may be named as if it were a command."""
    repeated = {FULL_COMMAND} if arguments.get(COMMAND) == arguments.get(FULL_COMMAND) else set()
    known = {name: value for name, value in arguments.items() if name not in repeated}
    patch = _find_text(known, CODEX_PATCH_NAMES)
    if patch is None:
        return None
    lines = patch.text.strip("\n").split("\n")
    if (lines[0].rstrip(), lines[-1].rstrip()) != CODEX_PATCH_ENDS:
        return None
    return [CallLine("apply a patch"), *_signed_lines(patch.text), *_rest(known, patch)]


def _write(arguments: Arguments) -> list[CallLine] | None:
    """A file is written from beginning to end."""
    path, content = _find_text(arguments, PATH_NAMES), _find_text(arguments, CONTENT_NAMES)
    if path is None or content is None:
        return None
    head = CallLine(f"write {_quoted(path)}; what it held before is replaced")
    return [head, *_file_lines(content.text), *_rest(arguments, path, content)]


# The first may be named as if it were a command.
CHANGES: tuple[Callable[[Arguments], list[CallLine] | None], ...] = (
    _codex_patch,
    _edit,
    _edits,
    _patch,
    _write,
)


class Found(NamedTuple):
    """An argument and its text."""

    name: str
    text: str


def _find_text(arguments: Arguments, names: tuple[str, ...]) -> Found | None:
    """The only argument among these names, if it is text; two of them would be ambiguous."""
    present = [name for name in names if name in arguments]
    if len(present) != 1 or not isinstance(arguments[present[0]], str):
        return None
    return Found(present[0], arguments[present[0]])


def _quoted(path: Found) -> str:
    return json.dumps(path.text, ensure_ascii=False)


def _rest(arguments: Arguments, *used: Found) -> Iterator[CallLine]:
    """The other arguments as JSON."""
    names = {found.name for found in used}
    if rest := {name: value for name, value in arguments.items() if name not in names}:
        code = json.dumps(rest, indent=2, ensure_ascii=False)
        yield from (CallLine(line) for line in ("with", *code.split("\n")))


def _file_lines(content: str) -> Iterator[CallLine]:
    """The lines of a file; the last remark has no sign, so that no content can imitate it."""
    lines = visible_returns(content).split("\n")
    last = lines.pop()
    yield from (CallLine(line, ADDED) for line in lines)
    if last:
        yield CallLine(last, ADDED)
        yield CallLine(NO_NEWLINE)


def _diff(old: str, new: str) -> Iterator[CallLine]:
    """All lines of both texts, with their signs."""
    from difflib import SequenceMatcher  # only needed here

    before, after = visible_returns(old).split("\n"), visible_returns(new).split("\n")
    if len(before) * len(after) > MAX_COMPARED_PAIRS:
        yield from (CallLine(line, REMOVED) for line in before)
        yield from (CallLine(line, ADDED) for line in after)
        return
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if kind == "equal":
            yield from (CallLine(line, KEPT) for line in before[old_start:old_end])
            continue
        yield from (CallLine(line, REMOVED) for line in before[old_start:old_end])
        yield from (CallLine(line, ADDED) for line in after[new_start:new_end])
