"""One server among those that use a log: signs of life, signals, connected members, leadership.

All of it is on a connection of its own. A server counts as gone when its beat has stood still for
`LEASE_S`, as another server measures it with its own clock while it can read the table. So neither
a clock that jumps nor a database that was away makes a living server look dead. One that was
declared dead and is not registers again, and says again who is connected to it.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable
from time import monotonic
from zlib import crc32

import asyncpg

from accord.engine.ports import Claim, ServerListener, StoreError
from accord.stores.postgres.errors import STORE_ERRORS
from accord.stores.postgres.schema import SIGNAL_CHANNEL
from accord.stores.postgres.tail_watch import Connect, TailWatch

BEAT_S = 1.0
# A server without a sign of life for this long is gone.
LEASE_S = 5.0
RECONNECT_S = 0.2
STATEMENT_TIMEOUT_S = 5.0
# Claims are read again this often, in case a signal was lost.
RESYNC_S = 15.0
# PostgreSQL takes notifications below 8000 bytes; longer signals go through a table.
MAX_NOTIFICATION_BYTES = 7900
MAX_UNSENT_SIGNALS = 10_000
# First half of the advisory locks for tasks that one server does ("ACOT").
TASK_LOCK = 0x41434F54
LINK_ERRORS: tuple[type[BaseException], ...] = (StoreError, *STORE_ERRORS)

_BEAT_SQL = """
    WITH mine AS (
        INSERT INTO accord.servers AS kept (id) VALUES ($1)
        ON CONFLICT (id) DO UPDATE SET beat = kept.beat + 1, seen = now()
        RETURNING xmax = 0 AS is_new
    )
    SELECT mine.is_new, s.id, s.beat, extract(epoch FROM now() - s.seen)::float8 AS age
    FROM mine LEFT JOIN accord.servers AS s ON s.id <> $1
"""
_ALIVE_SQL = """
    SELECT id FROM accord.servers WHERE id <> $1 AND seen > now() - $2 * interval '1 second'
"""
_FORGET_SQL = "DELETE FROM accord.servers WHERE id = $1 AND beat = $2"
_LEAVE_SQL = "DELETE FROM accord.servers WHERE id = $1"
_CLAIMS_SQL = "SELECT server, stream, member FROM accord.connected WHERE server = ANY ($1)"
_CLAIM_SQL = """
    INSERT INTO accord.connected (server, stream, member)
    SELECT $1, c.stream, c.member FROM unnest($2::text[], $3::text[]) AS c (stream, member)
    WHERE EXISTS (SELECT FROM accord.servers WHERE id = $1) ON CONFLICT DO NOTHING
"""
_RELEASE_SQL = """
    DELETE FROM accord.connected AS kept USING unnest($2::text[], $3::text[]) AS c (stream, member)
    WHERE kept.server = $1 AND kept.stream = c.stream AND kept.member = c.member
