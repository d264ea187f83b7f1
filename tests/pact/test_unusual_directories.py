"""Places and files that are not as one expects: a sentence, and nothing is made worse."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from accord.core.kernel.refusal import Reason, Refused
from accord.core.work.verbs import ActingSeat, Assignment
from accord.pact import ledger, scaffold, verbs
from accord.pact.location import find_location
from accord.pact.workspace import Workspace, WorkspacePorts
from tests.helpers.git.repositories import create_repository
from tests.pact.team import SEATS
from tests.spec import proves

T1 = Assignment("T1", "cart", "cart", "bob", "ann")


def at(root: Path, seat: str = "ann") -> tuple[Workspace, ActingSeat]:
    return Workspace(find_location(root), seat), ActingSeat(seat)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a pact in its first commit, and a branch for the work."""
    repo = create_repository(tmp_path / "repo", {"code.py": "one\n"})
    verbs.init(*at(repo.root), "demo", SEATS, "")
    repo.run("add", ".")
    repo.run("commit", "-qm", "the pact")
    repo.run("branch", "cart")
    return repo.root


def files(root: Path) -> dict[str, bytes]:
    found = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def test_a_bare_repository_is_no_place_for_a_pact(tmp_path: Path) -> None:
    create_repository(tmp_path / "repo").run("clone", "-q", "--bare", ".", str(tmp_path / "bare"))

    for inside in (tmp_path / "bare", tmp_path / "bare" / "hooks"):
        with pytest.raises(Refused, match="without a work tree") as no:
            find_location(inside)
        assert no.value.reason is Reason.WRONG_STATE


BAD = {
    "a byte order mark": (b"\xef\xbb\xbf", "line 1: The line begins with a byte order mark"),
    "NUL": (b"\0\0\0", "line 1: The line is not valid JSON"),
}


@proves("OPEN-106")
@pytest.mark.parametrize("name", BAD)
def test_a_pact_whose_first_line_is_damaged_is_not_taken_for_none(root: Path, name: str) -> None:
    """Whoever hears that there is none would start another one over it."""
    log, (bad, said) = root / ".pact" / "log.jsonl", BAD[name]
    log.write_bytes(bad + log.read_bytes())
    before = files(root)
    here, ann = at(root)

    acts: tuple[Callable[[], object], ...] = (
        lambda: verbs.assign(here, ann, T1),
        lambda: verbs.join(here, ann, "reviewer", "ann", git=False),
        lambda: verbs.merge(here, ann, "cart", git=True),
        lambda: verbs.init(here, ann, "other", SEATS, ""),
        lambda: verbs.checkpoint(here, ann, "T1", "x", commit=True),
    )
    for act in acts:
        with pytest.raises(Refused, match=said) as no:
            act()
        assert no.value.reason is Reason.DAMAGED
    assert files(root) == before
    assert said in here.check_state_file()[2][0]
    with pytest.raises(Refused, match=said):
        here.rebuild_state_file()
    assert files(root) == before, "a good STATE.yml is not made worse"


def test_every_look_at_a_damaged_log_is_warned_again(root: Path) -> None:
    with (root / ".pact" / "log.jsonl").open("a") as log:
        log.write("not json\n")
    here, _ = at(root)

    assert [here.check_state_file()[2], here.check_state_file()[2]] == [
        here.check_state_file()[2]
    ] * 2
    assert "line 2: The line is not valid JSON" in here.check_state_file()[2][0]


def test_windows_line_ends_are_read_and_stay(root: Path) -> None:
    log = root / ".pact" / "log.jsonl"
    log.write_bytes(log.read_bytes().replace(b"\n", b"\r\n"))
    before = log.read_bytes()
    here, ann = at(root)

    verbs.assign(here, ann, T1)

    assert log.read_bytes().startswith(before)
    assert [found for found in here.validate() if not found.warning] == []


