"""Events that go along when another branch is checked out, and that no crash loses.

The ledger is a file of the working tree, so another branch has another one. Before git moves, all
lines are kept in the git directory; afterwards those that the other ledger lacks are appended
there. Whoever finds kept lines finishes what was interrupted.
"""

from collections.abc import Callable

from accord.core.dialects import pact, pactfiles
from accord.core.kernel.limits import LIMITS
from accord.core.kernel.refusal import Refused, Why
from accord.core.work.fold import fold
from accord.git.process import GitError
from accord.git.repository import Repository
from accord.pact.place import Place
from accord.stores.ledger import FileLedger, contents, replace_file

Write = Callable[[str], bytes]
KEPT = "pact-carry.jsonl"
COMMITTED = "pact-commit.jsonl"
# What the largest log comes to that a limit allows.
LARGEST = LIMITS["pact_log"].bound.most


class Carry:
    """The way of a ledger from branch to branch; its lock is held by the caller."""

    def __init__(self, place: Place, ledger: FileLedger) -> None:
        self._place = place
        self._ledger = ledger
        self._kept = place.private(KEPT)
        self._committed = place.private(COMMITTED)

    def pending(self) -> bool:
        """Whether a switch was interrupted."""
        return any(path is not None and path.exists() for path in (self._kept, self._committed))

    def recover(self) -> None:
        """Finish what was interrupted."""
        repository = self._place.repository
        if repository and self._committed and self._committed.exists():
            # The event counts if git has it; a commit that did not happen leaves none behind.
            head = repository.show("HEAD", self._place.name(self._place.log)) or b""
            ours = contents(self._committed, LARGEST)
            never = pact.missing(head, ours)
            self._add(pact.missing(never, ours))
            self._committed.unlink()
        if self._kept and self._kept.exists():
            self._arrive(contents(self._kept, LARGEST))

    def switch(self, repository: Repository, branch: str) -> None:
        """Check out the branch, with all events; or refuse with nothing changed."""
        if repository.branch() == branch:
            return
        clean(repository, self._place)
        self._others(repository, branch)
        theirs = repository.show(f"refs/heads/{branch}", self._place.name(self._place.log)) or b""
        if faults := pact.read(theirs).faults:
            detail = f"The ledger on {branch} has a line that is no event, line {faults[0].line}"
            raise Refused(Why.DAMAGED, detail)
        self.across(repository, ("switch", "--quiet", "--no-guess", branch), branch)

    def across(self, repository: Repository, words: tuple[str, ...], other: str) -> None:
        """Run a git command that changes the ledger's file, and bring all events to the other side.

        When git refuses, everything is as before and so are we.
        """
        data, _ = self._ledger.read()
        state = contents(self._place.state, LARGEST) if self._place.state.is_file() else None
        assert self._kept is not None  # noqa: S101 - there is a repository
        replace_file(self._kept, data, durable=True)
        try:
            self._set_aside(repository, other)
            repository.act(*words)
        except GitError as no:
            if words[0] == "merge":
                repository.run("merge", "--abort", hooks=True)
            self._put_back(data, state)
            raise Refused(Why.WRONG_STATE, f"git does not {words[0]}: {no}") from None
        self._arrive(data)

    def commit(self, repository: Repository, write: Write, message: str) -> None:
        """Commit tracked files and the ledger with new lines in it, then append these.

        `write` makes them, once it is known which tree is to be committed. When git refuses,
        nothing was recorded.
        """
        assert self._committed is not None  # noqa: S101 - there is a repository
        index = repository.directory / "index"
        before = index.read_bytes() if index.exists() else None
        try:
            repository.act("add", "--update")
            lines = write(repository.act("write-tree"))
            replace_file(self._committed, lines, durable=True)
            self._stage(repository, lines)
            if not repository.says("diff", "--cached", "--quiet"):
                repository.act("commit", "--quiet", "--message", message)
        except GitError as no:
            if before is not None:
                replace_file(index, before)
            self._committed.unlink(missing_ok=True)
            raise Refused(Why.WRONG_STATE, f"git does not commit: {no}") from None
        self._add(lines)
        self._committed.unlink()

    def _stage(self, repository: Repository, lines: bytes) -> None:
        data = self._ledger.read()[0] + lines
        state = pactfiles.state_yml(fold(pact.read(data).entries)).encode()
        for path, content in ((self._place.log, data), (self._place.state, state)):
            name = self._place.name(path)
            if repository.ignores(name):
                continue
            blob = repository.act("hash-object", "-w", "--stdin", data=content)
            repository.act("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")

    def _others(self, repository: Repository, branch: str) -> None:
        """Our files other than the ledger are git's business; it must be able to keep them."""
        ledger = {self._place.name(path) for path in (self._place.log, self._place.state)}
        touched = set(repository.changed()) - ledger
        if clash := sorted(touched & repository.differing("HEAD", f"refs/heads/{branch}")):
            detail = f"{clash[0]} is changed here and differs on {branch}; commit it first"
            raise Refused(Why.WRONG_STATE, detail)

    def _set_aside(self, repository: Repository, other: str) -> None:
        """The ledger's files as git knows them, so that it can move; all lines are kept."""
        for path in (self._place.log, self._place.state):
            name = self._place.name(path)
            if repository.show("HEAD", name) is not None:
                repository.act("checkout", "--quiet", "HEAD", "--", name)
                continue
            if repository.is_tracked(name):
                repository.act("rm", "--quiet", "--cached", "--force", "--", name)
            if repository.show(f"refs/heads/{other}", name) is not None:
                path.unlink(missing_ok=True)

    def _put_back(self, data: bytes, state: bytes | None) -> None:
        if self._ledger.read()[0] != data:
            replace_file(self._place.log, data, durable=True)
        if state is not None:
            replace_file(self._place.state, state)
        if self._kept:
            self._kept.unlink(missing_ok=True)

    def _arrive(self, data: bytes) -> None:
        self._add(pact.missing(self._ledger.read()[0], data))
        if self._kept:
            self._kept.unlink(missing_ok=True)

    def _add(self, lines: bytes) -> None:
        there, mark = self._ledger.read()
        lacking = pact.missing(there, lines)
        if there and not there.endswith(b"\n"):
            detail = "The last line of log.jsonl is torn; events of an interrupted switch wait"
            raise Refused(Why.DAMAGED, detail)
        if lacking:
            self._ledger.append(mark, lacking)
        work = fold(pact.read(there + lacking).entries)
        replace_file(self._place.state, pactfiles.state_yml(work).encode())


def clean(repository: Repository, place: Place) -> None:
    """Refuse while tracked files outside the pact are changed."""
    ours = f"{place.name(place.directory)}/"
    if dirty := [path for path in repository.changed() if not path.startswith(ours)]:
        more = f" and {len(dirty) - 1} more" if len(dirty) > 1 else ""
        detail = f"{dirty[0]}{more} is changed; commit or stash it, or use --no-git"
        raise Refused(Why.WRONG_STATE, detail)
