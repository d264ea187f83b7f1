"""Answers one request of a hook, whatever it is about."""

import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accord.client.errors import ClientError, ServerRefused
from accord.core.kernel.refusal import Refused
from accord.daemon import call_decision, reports
from accord.daemon.agent_link import AgentLink
from accord.daemon.host_calls import HookRequest, InvalidEventError, call_of
from accord.daemon.reports import run_key
from accord.hosts.connections import (
    CONNECTIONS_DIR,
    Connection,
    ConnectionRecordError,
    read_connection,
)
from accord.hosts.gate_hook import ALLOW, DENY, NONE, PREFIX
from accord.hosts.hook_events import PRE_TOOL
from accord.hosts.last_hook_call import CHECK_SESSION, note_hook_call
from accord.settings.client import home_of

log = logging.getLogger("accord.daemon")

MAX_RUNS = 1024
RUNTIME_DIRS = "/run/user"


class RequestHandler:
    """Holds the links of all connected agents; may be used from several threads."""

    def __init__(self, directory: Path, env: Mapping[str, str]) -> None:
        self.directory = directory.resolve()
        runtime = Path(RUNTIME_DIRS) / str(os.getuid()) / "accord"
        own = (self.directory, home_of(env).resolve(), runtime)
        self.protected = tuple(map(str, own))
        self._lock = threading.Lock()
        self._links: dict[str, AgentLink] = {}
        self._runs: dict[str, str] = {}

    def answer(self, request: HookRequest) -> dict[str, Any]:
        """The answer; whatever fails before a call is a refusal."""
        try:
            return self._answer(request)
        except (InvalidEventError, ConnectionRecordError) as error:
            return refusal(f"{error}.")
        except Refused as error:  # a command that cannot be analysed
            return refusal(f"{error.detail}.")
        except ServerRefused as error:
            log.warning("%s of %s was refused: %s", request.event, request.host, error.code)
            return refusal(f"{error.message} ({error.code}).")
        except ClientError as error:
            log.warning("%s of %s could not be reported", request.event, request.host)
            return refusal(f"{error}.")
        except Exception as error:
            log.exception("request failed: %s", request.event)
            return refusal(f"the daemon failed ({type(error).__name__}); its log says more.")

    def _answer(self, request: HookRequest) -> dict[str, Any]:
        link = self.link_of(request)
        if request.event != PRE_TOOL:
            link.wait_for_state(call_decision.STATE_TIMEOUT_S)
            reports.report_event(reports.Report(link, request, self.protected, self._runs))
            return {"decision": NONE}
        call = call_of(request, link.connection)
        if call.host_session != CHECK_SESSION:
            note_hook_call(Path(request.record))
        decided = call_decision.decide(link, call, self.protected)
        key = run_key(call.host_session, call.use_id)
        if decided.decision == ALLOW and key:
            self._remember_run(key, decided.proposal)
        return {"decision": decided.decision, "reason": decided.reason}

    def _remember_run(self, key: str, proposal: str) -> None:
        with self._lock:
            self._runs[key] = proposal
            while len(self._runs) > MAX_RUNS:
                del self._runs[next(iter(self._runs))]

    def link_of(self, request: HookRequest) -> AgentLink:
        """The link of the connection that the request names; raises ConnectionRecordError."""
        connection = self._connection_of(request)
        with self._lock:
            link = self._links.get(connection.id)
            if link is None or link.connection != connection:
                if link is not None:
                    link.end()
                link = self._links[connection.id] = AgentLink(connection, Path(request.record))
            return link

    def _connection_of(self, request: HookRequest) -> Connection:
        path = Path(request.record)
        if path.parent.resolve() != self.directory / CONNECTIONS_DIR:
            raise ConnectionRecordError(f"{path} is not a connection of this user")
        try:
            connection = read_connection(path)
        except FileNotFoundError:
            raise ConnectionRecordError(
                "this host is no longer connected; run `accord connect` again"
            ) from None
        if connection.host != request.host:
            raise ConnectionRecordError(
                f"the hook is one of {request.host[:40]}, but {connection.id} is for "
                f"{connection.host}; run `accord connect` again"
            )
        return connection

    def status(self) -> list[dict[str, Any]]:
        """The connected agents, without secrets."""
        with self._lock:
            links = list(self._links.values())
        return [
            {
                "id": link.connection.id,
                "host": link.connection.host,
                "agent": link.connection.agent,
                "session": link.connection.session,
                "server": link.connection.url,
                "is_live": link.state is not None,
                "problem": link.problem,
            }
            for link in links
        ]


def refusal(sentence: str) -> dict[str, Any]:
    """A refusal with its reason."""
    return {"decision": DENY, "reason": PREFIX + sentence}
