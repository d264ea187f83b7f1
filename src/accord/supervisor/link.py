"""The link between a terminal and the server: `python -m accord.supervisor.link FD TERMINAL_FD`.

It follows the host's screen, reports to the server what it sees, takes wakes from it and has the
relay type them. The relay starts it, and starts another one if it ends. If the relay itself was
killed, the link gives the person's terminal back.
"""

import asyncio
import os
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from accord.api.threads import MAX_WAKE_WAIT_S, HandedWake, TakeWakes, WakeDone
from accord.client.connection.backoff import Backoff, RetryPolicy
from accord.client.errors import ClientError
from accord.core.attention.waking.prompt import MARK
from accord.supervisor.delivery import Abandon, Action, Deliverer, Outcome, SendEnter, Wake
from accord.supervisor.frames import Frame, FrameKind, FrameReader, with_fields
from accord.supervisor.keyboard import Paste, Typing
from accord.supervisor.prompt_line import HostScreen, HostState
from accord.supervisor.server_side import ServerSide, open_server_side, origin_of
from accord.supervisor.terminal import leave_modes, restore, saved_from_json

READ_BYTES = 256 << 10
# Between two reports that differ; a screen changes many times in a second.
REPORT_AFTER_S = 0.3
LOOK_S = 0.05
NICENESS = 5
LAST_REPORT_S = 2.0
MAX_DONE = 16
FRAMES = {
    Paste: FrameKind.PASTE,
    SendEnter: FrameKind.ENTER,
    Abandon: FrameKind.ABANDON,
}


