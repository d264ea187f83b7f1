"""The context `repo/<id>`: which commit was made from which part of which session.

The decision itself is computed by a view of the room; here it is linked to a commit, once. Links
are on the log and in git; the state has only what the next link needs.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from accord.core.kernel.context import (
    Command,
    Context,
    Deciders,
    EventOrEffect,
    Evolvers,
    no_events,
    server_only,
)
from accord.core.kernel.messages import Body, Elapsed
from accord.core.kernel.records import Event, Record
from accord.core.kernel.refusal import Reason, Refused
from accord.core.kernel.role_permissions import Permission

from .decision_commit import DecisionCommit
from .waiting_runs import CarriedRun, WaitingRun, carried_runs, waiting_after

REPO_PATTERN = r"^[A-Za-z0-9._-]{1,64}$"
SHA_PATTERN = r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$"
MAX_BOUND_SESSIONS = 64
MAX_LEDGERS = 8
MAX_LEFT_SESSIONS = 64

Id = Annotated[str, Meta(min_length=1, max_length=128)]
Sha = Annotated[str, Meta(pattern=SHA_PATTERN)]


class Repo(msgspec.Struct, frozen=True):
    """A repository.

    `linked` has, for each session or fork, the last `seq` covered by a commit, `links` how many
    commits there were, and `waiting` the runs that none of them contains. `bound` are the
    sessions that work here now, `left` the latest that no longer do. `ledgers` are the directories
    on this machine with the ledger of its pact, one for each working tree.
    """

    id: str
    linked: Mapping[str, int] = {}
    links: Mapping[str, int] = {}
    waiting: Mapping[str, tuple[WaitingRun, ...]] = {}
    bound: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    ledgers: tuple[str, ...] = ()

    def since(self, session: str, fork: str | None = None) -> int:
        """The `seq` after which the next decision starts."""
        return self.linked.get(link_key(session, fork), 0)

    def carried(self, session: str, fork: str | None = None) -> tuple[CarriedRun, ...]:
        """Runs from before, which the next commit may contain."""
        waiting = self.waiting.get(link_key(session, fork), ())
        return carried_runs(waiting, self.since(session, fork)) if waiting else ()

    def earlier_links(self, session: str, fork: str | None = None) -> int:
        """The number of commits that were linked, each to a decision of its own."""
        return self.links.get(link_key(session, fork), 0)


class CommitRecord(Body, frozen=True, omit_defaults=True, gc=False):
    """Link a commit to the decision that the server computed for it."""

    type = "commit.record"
    needs = Permission.SERVER_ONLY

    decision: DecisionCommit
    masked: Mapping[str, str] = {}  # messages with secret values masked


class SessionBind(Body, frozen=True, omit_defaults=True, gc=False):
    """Attribute commits in this repository to a session until it is unbound."""

    type = "repo.bind"
    needs = Permission.SERVER_ONLY

    session: Id


class SessionUnbind(Body, frozen=True, omit_defaults=True, gc=False):
    """Stop attributing commits to a session."""

    type = "repo.unbind"
    needs = Permission.SERVER_ONLY

    session: Id


class LedgerPlace(Body, frozen=True, omit_defaults=True, gc=False):
    """Register a directory with the ledger of this repository's pact."""

    type = "repo.ledger"
    needs = Permission.SERVER_ONLY

    path: Annotated[str, Meta(min_length=1, max_length=4096)]


class LedgerRemove(Body, frozen=True, omit_defaults=True, gc=False):
    """Unregister a ledger directory."""

    type = "repo.ledger_remove"
    needs = Permission.SERVER_ONLY

    path: Annotated[str, Meta(min_length=1, max_length=4096)]


class CommitLinked(Event, frozen=True, kw_only=True, gc=False):
    """A commit was linked to a decision; a rewritten commit is linked to the same one again."""

    name = "commit.linked"

    decision: DecisionCommit
    masked: Mapping[str, str] | None = None


class SessionBound(Event, frozen=True, kw_only=True, gc=False):
    """A session was bound to this repository."""

    name = "repo.bound"

    session: str


class SessionUnbound(Event, frozen=True, kw_only=True, gc=False):
    """A session was unbound from this repository."""

    name = "repo.unbound"

    session: str


class LedgerPlaced(Event, frozen=True, kw_only=True, gc=False):
    """A ledger directory was registered."""

    name = "repo.ledger_placed"

    path: str


class LedgerRemoved(Event, frozen=True, kw_only=True, gc=False):
    """A ledger directory was unregistered."""

    name = "repo.ledger_removed"

    path: str


def link_key(session: str, fork: str | None = None) -> str:
    """The key in `linked`; a fork has its own conversation and therefore its own commits."""
    return f"{session}\n{fork}" if fork else session  # ids contain no line breaks


