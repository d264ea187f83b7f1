"""Forwards JSON-RPC lines to `/mcp` of a server, and its answers back.

Both kinds of revisions pass through: those with sessions begin with `initialize`, the newer ones
name their revision in every request. A session that a restarted server does not know is opened
again with the client's own `initialize`, and the request is repeated.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from contextlib import suppress

from accord.cli.mcp.heartbeats import PATH as HEARTBEAT_PATH
from accord.cli.mcp.heartbeats import Heartbeats, is_agents
from accord.cli.mcp.http_exchange import (
    HTTP_ERROR,
    NOT_FOUND,
    UNAUTHORIZED,
    BridgeError,
    Exchange,
    NoServerError,
    NotSentError,
)
from accord.cli.mcp.session_stream import (
    ACKNOWLEDGED,
    LISTEN,
    MAX_RETRY_S,
    SUBSCRIBE,
    UNSUBSCRIBE,
    SessionStream,
    updated,
    uris_listened_to,
)

TYPE_CHECKING = False  # type checkers treat this name as true
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from accord.git.remote_server import RemoteServer

PATH = "/mcp"
MAX_LINE_BYTES = 4 << 20
# Requests in progress; further lines wait.
MAX_IN_PROGRESS = 32
# How long a request waits for a server that is being restarted.
RESTART_PATIENCE_S = 10.0
RETRY_INTERVAL_S = 0.25
RENEW_TIMEOUT_S = 10.0
# How long requests in progress may take after the end of the input.
FINISH_S = 5.0
HEARTBEAT_TIMEOUT_S = 5.0
SESSION_HEADER = "mcp-session-id"
REVISION_KEY = "io.modelcontextprotocol/protocolVersion"
# Which parameter of a method the header `Mcp-Name` repeats.
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
# A host that starts must not wait for a server that is not there.
FIRST_METHODS = frozenset({"initialize", "server/discover", "tools/list"})
SERVER_ERROR = -32000
PARSE_ERROR, INVALID_REQUEST = -32700, -32600

NO_PROFILE = (
    "accord mcp: there is no server to forward to. Log in with `accord login LINK`, or set "
    "ACCORD_URL and ACCORD_TOKEN"
)


class Bridge:
    """One client on standard input and output."""

    def __init__(
        self, env: Mapping[str, str], find: Callable[[], RemoteServer] | None = None
    ) -> None:
        self.env = env
        self._find = find  # the server of a connected agent, instead of that of the environment
        self.session = ""
        self.revision = ""
        self.opening: dict[str, Any] | None = None  # the client's `initialize`
        self.open: dict[Any, Exchange] = {}
        self._server: RemoteServer | None = None
        self._lock = threading.Lock()
        self._session_lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(MAX_IN_PROGRESS)
        self._out = 1
        self._stream = SessionStream(self)
        self._cancelled: set[Any] = set()  # ids of streams that the client no longer wants
        self._workers: set[threading.Thread] = set()
        self._heartbeats = Heartbeats(env, self.send_heartbeat)

    # Standard input and output

    def run(self, source: int, out: int) -> int:
        """Forward until the input ends."""
        self._out = out
        pending = b""
        while data := os.read(source, 65536):
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                self.take_line(line.strip())
            if len(pending) > MAX_LINE_BYTES:
                self.write_error(None, PARSE_ERROR, "A line is longer than 4 MiB")
                pending = b""
        self.take_line(pending.strip())  # the last line may lack its end
        self.close()
        return 0

    def close(self) -> None:
        """Let requests in progress finish for a while, then end them and the session."""
        deadline = time.monotonic() + FINISH_S
        self._stream.close()
        for exchange in [each for each in self.open.values() if each.is_event_stream]:
            exchange.close()
        for worker in list(self._workers):
            worker.join(max(0.0, deadline - time.monotonic()))
        for exchange in list(self.open.values()):
            exchange.close()
        self._heartbeats.close()
        if self.session and self._server is not None:
            exchange = Exchange(self._server.url)
            with suppress(OSError, ValueError):  # the server ends unused sessions by itself
                exchange.send("DELETE", PATH, self.headers({}), b"")
            exchange.close()

    def take_line(self, line: bytes) -> None:
        """Start to forward a message; what changes the connection is done before the next line."""
        if not line:
            return
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self.write_error(None, PARSE_ERROR, "This line is not JSON")
            return
        if not isinstance(message, dict):
            self.write_error(None, INVALID_REQUEST, "Send one JSON-RPC message per line")
            return
        self._heartbeats.note(message)
        method = message.get("method")
        if method == "notifications/cancelled":
            self.cancel(message)
        self._slots.acquire()
        if method == "initialize" or "id" not in message:
            self.forward(message)  # order matters: what follows relies on it
        else:
            worker = threading.Thread(target=self.forward, args=(message,), daemon=True)
            self._workers.add(worker)
            worker.start()

    def write(self, data: bytes) -> None:
        """Write one message as a line."""
        line = data.replace(b"\n", b" ") + b"\n"
        with self._lock:
            while line:
                line = line[os.write(self._out, line) :]

    def write_error(self, id: object, code: int, sentence: str) -> None:
        error = {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": sentence}}
        self.write(json.dumps(error).encode())

    # Forwarding

    def forward(self, message: dict[str, Any]) -> None:
        """Send a message and write what the server answers."""
        id = message.get("id") if "method" in message else None
        try:
            self.exchange(message)
        except (BridgeError, OSError, ValueError) as error:
            sentence = str(error)
            print(sentence, file=sys.stderr, flush=True)
            if id is not None:
                self.write_error(id, SERVER_ERROR, sentence)
        finally:
            self._workers.discard(threading.current_thread())
            self._slots.release()

    def exchange(self, message: dict[str, Any]) -> None:
        """Send a message and pass on the answer; a stream that breaks off is asked for again."""
        method, is_again, wait_s = message.get("method"), False, RETRY_INTERVAL_S
        patience_s = RESTART_PATIENCE_S
        if method == "initialize":
            self.session, self.opening = "", message
        elif method == SUBSCRIBE and self.session:
            self._stream.open()
        while True:
            try:
                answer = self.answer_to(message, patience_s)
                is_over, wait_s = self.pass_on(message, answer, is_again=is_again), RETRY_INTERVAL_S
            except NoServerError:
                if not is_again:
                    raise
                is_over, wait_s = False, min(MAX_RETRY_S, 2 * wait_s)
            if is_over or message.get("id") in self._cancelled or self._stream.ends.wait(wait_s):
                return
            is_again, patience_s = True, 0.0

    def answer_to(self, message: dict[str, Any], patience_s: float) -> Exchange:
        """Send a message, again if it did not arrive, the token ended, or the session was lost."""
        deadline = time.monotonic() + patience_s
        renewed = reopened = False
        while True:
            session = self.session
            answer = self.post(message, deadline)
            if answer.status == UNAUTHORIZED and not renewed:
                renewed = True
                self.forget_server()
            elif answer.status == NOT_FOUND and session and not reopened:
                reopened = True
                self.reopen(session, deadline)
            else:
                return answer
            answer.close()

    def post(self, message: dict[str, Any], deadline: float) -> Exchange:
        """Send a message; while there is no connection, try until the deadline."""
        body = json.dumps(message, ensure_ascii=False).encode("utf-8", "replace")
        while True:
            server = self.server()
            exchange = Exchange(server.url)
            try:
                exchange.send("POST", PATH, self.headers(message), body)
            except NotSentError as error:
                if time.monotonic() >= deadline or message.get("method") in FIRST_METHODS:
                    raise NoServerError(no_server(server.url, error)) from error
                time.sleep(RETRY_INTERVAL_S)
            except OSError as error:
                raise BridgeError(no_answer(server.url, error)) from error
            else:
                return exchange

    def pass_on(self, message: dict[str, Any], answer: Exchange, *, is_again: bool) -> bool:
        """Write the response, or each message of a stream; False if that broke off."""
        id, method = message.get("id"), message.get("method")
        self.open[id] = answer
        try:
            if answer.status >= HTTP_ERROR:
                self.pass_on_refusal(id, answer)
            elif answer.is_event_stream and method == LISTEN:
                return self.pass_on_changes(message, answer, is_again=is_again)
            elif answer.is_event_stream:
                for event in answer.events():
                    self.write(event)
            elif body := answer.body():
                if method == "initialize":
                    self.note_session(answer, body)
                elif method in {SUBSCRIBE, UNSUBSCRIBE}:
                    self._stream.note(message, body)
                self.write(body)
        except OSError as error:
            server = self._server.url if self._server else ""
            raise BridgeError(no_answer(server, error)) from error
        finally:
            self.open.pop(id, None)
            answer.close()
        return True

    def pass_on_changes(self, message: dict[str, Any], answer: Exchange, *, is_again: bool) -> bool:
        """Write the notices of a subscription without a session; whether the server ended it.

        Asked for again, it is acknowledged again, and the client is told of each address instead,
        because it is unknown what it missed meanwhile.
        """
        with suppress(OSError):  # the server has gone
            for event in answer.events():
                said = json.loads(event)
                if "id" in said:
                    self.write(event)
                    return True
                if not (is_again and said.get("method") == ACKNOWLEDGED):
                    self.write(event)
                    continue
                for uri in uris_listened_to(message):
                    self.write(updated(uri, message["id"]))
        return False

    def pass_on_refusal(self, id: object, answer: Exchange) -> None:
        """An error of the protocol as it is; a refusal of the server as an error of the call."""
        body = answer.body()
        try:
            content = json.loads(body)
        except ValueError:
            content = {}
        error = content.get("error", {}) if isinstance(content, dict) else {}
        if isinstance(content, dict) and content.get("jsonrpc") == "2.0" and id is not None:
            self.write(json.dumps({**content, "id": id}).encode())
            return
        raise BridgeError(error.get("message") or f"The server answered with {answer.status}")

    def note_session(self, answer: Exchange, body: bytes) -> None:
        """Remember the session that `initialize` opened."""
        self.session = answer.headers.get(SESSION_HEADER, "")
        result = json.loads(body).get("result")
        self.revision = str(result.get("protocolVersion", "")) if isinstance(result, dict) else ""

    def reopen(self, lost: str, deadline: float) -> None:
        """Open a session again, once for all requests that found it lost."""
        with self._session_lock:
            if self.session != lost or self.opening is None:
                return
            self.session = ""
            answer = self.post({**self.opening, "id": "accord-reopen"}, deadline)
            body = answer.body()
            answer.close()
            if answer.status < HTTP_ERROR:
                self.note_session(answer, body)
                ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
                self.post(ready, deadline).close()

    def cancel(self, message: dict[str, Any]) -> None:
        """Close a stream that the client no longer wants; without sessions nothing else ends it."""
        params = message.get("params")
        id = params.get("requestId") if isinstance(params, dict) else None
        exchange = self.open.get(id)
        if exchange is not None and not self.session and exchange.is_event_stream:
            self._cancelled.add(id)
            exchange.close()

    def send_heartbeat(self, report: dict[str, Any]) -> None:
        """Send one; what goes wrong is not worth a word, because the next one follows."""
        exchange: Exchange | None = None
        try:
            server = self.server()
            if is_agents(server.token):
                exchange = Exchange(server.url, HEARTBEAT_TIMEOUT_S)
                body = json.dumps(report).encode()
                exchange.send("POST", HEARTBEAT_PATH, self.headers({}), body)
                if exchange.status == UNAUTHORIZED:
                    self._server = None  # the next one takes a fresh token
        except (BridgeError, OSError, ValueError):
            return
        finally:
            if exchange is not None:
                exchange.close()

    # The server

    def forget_server(self) -> None:
        """Take a fresh token for the next request."""
        self._server = None

    def server(self) -> RemoteServer:
        """The server and a token for it."""
        known = self._server
        if known is not None:
            return known
        if self._find is not None:
            self._server = self._found(self._find)
            return self._server
        from accord.git.http.connection import close_kept
        from accord.git.remote_server import find_server
        from accord.settings.profiles import ProfileError

        try:
            found = find_server(self.env, time.monotonic() + RENEW_TIMEOUT_S)
        except ProfileError as error:
            raise BridgeError(f"accord mcp: {error}") from error
        finally:
            close_kept()
        if found is None:
            raise BridgeError(NO_PROFILE)
        self._server = found
        return found

    def _found(self, find: Callable[[], RemoteServer]) -> RemoteServer:
        from accord.client.errors import ClientError

        try:
            return find()
        except ClientError as error:
            raise BridgeError(f"accord mcp: {error}") from error

    def headers(self, message: dict[str, Any]) -> dict[str, str]:
        """The headers of a message: from its own fields without sessions, else from the session."""
        headers = {
            "Authorization": f"Bearer {self.server().token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        given = message.get("params")
        params: dict[str, Any] = given if isinstance(given, dict) else {}
        meta = params.get("_meta")
        revision = meta.get(REVISION_KEY) if isinstance(meta, dict) else None
        if isinstance(revision, str):
            headers["Mcp-Protocol-Version"] = revision
            headers["Mcp-Method"] = header_value(str(message.get("method")))
            name = params.get(NAMED_BY.get(str(message.get("method")), ""))
            if isinstance(name, str):
                headers["Mcp-Name"] = header_value(name)
        elif self.session:
            headers[SESSION_HEADER] = self.session
            if self.revision:
                headers["Mcp-Protocol-Version"] = self.revision
        return headers


def header_value(text: str) -> str:
    """The text as a header can carry it (MCP's base64 form where it cannot)."""
    plain = text.isascii() and text.isprintable() and text == text.strip()
    if plain and not text.startswith("=?base64?"):
        return text
    from base64 import b64encode

    return f"=?base64?{b64encode(text.encode()).decode()}?="


def no_server(url: str, error: OSError) -> str:
    """For a server that does not accept connections."""
    return (
        f"accord mcp: no server answers at {url} ({error}). Start it with `accord serve`, or log "
        "in to another one; then try again"
    )


def no_answer(url: str, error: OSError) -> str:
    """For a connection that broke after the request was sent."""
    return (
        f"accord mcp: the connection to {url} broke before the answer came ({error}). It may have "
        "taken effect: look first, or repeat it with the same id or idempotency key"
    )