def test_an_event_that_was_recorded_is_never_refused_afterwards(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The view of it could not be written: that is told, and mended from the log."""
    here, ann = at(root)

    def full(path: Path, data: bytes, *, durable: bool = False) -> None:
        if path.name == "STATE.yml":
            raise OSError(28, os.strerror(28))
        ledger.replace_file(path, data, durable=durable)

    def unwritable(place: object, task: object) -> None:
        raise PermissionError(13, os.strerror(13))

    with monkeypatch.context() as broken:
        broken.setattr("accord.pact.workspace.replace_file", full)
        broken.setattr(scaffold, "create_task_file", unwritable)
        done = verbs.assign(here, ann, T1)

    assert len(done.events) == 1
    assert "the file of T1 could not be created: Permission denied" in done.notes
    assert any("STATE.yml: No space left" in note for note in done.notes)
    assert [found.check for found in at(root)[0].validate()] == ["a"]
    here.rebuild_state_file()
    assert at(root)[0].validate() == []


@proves("PACT-2.1-2")
def test_an_id_is_of_128_bits_that_nobody_has_had() -> None:
    ids = {WorkspacePorts().new_id() for _ in range(1000)}

    assert len(ids) == 1000
    assert all(len(bytes.fromhex(id)) == 16 for id in ids)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
@pytest.mark.parametrize(
    "name", ["A.md", ".gitattributes", ".pact/PROJECT.md", ".pact/STATE.yml", ".pact/bin/pact.sh"]
)
def test_what_is_no_file_is_neither_waited_for_nor_written_over(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    """A pipe would be read for ever."""
    root = create_repository(tmp_path / "repo").root
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    make(root / name)
    here, ann = at(root)

    with pytest.raises(Refused, match="is not a regular file") as no:
        verbs.init(here, ann, "demo", ["ann:worker:A.md"], "")

    assert (no.value.reason, set(files(root))) == (Reason.WRONG_STATE, {"README.md"})


@pytest.mark.timeout(60)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_state_that_is_no_file_stops_nobody(root: Path, make: Callable[[Path], None]) -> None:
    state = root / ".pact" / "STATE.yml"
    state.unlink()
    make(state)
    here, ann = at(root)

    assert here.check_state_file()[1].startswith(b"project: demo\n")
    assert "STATE.yml is missing" in here.check_state_file()[2][0]
    with pytest.raises(Refused, match="is not a regular file"):
        here.rebuild_state_file()
    assert verbs.assign(here, ann, T1).events


@proves("OPEN-111")
def test_whoever_is_moved_to_another_branch_is_told(root: Path) -> None:
    here, ann = at(root)
    verbs.assign(here, ann, T1)
    bobs, bob = at(root, "bob")

    joined = verbs.join(bobs, bob, "worker", "bob", git=True)
    again = verbs.join(bobs, bob, "worker", "bob", git=True)
    (root / "code.py").write_text("two\n")
    verbs.checkpoint(bobs, bob, "T1", "it works", commit=True)
    verbs.accept(here, ann, "T1")
    merged = verbs.merge(here, ann, "cart", git=True)

    assert (joined.notes, again.notes) == (["switched to branch cart"], [])
    assert merged.notes == ["switched to branch main"]


@proves("OPEN-111")
def test_nothing_is_committed_where_head_is_on_no_branch(root: Path) -> None:
    here, ann = at(root)
    verbs.assign(here, ann, T1)
    repository = here.location.repository
    assert repository is not None
    repository.run("checkout", "-q", "--detach")
    (root / "code.py").write_text("two\n")
    before = files(root), repository.run("rev-parse", "HEAD")
    bobs, bob = at(root, "bob")

    with pytest.raises(Refused, match="HEAD is detached"):
        verbs.checkpoint(bobs, bob, "T1", "it works", commit=True)

    assert (files(root), repository.run("rev-parse", "HEAD")) == before
    assert verbs.checkpoint(bobs, bob, "T1", "it works", commit=False).events
