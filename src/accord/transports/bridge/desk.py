"""Who answers hooks: a view over the log, and nothing kept beside it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec.structs import replace

from accord import __version__
from accord.core.kernel.actor import Actor
from accord.core.kernel.authority import Kind
from accord.core.kernel.ids import SYSTEM, TRUNK
from accord.core.kernel.log import Body, Message
from accord.core.kernel.refusal import Refused, Why
from accord.core.kernel.times import iso
from accord.core.provenance import decision as decisions
from accord.core.provenance import kinds, refs
from accord.core.provenance.commits import (
    MOST_LEDGERS,
    CommitRecord,
    LedgerPlace,
    LedgerRemove,
    Repo,
    SessionBind,
    SessionUnbind,
    link_id,
)
from accord.core.provenance.decision import DecisionCommit
from accord.core.provenance.masking import masked, still_masked
from accord.core.provenance.note import Note
from accord.core.provenance.record import note_of
from accord.core.provenance.redaction import redactor, scrub
from accord.core.room.state import Room
from accord.core.views.stretch import Stretch
from accord.engine.engine import Engine

from . import table
from .reading import Linked, Reader

BRIDGE = Actor(seat=f"{SYSTEM}:bridge", kind=Kind.SYSTEM)
PROTOCOL = 1
TRIES = 5
NOTHING = "Nothing was asked, done or approved since the last commit"
MANY = "Several sessions work here; name one in ACCORD_SESSION"
NO_MERGE = "No merge of {forks} was proposed or done since the last commit"
NONE = "No session works here; name one in ACCORD_SESSION, or bind one"


class Place(NamedTuple):
    """Whose work a commit is: a repository, a session, a fork or the trunk."""

    repo: Repo
    room: Room
    fork: str | None

    @property
    def stretch(self) -> Stretch:
        """What no commit has yet."""
        since = self.repo.since(self.room.id, self.fork)
        return Stretch(self.room, self.repo.id, self.fork, since)


class Pacts(Protocol):
    """Who looks after the pacts of repositories."""

    def check(self, repo: str, directory: str) -> None:
        """Refuse a place that can be none."""
        ...

    async def now(self, repo: str, directory: str) -> table.Answer:
        """Bring the log in step with the files, and say what was found in this one."""
        ...

    async def heed(self, repo: Repo, session: str) -> None:
        """Have the merges of a session go by what lies there, before it works there."""
        ...

    async def show(self, repo: Repo) -> bool:
        """Have what lies there told to the sessions that work there, if that takes a moment."""
        ...

    async def seen(self, repo: Repo) -> Sequence[table.Answer]:
        """What is known of each place."""
        ...

    async def needless(self, repo: Repo) -> Sequence[str]:
        """Places that are gone, and had nothing that the others do not have."""
        ...

    async def check_away(self, repo: Repo, directory: str) -> None:
        """Refuse to take away what a session goes by."""
        ...

    async def release(self, repo: str, session: str) -> None:
        """The session works there no longer."""
        ...


class Desk:
    """Answers every action of the table; whoever gets here is the owner of the data."""

    def __init__(
        self, engine: Engine, pacts: Pacts, closed: Callable[[], bool] = lambda: False
    ) -> None:
        self.engine = engine
        self.pacts = pacts
        self.closed = closed
        self.reader = Reader(engine)

    def method(self, name: str) -> Callable[[Any], Awaitable[table.Answer]]:
        """What answers this action."""
        if self.closed():
            raise Refused(Why.UNAVAILABLE, "The server stops; try again in a moment")
        found: Callable[[Any], Awaitable[table.Answer]] = getattr(self, name.replace("-", "_"))
        return found

    # Reading

    async def status(self, ask: table.Status) -> table.Answer:
        """Which server this is."""
        told: dict[str, Any] = {"bridge": "accord", "version": __version__, "protocol": PROTOCOL}
        if ask.repo is None:
            return told
        repo = await self.repo(ask.repo)
        return {**told, "repo": repo.id, "sessions": list(repo.bound)}

    async def commit_context(self, ask: table.CommitContext) -> table.Answer:
        """The trailers' values; without `decision` there is nothing to write."""
        place = await self.place(ask.repo, ask.session, ask.fork, ask.branch)
        found = await self.reader.draft(place.stretch)
        if found is None:
            return {"session": place.room.id, "messages": [], "reason": NOTHING}
        made: table.Answer = scrub(decisions.context(found.decision), self.clean(place.room.id))
        return made

    async def commits(self, ask: table.Commits) -> table.Answer:
        """A page of links."""
        page = await self.reader.linked(ask.repo, ask.after, ask.limit, ask.session)
        return {
            "commits": [summary(link) for link in page],
            "next": page[-1].version if page else ask.after,
        }

    async def extended_metadata(self, ask: table.ExtendedMetadata) -> table.Answer:
        """The note once more."""
        link = await self.reader.link(ask.repo, ask.sha)
        if link is None:
            raise Refused(Why.UNKNOWN, f"No decision is linked to {ask.sha}")
        return {"decision": link.decision.id, "note": await self.note(link, ask.repo)}

    async def message(self, ask: table.MessageSaid) -> table.Answer:
        """Whether the whole room heard it."""
        await self.room(ask.session)
        record = (await self.reader.find(ask.session, [ask.id])).get(ask.id)
        known = record is not None and record.to is None and record.said is not None
        return {"session": ask.session, "id": ask.id, "known": known}

    async def reset(self, ask: table.Reset) -> table.Answer:
        """What would be next; nothing moves."""
        place = await self.place(ask.repo, ask.session, ask.fork)
        found = await self.reader.draft(place.stretch)
        upcoming = {"decision": found.decision.id, "until": found.decision.until} if found else {}
        return {"moved": False, "session": place.room.id, "since": place.stretch.since} | upcoming

    # Recording

    async def session_started(self, ask: table.SessionStarted) -> table.Answer:
        """On record, for a session that exists and goes on; those that are over make way."""
        room = await self.room(ask.session)
        if room.ended:
            raise Refused(Why.ENDED, f"The session {room.id} has ended")
        for over in await self.over((await self.repo(ask.repo)).bound):
            await self.tell(ask.repo, self.engine.ids(), SessionUnbind(over))
        if ask.directory:
            await self.lie(ask.repo, ask.directory)
        await self.pacts.heed(await self.repo(ask.repo), room.id)
        await self.tell(ask.repo, self.engine.ids(), SessionBind(room.id))
        bound = await self.repo(ask.repo)
        await self.pacts.show(bound)
        return {"repo": ask.repo, "sessions": list(bound.bound)}

    async def session_ended(self, ask: table.SessionEnded) -> table.Answer:
        """On record; what was never bound is no error."""
        await self.pacts.release(ask.repo, ask.session)
        await self.tell(ask.repo, self.engine.ids(), SessionUnbind(ask.session))
        return {"repo": ask.repo, "sessions": list((await self.repo(ask.repo)).bound)}

    async def pact_changed(self, ask: table.PactChanged) -> table.Answer:
        """Where it lies is on record, so that a restart goes on looking there."""
        await self.lie(ask.repo, ask.directory)
        return await self.pacts.now(ask.repo, ask.directory)

    async def lie(self, repo: str, directory: str) -> None:
        """Where a pact lies, on record; refused for what can be no place.

        Where there are as many as there may be, those that nobody would miss make way.
        """
        self.pacts.check(repo, directory)
        known = await self.repo(repo)
        if directory not in known.ledgers and len(known.ledgers) >= MOST_LEDGERS:
            for each in await self.pacts.needless(known):
                await self.tell(repo, self.engine.ids(), LedgerRemove(each))
        await self.tell(repo, self.engine.ids(), LedgerPlace(directory))

    async def places(self, ask: table.Places) -> table.Answer:
        """Each, with what is wrong there."""
        repo = await self.repo(ask.repo)
        return {"repo": repo.id, "places": list(await self.pacts.seen(repo))}

    async def place_removed(self, ask: table.PlaceRemoved) -> table.Answer:
        """On record; refused while a session goes by what lies there alone."""
        repo = await self.repo(ask.repo)
        if ask.directory not in repo.ledgers:
            raise Refused(Why.UNKNOWN, f"No pact of {repo.id} lies in {ask.directory}")
        if not ask.force and set(repo.bound) - set(await self.over(repo.bound)):
            await self.pacts.check_away(repo, ask.directory)
        await self.tell(repo.id, self.engine.ids(), LedgerRemove(ask.directory))
        left = await self.repo(ask.repo)
        return {"repo": repo.id, "places": list(left.ledgers)}

    async def commit_created(self, ask: table.CommitCreated) -> table.Answer:
        """Linked once; who asks again is told the same."""
        link = await self.reader.link(ask.repo, ask.sha)
        for _ in range(TRIES):
            if link is not None:
                break
            made = await self.decided(ask)
            try:
                await self.tell(ask.repo, link_id(ask.sha), made)
            except Refused as no:
                if no.why is not Why.WRONG_STATE:
                    raise
                continue  # another commit of the same stretch was quicker
            link = await self.reader.link(ask.repo, ask.sha)
        if link is None:
            raise Refused(Why.UNAVAILABLE, "Too many commits at once; ask again")
        return {"decision": link.decision.id, "note": await self.note(link, ask.repo)}

    async def decided(self, ask: table.CommitCreated) -> CommitRecord:
        """The decision of this commit: one that its message names, or whatever is next."""
        if ask.decision and (before := await self.reader.decided(ask.repo, ask.decision)):
            again = replace(before.decision, first_sha=before.decision.git_sha)
            return CommitRecord(self.cleaned(again, ask), before.masked)
        place = await self.place(ask.repo, ask.session, ask.fork, ask.branch)
        found = await self.reader.draft(place.stretch, ask.decision)
        if found is None and ask.decision:
            raise Refused(Why.UNKNOWN, f"{ask.decision} is no decision of this repository")
        if found is None:
            raise Refused(Why.UNKNOWN, NOTHING)
        back = {each.fork for each in found.decision.merges}
        if ask.merges and not back.intersection(ask.merges):
            raise Refused(Why.UNKNOWN, NO_MERGE.format(forks=" and ".join(ask.merges)))
        told = masked(found.thread, self.clean(place.room.id))
        return CommitRecord(self.cleaned(found.decision, ask), told)

    def cleaned(self, decision: DecisionCommit, ask: table.CommitCreated) -> DecisionCommit:
        """With what git knows, filtered before it is stored: later the values are not known."""
        whole = decisions.to_json(facts(decision, ask))
        return decisions.from_json(scrub(whole, self.clean(decision.pvp_session)))

    # Together

    async def note(self, link: Linked, repo: str) -> Note:
        """The record as git keeps it: the decision as linked, what was said as the log has it."""
        decision = link.decision
        room: Room = await self.engine.state(f"room/{decision.pvp_session}")
        stretch = Stretch(room, repo, decision.fork or None, decision.since)
        found = await self.reader.draft(stretch, decision.id)
        thread = still_masked(found.thread, link.masked) if found else None
        return note_of(decision, thread, self.clean(room.id))

    def clean(self, session: str) -> Callable[[str], str]:
        """The filter, which knows the secrets that are shared in the session now."""
        return redactor(self.engine.vault.values(f"room/{session}"))

    async def place(
        self, repo: str, session: str | None, fork: str | None, branch: str = ""
    ) -> Place:
        """Whose work it is; what is unclear is refused, never guessed."""
        known = await self.repo(repo)
        room = await self.room(session or only(await self.working(known.bound)))
        named = fork if fork is not None else refs.fork_of(branch, room.forks)
        where = None if named in TRUNK else named
        if where is not None and where not in room.forks:
            raise Refused(Why.UNKNOWN, f"There is no fork {where} in {room.id}")
        return Place(known, room, where)

    async def working(self, bound: Sequence[str]) -> Sequence[str]:
        """Those that go on; where none does, what they left is still to be committed."""
        over = await self.over(bound)
        return [each for each in bound if each not in over] or bound

    async def over(self, bound: Sequence[str]) -> Sequence[str]:
        """Those that have ended."""
        rooms = [await self.engine.state(f"room/{each}") for each in bound]
        return [room.id for room in rooms if room.ended]

    async def repo(self, id: str) -> Repo:
        """What is known of a repository."""
        repo: Repo = await self.engine.state(f"repo/{id}")
        return repo

    async def room(self, id: str) -> Room:
        """The session, if there is one."""
        room: Room = await self.engine.state(f"room/{id}")
        if not room.exists:
            raise Refused(Why.NO_ROOM, f"There is no session {id}")
        return room

    async def tell(self, repo: str, id: str, body: Body) -> Sequence[Any]:
        """Put it on record; durable when this returns."""
        message = Message(id, iso(self.engine.clock.now()), repo, BRIDGE.seat, body)
        return await self.engine.handle(message, BRIDGE, stream=f"repo/{repo}")


