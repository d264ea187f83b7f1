"""The coverage rule: an approved, successful run covers content, not a name.

- A write covers a path if the committed blob is the approved content.
- An edit or patch covers it if the blob is the call applied to the blob of the parent commit, or
  to a covered one.
- A commit call covers every path if the tree that it showed is the tree of the commit.
- A run that our executor recorded in a work tree of its own covers a path if the run changed it
  from the blob of the parent commit, or a covered one, to the committed blob. What lay there before
  the run must be the checked-out commit, or what covered runs left.
- A merge gate covers every path if the head that it showed is the merged parent, except those
  that were resolved by hand.

Everything else is context. A person's approvals cover a commit only if every changed path follows
from runs that this person approved; what follows from several persons' runs is covered by them
together, and none of them is named for the commit.

What a call does to files is one table of the shapes whose result can be computed. A call counts
only if its arguments alone say what a file contains afterwards, given what it contained before.
Every other call, a shell command above all, and every call with an argument that is not in the
table, is context.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from accord.core.kernel.command_line import COMMAND, FULL_COMMAND, lines_agree
from accord.core.provenance.coverage.codex_patch import parse_codex_patch
from accord.core.provenance.coverage.coverage_extent import Coverage, combine_coverage
from accord.core.provenance.coverage.file_states import (
    ChangedFile,
    ContentState,
    committed_state,
    first_states,
    limited_states,
    version_of,
)
from accord.core.provenance.coverage.recorded_run import TREE_PATTERN, RecordedRun
from accord.core.provenance.coverage.text_changes import (
    CallDoesNotFitError,
    ReplaceText,
    TextChange,
    WriteText,
)

MAX_OPERATIONS = 200
GIT_PROGRAM, COMMIT_COMMAND, TREE_ARGUMENT = "git", "commit", "tree"
PATH_KEYS = ("path", "file_path")
PATCH_KEYS = (COMMAND, "input", "patch")
OLD_AND_NEW = frozenset({"old_string", "new_string"})
EDIT_KEYS = OLD_AND_NEW | {"replace_all"}
# The binding to a step of a decision changes nothing about a file; relative paths start at `cwd`.
CWD = "cwd"
HARMLESS_KEYS = frozenset({"decision", CWD})


class FileOperation(NamedTuple):
    """What a call does to one file; `source` is the file whose content it starts from."""

    path: str
    change: TextChange
    source: str = ""

    @property
    def starts_from(self) -> str:
        return self.source or self.path


class CallShape(NamedTuple):
    """Tool names, the arguments such a call may have, and how they are read."""

    names: frozenset[str]
    required: frozenset[str]
    optional: frozenset[str]
    read: Callable[[Mapping[str, Any]], Iterable[FileOperation]]


class ApprovedRun(NamedTuple):
    """What people approved and what then ran, as far as it can cover content.

    `tree` is what a commit call showed, `head` what a merge gate showed.
    """

    proposal: str
    approvers: tuple[str, ...]
    operations: tuple[FileOperation, ...] = ()
    tree: str = ""
    head: str = ""
    recorded: RecordedRun | None = None


class CommitContent(NamedTuple):
    """What the rule needs of a commit; `files` are all that differ from its first parent."""

    files: tuple[ChangedFile, ...]
    tree: str = ""
    parents: tuple[str, ...] = ()


def _write(arguments: Mapping[str, Any]) -> Iterator[FileOperation]:
    yield FileOperation(_path(arguments), WriteText(_text(arguments["content"])))


def _edit(arguments: Mapping[str, Any]) -> Iterator[FileOperation]:
    yield FileOperation(_path(arguments), _replacement(arguments))


def _edits(arguments: Mapping[str, Any]) -> Iterator[FileOperation]:
    edits = arguments["edits"]
    if not isinstance(edits, list):
        raise CallDoesNotFitError
    for edit in edits:
        if not isinstance(edit, dict) or not EDIT_KEYS >= edit.keys() >= OLD_AND_NEW:
            raise CallDoesNotFitError
        yield FileOperation(_path(arguments), _replacement(edit))


def _replace(arguments: Mapping[str, Any]) -> Iterator[FileOperation]:
    """Gemini's: the text must occur exactly as often as the call says, once by default."""
    expected = arguments.get("expected_replacements", 1)
    if type(expected) is not int or expected < 1:
        raise CallDoesNotFitError
    old, new = _text(arguments["old_string"]), _text(arguments["new_string"])
    yield FileOperation(_path(arguments), ReplaceText(old, new, expected))


def _patch(arguments: Mapping[str, Any]) -> Iterator[FileOperation]:
    (text,) = (arguments[key] for key in PATCH_KEYS if key in arguments)
    for part in parse_codex_patch(_text(text)):
        yield FileOperation(*part)