class Link:
    """Everything that one link knows."""

    def __init__(self, relay: socket.socket, terminal: int) -> None:
        self._relay = relay
        self._terminal = terminal
        self._frames = FrameReader()
        self._facts: dict[str, Any] = {}
        self._host: HostScreen | None = None
        self._deliverer = Deliverer()
        self._output = 0
        self._done: dict[str, WakeDone] = {}
        self._changed = asyncio.Event()
        self._typing = asyncio.Event()
        self._known = asyncio.Event()  # which server, and which host
        self._ended = False
        self._server: ServerSide | None = None

    async def run(self) -> None:
        """Until the relay is gone."""
        tasks = [
            asyncio.create_task(each) for each in (self._ask(), self._report(), self._keep_time())
        ]
        try:
            await self._follow()
        finally:
            for task in tasks:
                task.cancel()
                with suppress(asyncio.CancelledError, ClientError):
                    await task
            if not self._ended:
                self._give_terminal_back()
            await self._say_goodbye()

    # The relay

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._ended:
            try:
                data = await loop.sock_recv(self._relay, READ_BYTES)
            except OSError:
                return
            if not data:
                return
            for frame in self._frames.feed(data):
                await self._on_frame(frame)
            await self._see()

    async def _on_frame(self, frame: Frame) -> None:
        now = time.monotonic()
        match frame.kind:
            case FrameKind.BEGIN:
                self._begin(frame.fields)
            case FrameKind.OUTPUT if self._host is not None:
                self._output += len(frame.payload)
                self._host.screen.feed(frame.payload)
            case FrameKind.GAP if self._host is not None:
                self._output = int(frame.fields["output"])
                self._host.screen.is_complete = False
            case FrameKind.SIZE if self._host is not None:
                self._host.screen.resize(frame.fields["rows"], frame.fields["columns"])
            case FrameKind.KEYS:
                fields = frame.fields
                await self._do(self._deliverer.hear(fields["count"], fields["at"], now))
                self._changed.set()
            case FrameKind.TYPED:
                fields = frame.fields
                await self._do(self._deliverer.typed(fields["wake"], Typing(fields["what"]), now))
            case FrameKind.END:
                self._ended = True
            case _:
                pass

    def _begin(self, fields: dict[str, Any]) -> None:
        self._facts.update(fields)
        if "rows" in fields:
            self._host = HostScreen(fields["runtime"], fields["rows"], fields["columns"])
            self._output = fields["output"]
            self._deliverer.know_sent(fields["sent"])
            self._host.screen.is_complete = self._output == 0
            self._server = open_server_side(self._facts)
            self._known.set()

    async def _see(self) -> None:
        if self._host is None:
            return
        before, view = self._deliverer.view, self._host.view
        await self._do(self._deliverer.see(view, self._output, time.monotonic()))
        if (before.state, before.is_empty) != (view.state, view.is_empty):
            self._changed.set()

    async def _do(self, actions: list[Action]) -> None:
        for action in actions:
            if isinstance(action, Outcome):
                self._done[action.wake] = WakeDone(
                    wake_id=action.wake, result=action.result.value, detail=action.detail[:300]
                )
                self._changed.set()
            else:
                await self._tell(with_fields(FRAMES[type(action)], **action._asdict()))

    async def _tell(self, frame: bytes) -> None:
        with suppress(OSError):
            await asyncio.get_running_loop().sock_sendall(self._relay, frame)

    async def _keep_time(self) -> None:
        """While something is being typed; what happens meanwhile can change when to look next."""
        while True:
            await self._typing.wait()
            self._typing.clear()
            while (at := self._deliverer.next_at) is not None:
                await asyncio.sleep(min(LOOK_S, max(0.01, at - time.monotonic())))
                await self._do(self._deliverer.tick(time.monotonic()))

    # The server

    async def _ask(self) -> None:
        """Wait for wakes, for ever; a server that is away is tried again."""
        await self._repeat(lambda: self._take(MAX_WAKE_WAIT_S))

    async def _report(self) -> None:
        """Say what has changed, soon after it did."""

        async def once() -> None:
            await self._changed.wait()
            await asyncio.sleep(REPORT_AFTER_S)
            self._changed.clear()
            await self._take(0)

        await self._repeat(once)

    async def _repeat(self, once: Callable[[], Awaitable[None]]) -> None:
        backoff = Backoff(RetryPolicy())
        while True:
            await self._known.wait()
            try:
                await once()
                backoff = Backoff(RetryPolicy())
            except ClientError:
                self._changed.set()  # what was to be reported is still to be reported
                await backoff.wait()

    async def _take(self, wait_s: float) -> None:
        if self._server is None:
            return
        done = tuple(self._done.values())[:MAX_DONE]
        await self._take_in(await self._server.take(self._request(wait_s, done)), done)

    async def _take_in(self, wakes: tuple[HandedWake, ...], done: tuple[WakeDone, ...]) -> None:
        for one in done:
            self._done.pop(one.wake_id, None)
        for wake in wakes:
            if wake.wake_id not in self._done:
                asked = Wake(wake.wake_id, wake.prompt, wake.quiet_seconds, MARK)
                await self._do(self._deliverer.ask(asked, time.monotonic()))
                self._typing.set()

    def _request(
        self, wait_s: float, done: tuple[WakeDone, ...] = (), status: str = ""
    ) -> TakeWakes:
        view = self._deliverer.view
        typed_at = self._deliverer.typed_at
        age = None if typed_at is None else max(0.0, time.monotonic() - typed_at)
        working = view.state in {HostState.WORKING, HostState.BLOCKED}
        facts = self._facts
        origin = origin_of(facts)
        return TakeWakes(
            runtime=facts["runtime"],
            instance_id=facts["instance"],
            status=status or ("active" if working else "idle"),  # type: ignore[arg-type]
            resumable=origin is not None,
            management_mode="managed",
            line_empty=view.is_empty,
            seconds_since_typing=age,
            working=working,
            wait_seconds=wait_s,
            done=done,
            runtime_ref=origin.runtime_ref if origin else None,
            machine=origin.machine if origin else None,
            directory=origin.directory if origin else None,
        )

    async def _say_goodbye(self) -> None:
        if self._server is not None:
            with suppress(ClientError, TimeoutError):
                async with asyncio.timeout(LAST_REPORT_S):
                    done = tuple(self._done.values())[:MAX_DONE]
                    await self._server.take(self._request(0, done, "offline"))
            await self._server.close()

    # The terminal

    def _give_terminal_back(self) -> None:
        """The relay was killed, so no other process does it."""
        saved = self._facts.get("terminal")
        if saved is None or self._terminal < 0:
            return
        modes = self._host.screen.modes if self._host is not None else ()
        leave_modes(self._terminal, modes)
        restore(self._terminal, saved_from_json(saved))


def main(words: list[str]) -> int:
    """Run as a process; `words` are the descriptors of the socket and of the terminal."""
    # A process in the background is stopped when it changes its terminal, unless it ignores this.
    for number in (signal.SIGTTOU, signal.SIGINT, signal.SIGTSTP, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(NICENESS)
    descriptor, terminal = map(int, words)
    relay = socket.socket(fileno=descriptor)
    relay.settimeout(0.0)
    asyncio.new_event_loop().run_until_complete(Link(relay, terminal).run())
    return 0


if __name__ == "__main__":
    # A request that waits on the server has a thread of its own, which need not be waited for.
    os._exit(main(sys.argv[1:]))
