"""The files around the log: charter, entry files, task files, attributes, shell functions."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from accord.core.kernel.refusal import Reason, Refused
from accord.core.work.format import state_and_task_files
from accord.core.work.state import Seat, Task, Work
from accord.core.work.vocabulary import is_work_id
from accord.pact.ledger import check_plain_file, read_plain_file, replace_file, too_large_refusal
from accord.pact.location import PactLocation

# Generous for files that are written by hand.
MAX_TEXT_BYTES = 4 << 20
VERB_NAMES = (
    *("init", "join", "assign", "checkpoint", "accept", "changes"),
    *("merge", "status", "log", "validate", "watch", "key", "help"),
)
SHELL_FUNCTIONS = "\n".join(
    [
        "# Pact for shells: `source .pact/bin/pact.sh` gives pact_<verb>; PACT_AGENT_ID names you.",
        "# `bash .pact/bin/pact.sh <verb> …` does the same without functions.",
        *(f'pact_{verb}() {{ command accord pact {verb} "$@"; }}' for verb in VERB_NAMES),
        # Inside eval, so that other shells do not parse bash's own syntax.
        """if [ -n "${BASH_VERSION:-}" ] && eval '[ "${BASH_SOURCE[0]:-}" = "$0" ]'; then""",
        '  [ "${1:-}" = "--help" ] && set -- help',
        '  exec accord pact "${@:-help}"',
        "fi",
        "",
    ]
)


def write_scaffold(place: PactLocation, work: Work) -> None:
    """Write or refresh the files that `init` manages; text outside managed blocks is kept."""
    check_paths_inside(place, work.seats)
    charter = state_and_task_files.render_charter(work.project, work.seats)
    _write_block(place.directory, place.directory / "PROJECT.md", charter)
    for seat in work.seats:
        _write_block(
            place.root, place.root / seat.entry, state_and_task_files.render_entry_block(seat)
        )
    (place.directory / "tasks").mkdir(exist_ok=True)
    replace_file(place.directory / "bin" / "pact.sh", SHELL_FUNCTIONS.encode())
    if place.repository:
        _write_attributes(place.root / ".gitattributes")


def check_paths_inside(place: PactLocation, seats: Iterable[Seat]) -> None:
    """Refuse, before anything is written, if a file would end up outside the repository."""
    for seat in seats:
        check_within(place.root, check_readable(place.root / seat.entry))
    for name in ("PROJECT.md", "bin/pact.sh", "tasks/x"):
        check_within(place.directory, check_readable(place.directory / name))
    check_within(place.directory, check_plain_file(place.state_path))
    check_readable(place.root / ".gitattributes")


def check_readable(path: Path) -> Path:
    """Refuse if the path is not a regular file or is too large; returns the path."""
    if check_plain_file(path).exists() and path.stat().st_size > MAX_TEXT_BYTES:
        raise too_large_refusal(path, MAX_TEXT_BYTES)
    return path


def check_within(root: Path, path: Path) -> None:
    """Refuse a path that leaves `root` through a symlinked directory."""
    if not path.parent.resolve().is_relative_to(root.resolve()):
        raise Refused(Reason.MALFORMED, f"{path} points outside {root}")


def _write_block(root: Path, path: Path, body: str) -> None:
    text = _read_own_text(root, path)
    new = state_and_task_files.with_managed_block(text, body)
    if new != text or path.is_symlink():
        _write_text(path, new)


def _write_attributes(path: Path) -> None:
    text = _read_own_text(path.parent, path)
    new = state_and_task_files.with_union_attributes(text)
    if new != text:
        _write_text(path, new)


def _read_own_text(root: Path, path: Path) -> str:
    """A file's text, any encoding and line endings; empty if missing or outside `root`."""
    # A symlink is replaced by a regular file with its target's text, so that no text is lost. A
    # target outside is not read: a hostile repository could use that to copy private files.
    is_inside = path.resolve().is_relative_to(root.resolve())
    if not (is_inside and path.exists()):
        return ""
    return read_plain_file(path, MAX_TEXT_BYTES).decode("utf-8", "surrogateescape")


def _write_text(path: Path, text: str) -> None:
    replace_file(path, text.encode("utf-8", "surrogateescape"))


def task_path(place: PactLocation, id: str) -> Path | None:
    """The path of a task's file; None if its id is not safe in a path."""
    return place.directory / "tasks" / f"{id}.md" if is_work_id(id) else None


def create_task_file(place: PactLocation, task: Task) -> None:
    """Create the task's file if it does not exist."""
    path = task_path(place, task.id)
    if path and not path.exists() and not path.is_symlink():
        check_within(place.directory, path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(state_and_task_files.render_task_file(task), "utf-8")


def find_contradictions(place: PactLocation, work: Work) -> Iterator[str]:
    """Where task files contradict the log, or why they cannot be read."""
    for task in work.tasks.values():
        path = task_path(place, task.id)
        if path and path.exists() and not path.is_symlink():
            yield from (
                f"{place.relative_path(path)}: {sentence}"
                for sentence in _contradictions_in(task, path)
            )


def _contradictions_in(task: Task, path: Path) -> Iterable[str]:
    try:
        text = read_plain_file(path, MAX_TEXT_BYTES).decode("utf-8", "replace")
    except Refused as error:
        return [error.detail]
    except OSError as error:
        return [str(error.strerror)]
    return state_and_task_files.contradictions_with_log(task, text)
