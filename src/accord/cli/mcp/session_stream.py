"""What a server sends unasked in a session, and the subscriptions that lead to it.

A restarted server knows neither the session nor its subscriptions. They are made again, and the
client is told of each address, because it is unknown what it missed meanwhile.
"""

from __future__ import annotations

import json
import threading
import time

from accord.cli.mcp.http_exchange import (
    HTTP_ERROR,
    NOT_FOUND,
    UNAUTHORIZED,
    BridgeError,
    Exchange,
)

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    from typing import Any

    from accord.cli.mcp.bridge import Bridge

SUBSCRIBE, UNSUBSCRIBE = "resources/subscribe", "resources/unsubscribe"
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SUBSCRIPTION_ID_KEY = "io.modelcontextprotocol/subscriptionId"
PATH = "/mcp"
# How soon a lost stream is opened again; each try that fails doubles it.
RETRY_S, MAX_RETRY_S = 0.25, 5.0
PATIENCE_S = 10.0
OPEN_PATIENCE_S = 5.0


def updated(uri: str, subscription: Any = None) -> bytes:
    """The notice that a resource may have changed."""
    about = {} if subscription is None else {"_meta": {SUBSCRIPTION_ID_KEY: subscription}}
    params = {"uri": uri, **about}
    notice = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": params}
    return json.dumps(notice).encode()


def uris_listened_to(message: dict[str, Any]) -> list[str]:
    """The addresses that a `subscriptions/listen` names."""
    params = message.get("params")
    wanted = params.get("notifications") if isinstance(params, dict) else None
    uris = wanted.get("resourceSubscriptions") if isinstance(wanted, dict) else None
    return [uri for uri in uris if isinstance(uri, str)] if isinstance(uris, list) else []


class SessionStream:
    """The stream of one client's session."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.sessions: dict[str, str] = {}  # by address, in which session it was subscribed to
        self.ends = threading.Event()
        self._is_open = threading.Event()
        self._lock = threading.Lock()
        self._exchange: Exchange | None = None
        self._runs = False

    def open(self) -> None:
        """Listen before a subscription is made, so that no notice of it goes astray."""
        self._start()
        self._is_open.wait(OPEN_PATIENCE_S)

    def note(self, message: dict[str, Any], answer: bytes) -> None:
        """Remember what the client is subscribed to."""
        params = message.get("params")
        uri = params.get("uri") if isinstance(params, dict) else None
        if not isinstance(uri, str):
            return
        if message.get("method") == UNSUBSCRIBE:
            self.sessions.pop(uri, None)
        elif "error" not in json.loads(answer):
            self.sessions[uri] = self.bridge.session
            self._start()

    def close(self) -> None:
        """End the stream."""
        self.ends.set()
        if (exchange := self._exchange) is not None:
            exchange.close()

    def _start(self) -> None:
        with self._lock:
            if self._runs or self.ends.is_set():
                return
            self._runs = True
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        wait_s, was_open = RETRY_S, False
        while True:
            is_new = self._receive(was_lost=was_open)
            was_open = was_open or is_new
            self._is_open.clear()
            with self._lock:
                if self.ends.is_set() or not self.sessions:
                    self._runs = False
                    return
            self.ends.wait(wait_s)
            wait_s = RETRY_S if is_new else min(MAX_RETRY_S, 2 * wait_s)

    def _receive(self, *, was_lost: bool) -> bool:
        """Pass on what the stream brings until it ends; whether there was one."""
        bridge, session = self.bridge, self.bridge.session
        exchange = None
        try:
            exchange = self._exchange = Exchange(bridge.server().url)
            headers = {**bridge.headers({}), "Accept": "text/event-stream"}
            exchange.send("GET", PATH, headers, b"")
            if exchange.status == NOT_FOUND:
                bridge.reopen(session, time.monotonic() + PATIENCE_S)
            elif exchange.status == UNAUTHORIZED:
                bridge.forget_server()
            elif exchange.status < HTTP_ERROR:
                self._is_open.set()
                self._restore(session, was_lost=was_lost)
                for event in exchange.events():
                    bridge.write(event)
                return True
        except (BridgeError, OSError, ValueError):
            return self._is_open.is_set()
        finally:
            if exchange is not None:
                exchange.close()
        return False

    def _restore(self, session: str, *, was_lost: bool) -> None:
        """Subscribe again where the server has forgotten it, and tell the client of everything."""
        for uri, made_in in list(self.sessions.items()):
            if made_in != session:
                request = {"id": "accord-subscribe", "method": SUBSCRIBE, "params": {"uri": uri}}
                deadline = time.monotonic() + PATIENCE_S
                answer = self.bridge.post({"jsonrpc": "2.0", **request}, deadline)
                refused = answer.status >= HTTP_ERROR or "error" in json.loads(answer.body())
                answer.close()
                if refused:  # it may not be read any more
                    self.sessions.pop(uri, None)
                    continue
                self.sessions[uri] = session
            elif not was_lost:
                continue
            self.bridge.write(updated(uri))
