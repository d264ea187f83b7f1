"""All pacts that the server mirrors, polled regularly and synced at once on request."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from typing import Any

from accord.core.kernel.records import Event
from accord.core.kernel.refusal import Reason, Refused
from accord.core.provenance.commit_links import (
    LedgerPlaced,
    LedgerRemoved,
    Repo,
    SessionBound,
    SessionUnbound,
)
from accord.core.room.membership.joining import MemberJoined
from accord.core.room.session_lifecycle import SessionCreated
from accord.core.views.pact_board import MirroredBoard, work_view
from accord.engine.committer import of_events
from accord.engine.engine import Engine
from accord.engine.ports import DamagedError, EncodedRecord, StoreError
from accord.pact.mirror.ledger_file import UNREADABLE_NOTICE
from accord.pact.mirror.mirrored_work import MirroredWork
from accord.pact.mirror.replication import Replica
from accord.pact.mirror.room_updates import RoomSummary, RoomUpdater, summarize

log = logging.getLogger("accord.mirror")

POLL_INTERVAL_S = 1.0
SYNC_WAIT_S = 1.0  # a longer sync continues while others start
REQUEST_WAIT_S = 0.4  # for a sync that a request waits for; binding a session waits twice
MAX_REPOS = 256
MAX_SEATS = 64
MAX_UNREAD_LINES = 20
STILL_READING_NOTICE = "the server is still reading the pact; try again in a moment"
BINDING_EVENTS = (SessionBound, SessionUnbound, LedgerPlaced, LedgerRemoved)
JOINING_EVENTS = (SessionCreated, MemberJoined)
RELEVANT_EVENTS = (*BINDING_EVENTS, *JOINING_EVENTS)
UpdateRoom = Callable[[str, MirroredWork, RoomSummary], Awaitable[None]]


class MirroredPact:
    """A repository's pact: its replica on the log and the sessions bound to it."""

    def __init__(self, engine: Engine, repo: str) -> None:
        self.engine = engine
        self.repo = repo
        self.replica = Replica(engine, repo)
        self.room_updater = RoomUpdater(engine, repo)
        self.sessions: tuple[str, ...] = ()
        self.former_sessions: tuple[str, ...] = ()  # unbound, but still subject to its rules
        self.has_news = True  # sessions may not be up to date
        self._lock = asyncio.Lock()

    async def sync(self) -> None:
        """Sync the files to the log, and the log to the rooms."""
        async with self._lock:
            state: Repo = await self.engine.state(f"repo/{self.repo}")
            self.replica.set_directories(state.ledgers)
            self.has_news = self.has_news or (state.bound, state.left) != (
                self.sessions,
                self.former_sessions,
            )
            self.sessions, self.former_sessions = state.bound, state.left
            self.has_news = await self.replica.sync() or self.has_news
            if self.has_news:
                await self._update_rooms()
                self.has_news = False

    async def guard_merges(self, session: str, *, read: bool) -> None:
        """Apply the pact's merge rules to a session; if not `read` yet, all merges are refused."""
        replica = self.replica
        summary = (
            summarize(replica.work, self.repo, replica.blind_reason)
            if read and replica.is_ready
            else None
        )
        self.has_news = True  # a running sync may know more than this
        await self.room_updater.guard_merges(
            session, replica.work, summary or RoomSummary({}, trouble=STILL_READING_NOTICE)
        )

    async def _update_rooms(self) -> None:
        if not (self.sessions or self.former_sessions):
            return
        summary = summarize(self.replica.work, self.repo, self.replica.blind_reason)
        for session in self.sessions:
            await self._update_room(session, self.room_updater.update, summary)
        for session in self.former_sessions:
            await self._update_room(session, self.room_updater.guard_former_session, summary)

    async def _update_room(self, session: str, update: UpdateRoom, summary: RoomSummary) -> None:
        try:
            await update(session, self.replica.work, summary)
        except Refused as refusal:
            extra = {"session": session, "stream": self.replica.stream, "detail": refusal.detail}
            log.warning("pact.untold", extra=extra)