def link_id(sha: str) -> str:
    """The message id for linking a commit; a repeated request returns the first result."""
    return f"commit-{sha}"


def link_commit(repo: Repo, command: Command, body: CommitRecord) -> Iterator[EventOrEffect]:
    """Accepts the range right after the last link, or one that is linked already; never a mix."""
    decision = body.decision
    linked = repo.since(decision.pvp_session, decision.fork)
    is_carried = bool(decision.earlier_links and not decision.first_sha)
    links = repo.earlier_links(decision.pvp_session, decision.fork)
    is_current = not is_carried or decision.earlier_links == links
    is_next = decision.since == linked and decision.until >= decision.since and is_current
    is_linked = decision.until <= linked and not is_carried
    if not (is_next or is_linked):
        detail = "Another commit was linked in the meantime; request the decision context again"
        raise Refused(Reason.WRONG_STATE, detail, {"linked": linked})
    yield CommitLinked(decision=decision, masked=body.masked or None)


def bind_session(repo: Repo, command: Command, body: SessionBind) -> Iterator[EventOrEffect]:
    """Idempotent."""
    if body.session in repo.bound:
        return
    if len(repo.bound) >= MAX_BOUND_SESSIONS:
        raise Refused(
            Reason.FULL,
            f"{MAX_BOUND_SESSIONS} sessions are bound to this repository; unbind one first",
        )
    yield SessionBound(session=body.session)


def unbind_session(repo: Repo, command: Command, body: SessionUnbind) -> Iterator[EventOrEffect]:
    """Idempotent."""
    if body.session in repo.bound:
        yield SessionUnbound(session=body.session)


def place_ledger(repo: Repo, command: Command, body: LedgerPlace) -> Iterator[EventOrEffect]:
    """Idempotent; never evicts another directory, which may have the only copy of a ledger."""
    if body.path in repo.ledgers:
        return
    if len(repo.ledgers) >= MAX_LEDGERS:
        detail = f"The pact of {repo.id} already has {MAX_LEDGERS} ledger directories"
        raise Refused(Reason.FULL, f"{detail}; list and remove them with `accord git places`")
    yield LedgerPlaced(path=body.path)


def remove_ledger(repo: Repo, command: Command, body: LedgerRemove) -> Iterator[EventOrEffect]:
    """Idempotent."""
    if body.path in repo.ledgers:
        yield LedgerRemoved(path=body.path)


def on_linked(repo: Repo, event: CommitLinked, record: Record) -> Repo:
    decision = event.decision
    key = link_key(decision.pvp_session, decision.fork)
    linked = repo.linked.get(key, 0)
    has_only_carried = decision.until == decision.since == linked and not decision.first_sha
    is_new = decision.until > linked or has_only_carried
    runs = repo.waiting.get(key, ())
    if runs or any(tool.uncommitted for tool in decision.tool_executions):
        runs = waiting_after(runs, decision, is_new=is_new)
    return replace(
        repo,
        linked={**repo.linked, key: max(linked, decision.until)},
        links={**repo.links, key: repo.links.get(key, 0) + is_new},
        waiting={**repo.waiting, key: runs},
    )


def on_bound(repo: Repo, event: SessionBound, record: Record) -> Repo:
    return replace(
        repo,
        bound=(*without_session(repo.bound, event.session), event.session),
        left=without_session(repo.left, event.session),
    )


def on_unbound(repo: Repo, event: SessionUnbound, record: Record) -> Repo:
    left = (*without_session(repo.left, event.session), event.session)[-MAX_LEFT_SESSIONS:]
    return replace(repo, bound=without_session(repo.bound, event.session), left=left)


def without_session(sessions: tuple[str, ...], removed: str) -> tuple[str, ...]:
    return tuple(session for session in sessions if session != removed)


def on_placed(repo: Repo, event: LedgerPlaced, record: Record) -> Repo:
    others = tuple(path for path in repo.ledgers if path != event.path)
    # Older servers evicted the oldest one without recording that on the log.
    return replace(repo, ledgers=(*others, event.path)[-MAX_LEDGERS:])


def on_removed(repo: Repo, event: LedgerRemoved, record: Record) -> Repo:
    return replace(repo, ledgers=tuple(path for path in repo.ledgers if path != event.path))


DECIDE: Deciders = {
    CommitRecord: link_commit,
    SessionBind: bind_session,
    SessionUnbind: unbind_session,
    LedgerPlace: place_ledger,
    LedgerRemove: remove_ledger,
    Elapsed: no_events,
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
    initial_state=lambda stream: Repo(id=stream.removeprefix("repo/")),
    decide=DECIDE,
    evolve=EVOLVE,
    # Clients must not state decisions; the server computes them.
    admit=server_only("Commits can only be recorded through the git bridge"),
    state_type=Repo,
)