def _path(arguments: Mapping[str, Any]) -> str:
    (path,) = (arguments[key] for key in PATH_KEYS if key in arguments)
    return _text(path)


def _replacement(edit: Mapping[str, Any]) -> ReplaceText:
    everywhere = edit.get("replace_all", False)
    if not isinstance(everywhere, bool):
        raise CallDoesNotFitError
    old, new = _text(edit["old_string"]), _text(edit["new_string"])
    return ReplaceText(old, new, None if everywhere else 1)


def _text(value: object) -> str:
    """The value, if it is a text that UTF-8 can hold."""
    if not isinstance(value, str):
        raise CallDoesNotFitError
    value.encode()  # a lone surrogate raises UnicodeEncodeError
    return value


def file_operations(
    tool_name: str, arguments: Mapping[str, Any], root: str = ""
) -> tuple[FileOperation, ...]:
    """What the call does to the files of a repository; empty if its shape is unknown.

    `root` is the directory of the work tree; one path outside it makes the whole call unknown.
    A hook reports in which directory a call ran (`cwd`); without it, that is the work tree.
    """
    try:
        cwd = _working_directory(arguments)
        found = tuple(
            _inside(operation, root, cwd) for operation in _read_call(tool_name, arguments)
        )
    except (CallDoesNotFitError, UnicodeEncodeError, ValueError):
        return ()
    return found if len(found) <= MAX_OPERATIONS else ()


def is_file_call(tool_name: str, arguments: Mapping[str, Any]) -> bool:
    """Whether the call changes the files that it names, wherever they are, and nothing else."""
    try:
        return bool(tuple(_read_call(tool_name, arguments)))
    except (CallDoesNotFitError, UnicodeEncodeError, ValueError):
        return False


def _read_call(tool_name: str, arguments: Mapping[str, Any]) -> Iterable[FileOperation]:
    shape = SHAPE_BY_NAME.get(tool_name)
    keys = arguments.keys() - (HARMLESS_KEYS | _repeated_keys(arguments))
    if shape is None or not shape.required <= keys <= shape.required | shape.optional:
        return ()
    return shape.read(arguments)


def _repeated_keys(arguments: Mapping[str, Any]) -> frozenset[str]:
    """`full_command` says nothing new if it repeats `command`."""
    is_repeated = COMMAND in arguments and arguments[COMMAND] == arguments.get(FULL_COMMAND)
    return frozenset({FULL_COMMAND} if is_repeated else ())


def _working_directory(arguments: Mapping[str, Any]) -> str:
    """Where the call ran; raises CallDoesNotFitError if that is said and is no absolute path."""
    cwd = arguments.get(CWD, "")
    if not isinstance(cwd, str) or (CWD in arguments and not cwd.startswith("/")):
        raise CallDoesNotFitError
    return cwd


def _inside(operation: FileOperation, root: str, cwd: str) -> FileOperation:
    source = relative_path(_from(cwd, operation.source), root) if operation.source else ""
    path = relative_path(_from(cwd, operation.path), root)
    return operation._replace(path=path, source=source)


def _from(cwd: str, path: str) -> str:
    return f"{cwd}/{path}" if cwd and not path.startswith("/") else path


def relative_path(path: str, root: str) -> str:
    """The path from the root of the work tree; raises CallDoesNotFitError outside it."""
    parts = _normalized(path)
    if path.startswith("/"):
        above = _normalized(root) if root.startswith("/") else []
        if not above or parts[: len(above)] != above:
            raise CallDoesNotFitError
        parts = parts[len(above) :]
    if not parts or "\0" in path:
        raise CallDoesNotFitError
    return "/".join(parts)


def _normalized(path: str) -> list[str]:
    """The parts of a path without `.` and `..`; raises CallDoesNotFitError above its start."""
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                raise CallDoesNotFitError
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return parts


def shown_tree(arguments: Mapping[str, Any]) -> str:
    """The id of the tree that a proposed `git commit` showed; empty for any other call."""
    tree, argv = arguments.get(TREE_ARGUMENT), arguments.get("argv")
    is_commit = isinstance(argv, list) and _is_git_commit(argv) and lines_agree(arguments)
    return tree if is_commit and isinstance(tree, str) and TREE_PATTERN.fullmatch(tree) else ""


def _is_git_commit(argv: Sequence[Any]) -> bool:
    """Whether it is exactly `git commit …`.

    `git log --grep commit` is another command, and options of git itself (`-c alias.x=commit`)
    could make any command one.
    """
    return list(argv[:2]) == [GIT_PROGRAM, COMMIT_COMMAND]


