"""The context `repo/<id>`: which commits came of which stretch of which session.

A view of the rooms tells what a decision holds; here it is only fixed to a commit, once. What was
linked is on the log and in git; the state is what the next link must know.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.authority import May
from accord.core.kernel.log import (
    Ask,
    Body,
    Context,
    Deciders,
    Elapsed,
    Event,
    Evolvers,
    Fact,
    Record,
    idle,
    server_only,
)
from accord.core.kernel.refusal import Refused, Why

from .decision import DecisionCommit

REPO = r"^[A-Za-z0-9._-]{1,64}$"
SHA = r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$"
MOST_SESSIONS = 64
MOST_LEDGERS = 8
MOST_LEFT = 64

Id = Annotated[str, Meta(min_length=1, max_length=128)]
Sha = Annotated[str, Meta(pattern=SHA)]


class Repo(msgspec.Struct, frozen=True):
    """A repository as hooks know it.

    `linked` says up to which `seq` a place of a session has its commits; `bound` which sessions
    work here now, and `left` which of them did last; `ledgers` in which directories of this machine
    its pact lies, one for each working tree.
    """

    id: str
    linked: Mapping[str, int] = {}
    bound: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    ledgers: tuple[str, ...] = ()

    def since(self, session: str, fork: str | None = None) -> int:
        """The `seq` behind which the next decision begins."""
        return self.linked.get(place(session, fork), 0)


class CommitRecord(Body, frozen=True, omit_defaults=True, gc=False):
    """A commit was made; the server has worked out what led to it."""

    type = "commit.record"
    needs = May.SERVE

    decision: DecisionCommit
    masked: Mapping[str, str] = {}  # messages as they were told, without a secret's value


class SessionBind(Body, frozen=True, omit_defaults=True, gc=False):
    """Commits here are of this session, until it is unbound."""

    type = "repo.bind"
    needs = May.SERVE

    session: Id


class SessionUnbind(Body, frozen=True, omit_defaults=True, gc=False):
    """Commits here are of this session no longer."""

    type = "repo.unbind"
    needs = May.SERVE

    session: Id


class LedgerPlace(Body, frozen=True, omit_defaults=True, gc=False):
    """The pact of this repository lies in this directory."""

    type = "repo.ledger"
    needs = May.SERVE

    path: Annotated[str, Meta(min_length=1, max_length=4096)]


class LedgerRemove(Body, frozen=True, omit_defaults=True, gc=False):
    """The pact of this repository lies in this directory no longer."""

    type = "repo.ledger_remove"
    needs = May.SERVE

    path: Annotated[str, Meta(min_length=1, max_length=4096)]


class CommitLinked(Event, frozen=True, kw_only=True, gc=False):
    """This commit carries this decision; a rewritten one carries the same once more."""

    name = "commit.linked"

    decision: DecisionCommit
    masked: Mapping[str, str] | None = None


class SessionBound(Event, frozen=True, kw_only=True, gc=False):
    """A session works in this repository."""

    name = "repo.bound"

    session: str


class SessionUnbound(Event, frozen=True, kw_only=True, gc=False):
    """It works there no more."""

    name = "repo.unbound"

    session: str


class LedgerPlaced(Event, frozen=True, kw_only=True, gc=False):
    """The pact of this repository lies there."""

    name = "repo.ledger_placed"

    path: str


class LedgerRemoved(Event, frozen=True, kw_only=True, gc=False):
    """It lies there no more."""

    name = "repo.ledger_removed"

    path: str


def place(session: str, fork: str | None = None) -> str:
    """Where a decision was made: a fork has its own conversation, and so its own commits."""
    return f"{session}\n{fork}" if fork else session  # no id has a line break


def link_id(sha: str) -> str:
    """A commit is linked once; who says it again is told what was said first."""
    return f"commit-{sha}"


def record(repo: Repo, ask: Ask, body: CommitRecord) -> Iterator[Fact]:
    """What follows the last link, or once more what was linked before; never half of each."""
    made = body.decision
    linked = repo.since(made.pvp_session, made.fork)
    fresh = made.since == linked and made.until >= made.since
    again = made.until <= linked
    if not (fresh or again):
        detail = "Another commit was linked meanwhile; ask for the context again"
        raise Refused(Why.WRONG_STATE, detail, {"linked": linked})
    yield CommitLinked(decision=made, masked=body.masked or None)


def bind(repo: Repo, ask: Ask, body: SessionBind) -> Iterator[Fact]:
    """Once; to say it again changes nothing."""
    if body.session in repo.bound:
        return
    if len(repo.bound) >= MOST_SESSIONS:
        raise Refused(Why.FULL, f"{MOST_SESSIONS} sessions work here already; end one first")
    yield SessionBound(session=body.session)


def unbind(repo: Repo, ask: Ask, body: SessionUnbind) -> Iterator[Fact]:
    """What was not bound need not be unbound."""
    if body.session in repo.bound:
        yield SessionUnbound(session=body.session)


def place_ledger(repo: Repo, ask: Ask, body: LedgerPlace) -> Iterator[Fact]:
    """Once; to say it again changes nothing. None gives way: what lies there alone still counts."""
    if body.path in repo.ledgers:
        return
    if len(repo.ledgers) >= MOST_LEDGERS:
        detail = f"The pact of {repo.id} lies in {MOST_LEDGERS} places already"
        raise Refused(Why.FULL, f"{detail}; `accord git places` shows them and removes one")
    yield LedgerPlaced(path=body.path)


def remove_ledger(repo: Repo, ask: Ask, body: LedgerRemove) -> Iterator[Fact]:
    """Where nothing lies, nothing is removed."""
    if body.path in repo.ledgers:
        yield LedgerRemoved(path=body.path)


def on_linked(repo: Repo, event: CommitLinked, record: Record) -> Repo:
    made = event.decision
    key = place(made.pvp_session, made.fork)
    if made.until <= repo.linked.get(key, 0):
        return repo
    return replace(repo, linked={**repo.linked, key: made.until})


def on_bound(repo: Repo, event: SessionBound, record: Record) -> Repo:
    return replace(
        repo,
        bound=(*besides(repo.bound, event.session), event.session),
        left=besides(repo.left, event.session),
    )


def on_unbound(repo: Repo, event: SessionUnbound, record: Record) -> Repo:
    left = (*besides(repo.left, event.session), event.session)[-MOST_LEFT:]
    return replace(repo, bound=besides(repo.bound, event.session), left=left)


def besides(sessions: tuple[str, ...], one: str) -> tuple[str, ...]:
    """The others, in their order."""
    return tuple(each for each in sessions if each != one)


def on_placed(repo: Repo, event: LedgerPlaced, record: Record) -> Repo:
    others = tuple(each for each in repo.ledgers if each != event.path)
    # Older servers had the oldest give way, and nothing says so on their logs.
    return replace(repo, ledgers=(*others, event.path)[-MOST_LEDGERS:])


def on_removed(repo: Repo, event: LedgerRemoved, record: Record) -> Repo:
    return replace(repo, ledgers=tuple(each for each in repo.ledgers if each != event.path))


DECIDE: Deciders = {
    CommitRecord: record,
    SessionBind: bind,
    SessionUnbind: unbind,
    LedgerPlace: place_ledger,
    LedgerRemove: remove_ledger,
    Elapsed: idle,
}
EVOLVE: Evolvers = {
    CommitLinked: on_linked,
    SessionBound: on_bound,
    SessionUnbound: on_unbound,
    LedgerPlaced: on_placed,
    LedgerRemoved: on_removed,
}
CONTEXT: Context[Repo] = Context(
    name="repo",
    start=lambda stream: Repo(id=stream.removeprefix("repo/")),
    decide=DECIDE,
    evolve=EVOLVE,
    # It computes what a decision holds, and nobody tells it.
    admit=server_only("Commits are recorded through the git bridge"),
    state=Repo,
)
