"""The files around the log: charter, entry files, tasks, attributes, shell functions."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from accord.core.dialects import pactfiles
from accord.core.kernel.refusal import Refused, Why
from accord.core.work.state import Seat, Task, Work
from accord.core.work.words import is_id
from accord.pact.place import Place
from accord.stores.ledger import contents, plain, replace_file, too_large

# What somebody writes by hand; more is no text that a person reads.
LARGEST_TEXT = 4 << 20
VERBS = (
    *("init", "join", "assign", "checkpoint", "accept", "changes"),
    *("merge", "status", "log", "validate", "watch", "key", "help"),
)
SHELL = "\n".join(
    [
        "# Pact for shells: `source .pact/bin/pact.sh` gives pact_<verb>; PACT_AGENT_ID names you.",
        "# `bash .pact/bin/pact.sh <verb> …` does the same without functions.",
        *(f'pact_{verb}() {{ command accord pact {verb} "$@"; }}' for verb in VERBS),
        # Other shells must not read the name of the file, whose spelling is bash's own.
        """if [ -n "${BASH_VERSION:-}" ] && eval '[ "${BASH_SOURCE[0]:-}" = "$0" ]'; then""",
        '  [ "${1:-}" = "--help" ] && set -- help',
        '  exec accord pact "${@:-help}"',
        "fi",
        "",
    ]
)


def scaffold(place: Place, work: Work) -> None:
    """Write or refresh every file that `init` looks after; text outside its blocks stays."""
    inside(place, work.seats)
    charter = pactfiles.charter(work.project, work.seats)
    _block(place.directory, place.directory / "PROJECT.md", charter)
    for seat in work.seats:
        _block(place.root, place.root / seat.entry, pactfiles.welcome(seat))
    (place.directory / "tasks").mkdir(exist_ok=True)
    replace_file(place.directory / "bin" / "pact.sh", SHELL.encode())
    if place.repository:
        _attributes(place.root / ".gitattributes")


def inside(place: Place, seats: Iterable[Seat]) -> None:
    """Refuse before anything is written, if one of the files would be elsewhere."""
    for seat in seats:
        within(place.root, readable(place.root / seat.entry))
    for name in ("PROJECT.md", "bin/pact.sh", "tasks/x"):
        within(place.directory, readable(place.directory / name))
    within(place.directory, plain(place.state))
    readable(place.root / ".gitattributes")


def readable(path: Path) -> Path:
    """The path, where a text is or can be."""
    if plain(path).exists() and path.stat().st_size > LARGEST_TEXT:
        raise too_large(path, LARGEST_TEXT)
    return path


def within(root: Path, path: Path) -> None:
    """Refuse a path that leads out of `root` through a linked directory."""
    if not path.parent.resolve().is_relative_to(root.resolve()):
        raise Refused(Why.MALFORMED, f"{path} leads out of {root}")


def _block(root: Path, path: Path, body: str) -> None:
    text = _own_text(root, path)
    new = pactfiles.managed(text, body)
    if new != text or path.is_symlink():
        _put(path, new)


def _attributes(path: Path) -> None:
    text = _own_text(path.parent, path)
    new = pactfiles.union_attributes(text)
    if new != text:
        _put(path, new)


def _own_text(root: Path, path: Path) -> str:
    """What a file says, in whatever encoding and with its own line ends, if it is in `root`."""
    # A link becomes a file of its own. What its target says is taken over, so that nobody loses
    # it; but not from outside, whence a hostile repository would fetch what is private.
    ours = path.resolve().is_relative_to(root.resolve())
    if not (ours and path.exists()):
        return ""
    return contents(path, LARGEST_TEXT).decode("utf-8", "surrogateescape")


def _put(path: Path, text: str) -> None:
    replace_file(path, text.encode("utf-8", "surrogateescape"))


def task_path(place: Place, id: str) -> Path | None:
    """Where a task's own file is; an id that is unsafe in a path has none."""
    return place.directory / "tasks" / f"{id}.md" if is_id(id) else None


def task_file(place: Place, task: Task) -> None:
    """Make the task's file where there is none."""
    path = task_path(place, task.id)
    if path and not path.exists() and not path.is_symlink():
        within(place.directory, path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pactfiles.task_file(task), "utf-8")


def contradictions(place: Place, work: Work) -> Iterator[str]:
    """What the files of tasks say otherwise than the log, or why they cannot be read."""
    for task in work.tasks.values():
        path = task_path(place, task.id)
        if path and path.exists() and not path.is_symlink():
            yield from (f"{place.name(path)}: {each}" for each in _said(task, path))


def _said(task: Task, path: Path) -> Iterable[str]:
    try:
        text = contents(path, LARGEST_TEXT).decode("utf-8", "replace")
    except Refused as no:
        return [no.detail]
    except OSError as no:
        return [str(no.strerror)]
    return pactfiles.contradictions(task, text)