def named_paths(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """The paths that a call of any shape names, as it names them."""
    return tuple(path for key in PATH_KEYS if isinstance(path := arguments.get(key), str) and path)


def cover_commit(runs: Sequence[ApprovedRun], commit: CommitContent) -> Coverage:
    """Apply the rule to a commit and the approved, successful runs behind it, in their order."""
    approvers = {run.proposal: run.approvers for run in runs}
    alone = {
        approver: _covered([run for run in runs if approver in run.approvers], commit)
        for approver in {name for names in approvers.values() for name in names}
    }
    mixed = {
        path: tuple((name, each) for each in proposals for name in approvers[each])
        for path, proposals in _covered(runs, commit).items()
    }
    return combine_coverage((file.path for file in commit.files), alone, mixed)


def _covered(runs: Sequence[ApprovedRun], commit: CommitContent) -> dict[str, tuple[str, ...]]:
    """The covered paths, each with the proposals whose runs led to its content."""
    covered = _covered_by_operations(runs, commit.files)
    for run in runs:
        if run.tree and run.tree == commit.tree:
            covered |= {file.path: (run.proposal,) for file in commit.files}
        if run.head and commit.parents[1:] == (run.head,):
            covered |= {file.path: (run.proposal,) for file in commit.files if not file.by_hand}
    return covered


def _covered_by_operations(
    runs: Sequence[ApprovedRun], files: Sequence[ChangedFile]
) -> dict[str, tuple[str, ...]]:
    states = {file.path: first_states(file) for file in files}
    converts = {file.path for file in files if file.converts}
    # The trees that approved runs left, each with the runs since the commit that was checked out.
    left: dict[str, tuple[str, ...]] = {}
    for run in runs:
        for operation in run.operations:
            if operation.path in states:
                reached = _states_after(operation, run.proposal, states, converts)
                states[operation.path] = limited_states([*states[operation.path], *reached])
        if run.recorded is not None:
            _follow_record(run.recorded, run.proposal, states, left, files)
    return {
        file.path: state.runs
        for file in files
        if (state := committed_state(file, states[file.path])) is not None
    }


def _follow_record(
    record: RecordedRun,
    proposal: str,
    states: dict[str, list[ContentState]],
    left: dict[str, tuple[str, ...]],
    files: Sequence[ChangedFile],
) -> None:
    """Add what a recorded run left, if all that it found is committed or was left by these runs."""
    is_clean = record.before == record.base
    if not is_clean and record.before not in left:
        return
    chain = (*(() if is_clean else left[record.before]), proposal)
    left.setdefault(record.after, chain)
    changed = {change.path: change for change in record.changes}
    for file in files:
        if (change := changed.get(file.path)) is not None:
            states[file.path] += [
                ContentState(
                    None, tuple(dict.fromkeys((*state.runs, *chain))), change.after, is_known=False
                )
                for state in states[file.path]
                if version_of(state, file) == change.before
            ]
            states[file.path] = limited_states(states[file.path])


def _states_after(
    operation: FileOperation,
    proposal: str,
    states: Mapping[str, list[ContentState]],
    converts: Iterable[str],
) -> Iterable[ContentState]:
    """What the file contains after the operation, for each content that it may start from."""
    change: TextChange = operation.change
    if operation.path in converts:
        change = change.with_line_feeds()
    if change.is_complete:
        yield ContentState(change.apply(None), (proposal,))
        return
    for state in states.get(operation.starts_from, ()):
        if not state.is_known:
            continue
        try:
            content = change.apply(state.content)
        except CallDoesNotFitError:
            continue
        yield ContentState(content, (*(run for run in state.runs if run != proposal), proposal))


SHAPES: tuple[CallShape, ...] = (
    # Our own agents (`path`), Claude Code's Write and Gemini's write_file (`file_path`).
    CallShape(
        frozenset({"write_file", "Write"}), frozenset({"content"}), frozenset(PATH_KEYS), _write
    ),
    # Our own agents and Claude Code.
    CallShape(
        frozenset({"edit_file", "Edit"}), OLD_AND_NEW, frozenset({*PATH_KEYS, "replace_all"}), _edit
    ),
    CallShape(frozenset({"MultiEdit"}), frozenset({"edits"}), frozenset(PATH_KEYS), _edits),
    # Gemini.
    CallShape(
        frozenset({"replace"}),
        OLD_AND_NEW,
        frozenset({*PATH_KEYS, "instruction", "expected_replacements"}),
        _replace,
    ),
    # Codex.
    CallShape(frozenset({"apply_patch"}), frozenset(), frozenset(PATCH_KEYS), _patch),
)
SHAPE_BY_NAME = {name: shape for shape in SHAPES for name in shape.names}