class MirrorService:
    """Runs the mirrors of all pacts."""

    def __init__(self, engine: Engine, pause: float = POLL_INTERVAL_S) -> None:
        self.engine = engine
        self.poll_interval = pause
        self.pacts: dict[str, MirroredPact] = {}
        self._wake = asyncio.Event()
        self._running_syncs: dict[str, asyncio.Task[None]] = {}
        self._requested_syncs: set[asyncio.Task[None]] = set()
        engine.on_state_change.append(of_events(RELEVANT_EVENTS, self.on_state_change))

    async def run(self) -> None:
        """Poll all pacts until cancelled."""
        try:
            await self._run()
        finally:
            for task in self._running_syncs.values():
                task.cancel()

    async def _run(self) -> None:
        is_resumed = False
        while True:
            is_resumed = is_resumed or await self._resume_all()
            await self.sync_all()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.poll_interval):
                    await self._wake.wait()
            self._wake.clear()

    async def sync_all(self) -> None:
        """Sync all pacts concurrently; failures are retried next time.

        A sync that takes long, because its log is long, keeps running while others start.
        """
        for pact in list(self.pacts.values()):
            if pact.repo not in self._running_syncs:
                self._running_syncs[pact.repo] = asyncio.create_task(self._sync_pact(pact))
        if self._running_syncs:
            done, _ = await asyncio.wait(self._running_syncs.values(), timeout=SYNC_WAIT_S)
            self._running_syncs = {
                repo: task for repo, task in self._running_syncs.items() if task not in done
            }

    async def _sync_pact(self, pact: MirroredPact) -> None:
        try:
            await pact.sync()
        except Exception as error:  # noqa: BLE001 - must not stop the other mirrors
            extra = {"stream": pact.replica.stream, "error": type(error).__name__}
            log.warning("pact.failed", extra=extra)

    async def _resume_all(self) -> bool:
        """Resume the mirrors that existed before a restart; False if the log cannot be read now."""
        try:
            for stream in sorted(await self.engine.events.streams("repo/")):
                await self._resume(stream)
        except StoreError as error:
            log.warning("pact.failed", extra={"error": type(error).__name__})
            return False
        return True

    async def _resume(self, stream: str) -> None:
        with suppress(DamagedError, Refused):  # already reported; the other mirrors continue
            repo: Repo = await self.engine.state(stream)
            if repo.ledgers:
                self._pact_of(repo.id)

    def on_state_change(self, stream: str, fresh: Sequence[EncodedRecord]) -> None:
        """Wake up when a session is bound or unbound, or a member joins a session."""
        kind, _, name = stream.partition("/")
        if kind == "repo" and any(
            isinstance(record_.record.event, BINDING_EVENTS) for record_ in fresh
        ):
            self._on_unbound(record_.record.event for record_ in fresh)
            self._wake.set()
        elif kind == "room" and any(
            isinstance(record_.record.event, JOINING_EVENTS) for record_ in fresh
        ):
            for pact in self.pacts.values():
                if name in pact.sessions:
                    pact.has_news = True
                    self._wake.set()

    def _on_unbound(self, events: Iterable[Event]) -> None:
        """Mark other pacts of an unbound session as having news, since they can now be shown."""
        left = {event.session for event in events if isinstance(event, SessionUnbound)}
        for pact in self.pacts.values():
            pact.has_news = pact.has_news or not left.isdisjoint(pact.sessions)

    def _pact_of(self, repo: str) -> MirroredPact:
        if (pact := self.pacts.get(repo)) is not None:
            return pact
        if len(self.pacts) >= MAX_REPOS:
            log.warning("pact.too_many", extra={"stream": f"work/{repo}", "count": MAX_REPOS})
            raise Refused(
                Reason.FULL, f"The server already mirrors {MAX_REPOS} pacts, which is the limit"
            )
        self.pacts[repo] = MirroredPact(self.engine, repo)
        return self.pacts[repo]

    # Reading

    def sessions_by_repo(self) -> dict[str, tuple[str, ...]]:
        """The sessions that are bound to each repository with a pact."""
        return {
            repo: pact.sessions
            for repo, pact in self.pacts.items()
            if pact.replica.is_ready and pact.replica.work.head.started
        }

    def board(self, repo: str) -> MirroredBoard:
        """A pact as it was read last; the repository is one of `sessions_by_repo`."""
        pact = self.pacts[repo]
        replica, work = pact.replica, pact.replica.work
        return MirroredBoard(
            repo=repo,
            sessions=pact.sessions,
            view=work_view(work.work()),
            times=work.times,
            history=work.history,
            events=replica.event_count,
            trouble=replica.blind_reason,
        )

    # Requests from the bridge

    def check_directory(self, repo: str, directory: str) -> None:
        """Refuse an invalid directory, or one pact too many."""
        path = PurePath(directory)
        if not path.is_absolute() or ".." in path.parts or "\0" in directory:
            raise Refused(
                Reason.MALFORMED, "Give the pact's directory as an absolute path without `..`"
            )
        self._pact_of(repo)

    async def sync_now(self, repo: str, directory: str) -> Mapping[str, Any]:
        """Sync at once and report the result; a sync that takes long continues afterwards."""
        pact = self._pact_of(repo)
        task = self._start_sync(pact)
        await asyncio.wait([task], timeout=SYNC_WAIT_S)
        if task.done():
            task.result()
        replica = pact.replica
        report = {"events": replica.event_count, "unread": [], "trouble": replica.full_reason}
        if (ledger_file := replica.ledger_files.get(directory)) is not None:
            report["unread"] = list(ledger_file.status.faults[:MAX_UNREAD_LINES])
            report["trouble"] = replica.full_reason or ledger_file.trouble
        names = await self._seat_names(pact)
        return {"repo": repo, "sessions": list(pact.sessions), "names": names, **report}

    def _start_sync(self, pact: MirroredPact) -> asyncio.Task[None]:
        task = asyncio.create_task(pact.sync())
        self._requested_syncs.add(task)
        task.add_done_callback(self._requested_syncs.discard)
        return task

    async def guard_merges(self, repo: Repo, session: str) -> None:
        """Apply the pact's merge rules to a session before it is bound."""
        if repo.ledgers:
            read = await self.sync_briefly(repo)
            await self.pacts[repo.id].guard_merges(session, read=read)

    async def sync_briefly(self, repo: Repo) -> bool:
        """Sync, waiting briefly; whether it completed. Otherwise it continues in the background."""
        if not repo.ledgers:
            return False
        task = self._start_sync(self._pact_of(repo.id))
        await asyncio.wait([task], timeout=REQUEST_WAIT_S)
        return task.done() and not task.cancelled() and task.exception() is None

    async def ledger_statuses(self, repo: Repo) -> list[Mapping[str, Any]]:
        """Status of each ledger; `alone` is how many events no other ledger has."""
        statuses = list[Mapping[str, Any]]()
        if not repo.ledgers:
            return statuses
        replica = await self._synced_replica(repo)
        for directory in replica.ledger_files:
            ledger_file = replica.ledger_files[directory]
            status = {"directory": directory, "events": len(ledger_file.content.digests)}
            status["alone"] = await asyncio.to_thread(replica.count_only_in, directory)
            status["unread"] = list(ledger_file.status.faults[:MAX_UNREAD_LINES])
            statuses.append({**status, "trouble": ledger_file.trouble})
        return statuses

    async def removable_directories(self, repo: Repo) -> list[str]:
        """A ledger that was removed and had no events that the others lack, if any."""
        replica = await self._synced_replica(repo)
        gone = [
            name
            for name, ledger_file in replica.ledger_files.items()
            if ledger_file.trouble == UNREADABLE_NOTICE
        ]
        for directory in gone:
            if not await asyncio.to_thread(replica.count_only_in, directory):
                return [directory]  # one at a time: two may share events that no other has
        return []

    async def check_removable(self, repo: Repo, directory: str) -> None:
        """Refuse to remove the last ledger, or one with events that no other has."""
        replica = await self._synced_replica(repo)
        alone = await asyncio.to_thread(replica.count_only_in, directory)
        if alone or len(replica.ledger_files) == 1:
            events = "1 event exists" if alone == 1 else f"{alone} events exist"
            what = f"{events} only in this directory" if alone else "This is the last directory"
            detail = (
                f"{what}, and a session is bound to the repository: "
                "unbind it first, or use `--force`"
            )
            raise Refused(Reason.WRONG_STATE, detail, {"alone": alone})

    async def _synced_replica(self, repo: Repo) -> Replica:
        """The replica after a sync."""
        pact = self._pact_of(repo.id)
        await pact.sync()
        return pact.replica

    async def _seat_names(self, pact: MirroredPact) -> dict[str, str]:
        """The pact's seats as trailers name them."""
        ids = [seat.id for seat in pact.replica.work.head.seats[:MAX_SEATS]]
        return {id: await pact.room_updater.participant_name(id, pact.sessions) for id in ids}

    async def release_session(self, repo: str, session: str) -> None:
        """Hide the pact's tasks from a session that is about to be unbound."""
        if (pact := self.pacts.get(repo)) is not None:
            await pact.room_updater.release(session)
