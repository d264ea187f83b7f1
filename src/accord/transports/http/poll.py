"""`GET /sessions/{id}/messages`: what was said behind a message, now or as soon as it is."""

import asyncio
from collections.abc import Sequence
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from accord.engine.cell import Cell
from accord.engine.engine import Engine
from accord.engine.ports import Sealed
from accord.engine.pulse import beats_of
from accord.transports.archive import LARGEST_PAGE, USUAL_PAGE
from accord.transports.caller import Caller, Callers
from accord.transports.endpoint import Query
from accord.transports.expiry import Expiry
from accord.transports.http.benches import Bench, hung_up
from accord.transports.http.reader import Page, Reader
from accord.transports.http.visits import Lobby
from accord.transports.replies import raw

LONGEST_WAIT = 60

AFTER = Query("after", "the id of the last message you have; without it, from the window's start")
LIMIT = Query("limit", "how many messages at most", USUAL_PAGE, 1, LARGEST_PAGE)
WAIT = Query("wait", "seconds to wait for a message if there is none", 0, 0, LONGEST_WAIT)


class Wait:
    """A poll that waits for news of one room."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.news = asyncio.Event()
        self.over = False

    def end(self, reason: str) -> None:  # noqa: ARG002 - a poll ends with what there is
        """Answer now."""
        self.over = True
        self.news.set()


class Ears:
    """Which polls wait for which room; the engine's own word wakes them."""

    def __init__(self, engine: Engine) -> None:
        self.waiting: dict[str, set[Wait]] = {}
        engine.heard.append(self.heard)

    def heard(self, stream: str, _: Sequence[Sealed]) -> None:
        """Something is on record."""
        for wait in self.waiting.get(stream, ()):
            wait.news.set()

    def prick(self, stream: str, wait: Wait) -> None:
        """From now on it is woken."""
        self.waiting.setdefault(stream, set()).add(wait)

    def rest(self, stream: str, wait: Wait) -> None:
        """No more."""
        here = self.waiting.get(stream, set())
        here.discard(wait)
        if not here:
            self.waiting.pop(stream, None)


class Polls:
    """Reading by asking again and again."""

    def __init__(self, callers: Callers, reader: Reader, lobby: Lobby) -> None:
        self.callers = callers
        self.reader = reader
        self.lobby = lobby
        self.ears = Ears(reader.engine)
        self.bench = Bench(callers.reception.limits)

    async def take(self, request: Request) -> Response:
        """200 with what there is."""
        caller = self.callers.asking(request)
        id, actor = request.path_params["id"], caller.actor
        limit, wait = LIMIT.number(request), WAIT.number(request)
        spot = await self.reader.spot(id, actor)
        after = AFTER.text(request)
        since = self.reader.window_start(spot.cell)
        if after is not None:
            since = await self.reader.version(spot, actor.seat, after)
        self.lobby.asked(spot.cell, actor)
        page = await self.reader.page(id, actor, since, limit)
        if wait and not page.frames and actor.seat in spot.room.members:
            patience = min(wait, self._longest(spot.cell))
            page = await self._wait(request, caller, page.since, limit, patience)
            self.callers.still(caller)
            self.lobby.asked(spot.cell, actor)
        return listed(page, after)

    async def _wait(
        self, request: Request, caller: Caller, since: int, limit: int, patience: float
    ) -> Page:
        """What comes within that time; nothing for who hangs up."""
        stream, wait = f"room/{request.path_params['id']}", Wait(caller)
        self.bench.sit(wait)
        self.ears.prick(stream, wait)
        gone = asyncio.create_task(hung_up(request.receive))
        gone.add_done_callback(lambda _: wait.end("nobody waits"))
        timer = asyncio.get_running_loop().call_later(patience, wait.end, "it took too long")
        expiry = self._expiry(wait)
        try:
            while True:
                wait.news.clear()
                page = await self.reader.page(stream[5:], caller.actor, since, limit)
                if page.frames or wait.over:
                    return page
                since = page.since
                await wait.news.wait()
        finally:
            timer.cancel()
            if expiry is not None:
                expiry.cancel()
            gone.cancel()
            self.ears.rest(stream, wait)
            self.bench.rise(wait)

    def _expiry(self, wait: Wait) -> Expiry | None:
        """Nobody waits for what they may not be told any more."""
        identity = wait.caller.identity
        if identity is None:
            return None
        left = partial(self.callers.reception.answered, identity)
        return Expiry(left, partial(wait.end, "the token has expired"))

    def _longest(self, cell: Cell) -> float:
        """Nobody goes idle while they wait."""
        beats = beats_of(cell)
        return beats.idle / 2000 if beats is not None else LONGEST_WAIT


def listed(page: Page, after: str | None) -> Response:
    """The page as JSON; `next` is what to ask with the next time."""
    position = msgspec.json.encode(page.last or after)
    more = b"true" if page.more else b"false"
    messages = b",".join(page.frames)
    return raw(b'{"messages":[%b],"next":%b,"has_more":%b}' % (messages, position, more))