def only(sessions: Sequence[str]) -> str:
    """The one session; of several nobody knows which is meant."""
    if not sessions:
        raise Refused(Why.UNKNOWN, NONE)
    if len(sessions) > 1:
        raise Refused(Why.WRONG_STATE, MANY, {"sessions": list(sessions)})
    return sessions[0]


def facts(decision: DecisionCommit, ask: table.CommitCreated) -> DecisionCommit:
    """What git alone knows; of the decision itself a hook can say nothing."""
    return replace(
        decision,
        git_sha=ask.sha,
        parents=ask.parents,
        patch_id=ask.patch_id,
        branch=ask.branch,
        files_changed=ask.files,
        decision_type=kind_of(ask) or decision.decision_type,
    )


def kind_of(ask: table.CommitCreated) -> str:
    """What its message calls the decision, in the record's words; else what is usual (OPEN-62)."""
    said = {key.lower(): value.strip() for key, value in ask.message_trailers}
    word = said.get("pvp-type") or said.get("pvp-decision-type") or ""
    known = kinds.recorded(word) if word in kinds.DECISION_TYPES else ""
    resolved = kinds.recorded(kinds.MERGE) if ask.merges else ""
    return known or resolved or kinds.usual(ask.type, ask.scope) or ""


def summary(link: Linked) -> dict[str, Any]:
    """A link in one line."""
    made = link.decision
    return {
        "sha": made.git_sha,
        "decision": made.id,
        "session": made.pvp_session,
        "fork": made.fork or None,
        "at": iso(link.at),
        "since": made.since,
        "until": made.until,
    }