"""
_NOTIFY_SQL = "SELECT pg_notify($1, t) FROM unnest($2::text[]) AS t"
_KEEP_SQL = "INSERT INTO accord.signals (content) VALUES ($1) RETURNING id"
_CLEAN_SQL = "DELETE FROM accord.signals WHERE sent < now() - interval '1 minute'"
_LOCK_SQL = "SELECT pg_try_advisory_lock($1, $2)"
_UNLOCK_SQL = "SELECT pg_advisory_unlock($1, $2)"


class OtherServer:
    """What was seen of another server, and when it last gave a sign of life."""

    def __init__(self, beat: int, seen_at: float) -> None:
        self.beat = beat
        self.seen_at = seen_at
        self.has_ended = False


class ServerTask:
    """A task that one of the servers does."""

    def __init__(self, name: str) -> None:
        self.key = crc32(name.encode()) & 0x7FFFFFFF
        self.given = asyncio.Event()
        self.taken_away = asyncio.Event()


class PostgresServerLink:
    """Implements `ServerLink` on the tables `servers`, `connected` and `signals`."""

    def __init__(
        self,
        id: int,
        connect: Connect,
        pool: asyncpg.Pool,
        tail_watch: TailWatch,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.id = id
        self.others: frozenset[int] = frozenset()
        self._connect = connect
        self._pool = pool
        self._tail_watch = tail_watch
        self._clock = clock
        self._listener: ServerListener | None = None
        self._connection: asyncpg.Connection | None = None
        self._servers: dict[int, OtherServer] = {}
        self._claims: dict[Claim, None] = {}
        self._changed_claims: dict[Claim, None] = {}
        self._unsent: deque[bytes] = deque()
        self._number = 0
        self._incoming: asyncio.Queue[str] = asyncio.Queue()
        self._tasks: dict[str, ServerTask] = {}
        self._wake = asyncio.Event()
        self._one_statement = asyncio.Lock()
        self._resync = True
        self._beat_due = 0.0
        self._resync_due = 0.0
        self._last_beat: float | None = None
        self._is_registered = False
        self._is_stopping = False
        self._runner: asyncio.Task[None] | None = None
        self._receiver: asyncio.Task[None] | None = None

    # For the server

    async def find_others(self) -> frozenset[int]:
        """By the database's clock, since this server has not watched their beats yet."""
        return frozenset(row["id"] for row in await self._fetch(_ALIVE_SQL, self.id, LEASE_S))

    async def start(self, listener: ServerListener) -> None:
        """Register; StoreError if the database cannot be reached."""
        self._listener = listener
        self._tail_watch.on_signal = self._incoming.put_nowait
        self._tail_watch.on_listening = self._ask_again
        await self._turn()
        self._runner = asyncio.create_task(self._run(), name="accord-server-link")
        self._receiver = asyncio.create_task(self._receive(), name="accord-server-signals")

    def send(self, text: bytes) -> None:
        """Send a signal to all servers, in order with this server's other signals."""
        if len(self._unsent) < MAX_UNSENT_SIGNALS:
            self._unsent.append(text)
            self._wake.set()

    def claim(self, claim: Claim) -> None:
        """This server has a connection of this member."""
        self._claims[claim] = None
        self._changed_claims[claim] = None
        self._wake.set()

    def release(self, claim: Claim) -> None:
        """It has none any more."""
        self._claims.pop(claim, None)
        self._changed_claims[claim] = None
        self._wake.set()

    @contextlib.asynccontextmanager
    async def lead(self, task: str) -> AsyncIterator[asyncio.Event]:
        """Waits until no other server has the task; the event is set when it is taken away."""
        wanted = self._tasks[task] = ServerTask(task)
        self._beat_due = 0.0
        self._wake.set()
        try:
            await wanted.given.wait()
            yield wanted.taken_away
        finally:
            self._tasks.pop(task, None)
            if wanted.given.is_set() and self._connection and not self._is_stopping:
                with contextlib.suppress(*STORE_ERRORS):
                    await self._execute(_UNLOCK_SQL, TASK_LOCK, wanted.key)

    async def stop(self, *, hand_over: bool) -> None:
        """Stop; without `hand_over` the others learn at once that no one is connected here."""
        self._is_stopping = True
        for task in (self._runner, self._receiver):
            if task:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        with contextlib.suppress(*LINK_ERRORS):
            if not hand_over:
                await self._execute(_LEAVE_SQL, self.id)
        self._drop_connection()

    # The loop

    def _ask_again(self) -> None:
        """Signals may have been missed."""
        self._resync = True
        self._beat_due = 0.0
        self._wake.set()

    async def _run(self) -> None:
        while True:
            try:
                await self._turn()
            except LINK_ERRORS:
                self._on_connection_lost()
                await asyncio.sleep(RECONNECT_S)
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._beat_due - self._clock())):
                    await self._wake.wait()
            self._wake.clear()

    async def _turn(self) -> None:
        """Send what waits, and give a sign of life if one is due."""
        await self._send_signals()
        await self._write_claims()
        if self._clock() >= self._beat_due:
            await self._beat()
            await self._take_tasks()

    async def _send_signals(self) -> None:
        while self._unsent:
            texts = list[str]()
            for content in list(self._unsent):
                texts.append(await self._notification(content))
            # Not in one transaction with others of the same text: PostgreSQL sends those once.
            await self._fetch(_NOTIFY_SQL, SIGNAL_CHANNEL, texts)
            for _ in texts:
                self._unsent.popleft()

    async def _notification(self, content: bytes) -> str:
        self._number += 1
        head = f"{self.id} {self._number} "
        if len(head) + len(content) < MAX_NOTIFICATION_BYTES:
            return head + content.decode()
        (row,) = await self._fetch(_KEEP_SQL, content)
        return f"{head}@{row['id']}"

    async def _write_claims(self) -> None:
        if not self._is_registered or not self._changed_claims:
            return
        changed, self._changed_claims = self._changed_claims, {}
        try:
            for sql, claims in (
                (_CLAIM_SQL, [each for each in changed if each in self._claims]),
                (_RELEASE_SQL, [each for each in changed if each not in self._claims]),
            ):
                if claims:
                    streams, members = [c[0] for c in claims], [c[1] for c in claims]
                    await self._execute(sql, self.id, streams, members)
        except BaseException:
            self._changed_claims = changed | self._changed_claims
            raise

    async def _beat(self) -> None:
        rows = await self._fetch(_BEAT_SQL, self.id)
        now = self._clock()
        self._beat_due = now + BEAT_S
        if rows[0]["is_new"]:  # at the start, or others had declared this server dead
            self._is_registered = True
            self._changed_claims |= self._claims
            await self._write_claims()
        self._observe([row for row in rows if row["id"] is not None], now)
        await self._update_others(now)

    def _observe(self, rows: list[asyncpg.Record], now: float) -> None:
        """Take in the beats of the others; time in which this server saw nothing does not count."""
        unseen = now - self._last_beat - 2 * BEAT_S if self._last_beat is not None else 0.0
        self._last_beat = now
        known, self._servers = self._servers, {}
        for row in rows:
            server = known.get(row["id"]) or OtherServer(row["beat"], now - max(0.0, row["age"]))
            server.seen_at += max(0.0, unseen)
            if server.beat != row["beat"]:
                server.beat, server.seen_at, server.has_ended = row["beat"], now, False
            self._servers[row["id"]] = server
        for id, server in known.items():
            if id not in self._servers and not server.has_ended:
                self._end(id)

    async def _update_others(self, now: float) -> None:
        for id, server in self._servers.items():
            silence = now - server.seen_at
            if silence > LEASE_S and not server.has_ended:
                server.has_ended = True
                self._end(id)
            if silence > 2 * LEASE_S:
                await self._execute(_FORGET_SQL, id, server.beat)
        others = frozenset(id for id, server in self._servers.items() if not server.has_ended)
        is_new = others != self.others
        self.others = others
        if is_new or self._resync or now >= self._resync_due:
            self._resync = False
            self._resync_due = now + RESYNC_S
            await self._read_claims()
            await self._execute(_CLEAN_SQL)
        if is_new and self._listener:
            self._listener.on_servers_changed()

    async def _read_claims(self) -> None:
        claims: dict[int, set[Claim]] = {id: set() for id in self.others}
        for row in await self._fetch(_CLAIMS_SQL, list(self.others)) if self.others else ():
            claims[row["server"]].add((row["stream"], row["member"]))
        if self._listener:
            self._listener.on_claims(claims)

    def _end(self, id: int) -> None:
        self.others -= {id}
        if self._listener:
            self._listener.on_server_ended(id)

    async def _take_tasks(self) -> None:
        for task in list(self._tasks.values()):
            if not task.given.is_set():
                (row,) = await self._fetch(_LOCK_SQL, TASK_LOCK, task.key)
                if row[0]:
                    task.given.set()

    # Signals of all servers

    async def _receive(self) -> None:
        """Hand signals over in the order in which PostgreSQL delivers them."""
        while True:
            sender, _, content = (await self._incoming.get()).split(" ", 2)
            data = content.encode()
            if content.startswith("@"):
                try:
                    data = await self._long_signal(int(content[1:]))
                except STORE_ERRORS:
                    continue
            if self._listener and data:
                self._listener.on_signals(int(sender), data)

    async def _long_signal(self, id: int) -> bytes:
        sql = "SELECT content FROM accord.signals WHERE id = $1"
        return await self._pool.fetchval(sql, id, timeout=STATEMENT_TIMEOUT_S) or b""

    # The connection

    async def _fetch(self, sql: str, *values: object) -> list[asyncpg.Record]:
        async with self._one_statement:
            connection = self._connection
            if connection is None or connection.is_closed():
                connection = self._connection = await self._connect()
            return list(await connection.fetch(sql, *values, timeout=STATEMENT_TIMEOUT_S))

    async def _execute(self, sql: str, *values: object) -> None:
        await self._fetch(sql, *values)

    def _on_connection_lost(self) -> None:
        """Locks and unsent signals are gone."""
        self._drop_connection()
        self._unsent.clear()
        self._beat_due = 0.0
        for task in list(self._tasks.values()):
            if task.given.is_set():
                task.taken_away.set()
        if self._listener:
            self._listener.on_link_lost()

    def _drop_connection(self) -> None:
        if self._connection:
            self._connection.terminate()
            self._connection = None
