"""An agent's link to its session: sends as the agent, and knows what the session is like now.

A thread follows the session's events. Each that matters makes it read the session again, so a hook
is answered from memory. Following also is what shows the agent as present.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec

from accord.api.responses import OpenProposal, SessionDetail
from accord.client.connection.http_sender import HttpSender
from accord.client.connection.router import new_id, now_ms
from accord.client.envelope import MessageRefs, build_message
from accord.client.errors import ClientError, ServerRefused, SignedOut
from accord.client.http_client import FIRST_ERROR_STATUS, HttpClient
from accord.client.identity import Identity, parse_address, read_claims
from accord.core.kernel.messages import Body
from accord.core.kernel.timestamps import to_iso
from accord.core.policy.policy_toml import Policy
from accord.core.room.membership.announcements import ParticipantAnnounce
from accord.core.room.membership.joining import SUPPORTED_VERSIONS, SessionJoin
from accord.daemon.signed_policy import read_signed_policy
from accord.hosts.connection_token import ConnectionToken
from accord.hosts.connections import Connection
from accord.hosts.prove import proof_from_process

Key = TypeVar("Key", str, bytes)
log = logging.getLogger("accord.daemon")

REQUEST_TIMEOUT_S = 6.0
# The server sends a comment every 15 seconds.
SILENCE_TIMEOUT_S = 40.0
FIRST_RETRY_S, MAX_RETRY_S = 0.2, 5.0
# A host that runs no hook for so long is taken to be gone.
IDLE_AFTER_S = 900.0
# A policy is not part of the session, so it is read again from time to time.
POLICY_AGE_S = 20.0
MAX_LINE_BYTES = 16 << 20
SEND_ATTEMPTS = 2
# Messages that change nothing that a hook is answered from, the frequent ones above all.
IGNORED_EVENTS = frozenset(
    {
        *("response.start", "response.chunk", "response.end", "thinking.start", "thinking.chunk"),
        *("thinking.end", "tool.output", "heartbeat.ping", "heartbeat.pong", "presence.update"),
        *("context.add", "context.update", "context.remove", "prompt.draft"),
    }
)
INTERRUPT_EVENT = "interrupt.raise"
REJECT_EVENTS = frozenset({"tool.reject", "gate.reject"})
MAX_REMEMBERED = 256
NOT_A_MEMBER_CODES = frozenset({"PARTICIPANT_NOT_FOUND", "SESSION_NOT_FOUND", "UNAUTHORIZED"})


class RaisedInterrupt(msgspec.Struct, frozen=True):
    """The part of an interrupt's envelope that matters here."""

    class Payload(msgspec.Struct, frozen=True):
        """Whom it is for, and how urgent it is."""

        urgency: str
        message: str = ""
        target: str | None = None

    id: str
    payload: Payload


class WireMessage(msgspec.Struct, frozen=True):
    """The part of any envelope by which a prompt and its answer are found."""

    class Payload(msgspec.Struct, frozen=True):
        """Whom a prompt is for, or which prompt is answered."""

        target_agent: str | None = None
        prompt_ref: str | None = None

    id: str
    type: str
    sender: str
    payload: Payload
    fork: str | None = None


class NewestMessages(msgspec.Struct, frozen=True):
    """The part of a page of turns that matters here."""

    messages: tuple[WireMessage, ...]


class Rejection(msgspec.Struct, frozen=True):
    """The part of a rejection's envelope that matters here."""

    class Payload(msgspec.Struct, frozen=True):
        """What was rejected, by whom and why."""

        reason: str = ""
        rejector: str = ""
        tool_proposal: str = ""
        gate: str = ""

    sender: str
    payload: Payload


class AgentLink:
    """One agent in one session; its methods may be called from several threads."""

    def __init__(self, connection: Connection, record: Path) -> None:
        self.connection = connection
        self.token = ConnectionToken(connection, lambda _: proof_from_process(record))
        self.lock = threading.RLock()  # held while a call is looked up and proposed
        address = parse_address(connection.url)
        self._http = HttpClient(address, self.token, REQUEST_TIMEOUT_S)
        self._sender = HttpSender(address, self._identity(), timeout_s=REQUEST_TIMEOUT_S)
        self._changed = threading.Condition()
        self._state: SessionDetail | None = None
        self._policy: Policy | None = None
        self._policy_read_at = 0.0
        self._is_live = False
        self._problem = "the session has not been read yet"
        self._failures = 0
        self._is_refused = False
        self._follower: threading.Thread | None = None
        self._asked_at = time.monotonic()
        self._retry_now = threading.Event()
        self._interrupts: dict[str, RaisedInterrupt] = {}
        self._prompts: dict[str, str] = {}
        self._causes: dict[str, str] = {}
        self._rejections: dict[str, str] = {}  # by proposal
        self._proposed: dict[bytes, str] = {}  # the last proposal of each call
        self.model = ""

    def _identity(self) -> Identity:
        agent = self.connection.agent
        return Identity(agent, "agent", agent, (), source=self.token)

    # State

    @property
    def state(self) -> SessionDetail | None:
        """The session as it is now; None while the server is away."""
        with self._changed:
            return self._state if self._is_live else None

    @property
    def policy(self) -> Policy | None:
        """The newest signed policy that was read from the server; None before the first."""
        with self._changed:
            return self._policy

    @property
    def problem(self) -> str:
        """Why there is no state."""
        with self._changed:
            return self._problem

    @property
    def is_refused(self) -> bool:
        """Whether the server answers, and does not let the agent in."""
        with self._changed:
            return self._is_refused

    def wait_for_state(self, timeout_s: float) -> SessionDetail | None:
        """The session as it is now; waits for the server if necessary."""
        with self._changed:
            failures = self._failures
        self.follow()
        with self._changed:
            self._changed.wait_for(lambda: self._is_live or self._failures > failures, timeout_s)
            return self._state if self._is_live else None

    def wait_for_change(self, timeout_s: float) -> None:
        """Return with the next change of the session, or after that time."""
        with self._changed:
            self._changed.wait(timeout_s)

    def own_proposals(self) -> list[OpenProposal]:
        """The agent's unfinished proposals."""
        state = self.state
        return (
            [tool for tool in state.tools if tool.agent == self.connection.agent] if state else []
        )

    def prompt_of(self, host_session: str) -> str | None:
        """The prompt that this session of the host answers now, if this daemon saw it."""
        return self._prompts.get(host_session)

    def set_prompt(self, host_session: str, prompt: str) -> None:
        """Remember the prompt that is answered from now on."""
        remember(self._prompts, host_session, prompt)

    def set_cause(self, prompt: str, cause: str) -> None:
        """Remember that a turn of the host answers another prompt than the one it was given."""
        remember(self._causes, prompt, cause)

    def cause_of(self, prompt: str) -> str:
        """The prompt that a turn of the host answers."""
        return self._causes.get(prompt, prompt)

    def remember_proposal(self, call: bytes, proposal: str) -> None:
        """Remember under which id a call was proposed last."""
        remember(self._proposed, sha256(call).digest(), proposal)

    def take_rejection(self, call: bytes) -> str:
        """Why this call was rejected, told once; empty if it was not."""
        return self._rejections.pop(self._proposed.get(sha256(call).digest(), ""), "")

    def take_interrupts(self) -> list[RaisedInterrupt]:
        """The interrupts that were not acknowledged yet."""
        with self._changed:
            taken, self._interrupts = list(self._interrupts.values()), {}
            return taken

    # Sending

    def send(
        self, body: Body, ref: str | None = None, *, id: str = "", is_forked: bool = True
    ) -> str:
        """Send a message as the agent; returns its id. Raises ServerRefused or Unreachable."""
        fork = self.connection.fork or None if is_forked and body.forkable else None
        message = build_message(
            id or new_id(),
            to_iso(now_ms()),
            self.connection.session,
            self.connection.agent,
            body,
            MessageRefs(ref, fork=fork),
        )
        for attempt in range(1, SEND_ATTEMPTS + 1):
            try:
                return self._sender.send(message).id  # the same id has one effect
            except ServerRefused:
                raise
            except ClientError:
                if attempt == SEND_ATTEMPTS:
                    raise
        raise AssertionError("unreachable")  # the last attempt returns or raises

    def refresh(self) -> SessionDetail:
        """Read the session again; raises ClientError."""
        state = self._http.decode(self._get("sessions", self.connection.session), SessionDetail)
        with self._changed:
            self._state = state
            self._changed.notify_all()
        return state

    def newest_messages(self) -> tuple[WireMessage, ...]:
        """The messages of the newest turns that the agent may read; raises ClientError."""
        path = ("sessions", self.connection.session, "turns")
        return self._http.decode(self._get(*path), NewestMessages).messages

    def _get(self, *path: str) -> bytes:
        response = self._http.send("GET", path)
        if response.status >= FIRST_ERROR_STATUS:
            raise self._http.error_of(response)
        return response.body

    # Following

    def follow(self) -> None:
        """Follow the session from now on, until no hook has asked for a while."""
        self._retry_now.set()
        with self._changed:
            self._asked_at = time.monotonic()
            if self._follower is not None:
                return
            self._follower = threading.Thread(target=self._follow, name="follower", daemon=True)
            self._follower.start()

    @property
    def is_idle(self) -> bool:
        """Whether no hook has asked for a while."""
        return time.monotonic() - self._asked_at > IDLE_AFTER_S

    def end(self) -> None:
        """Stop following: the host has ended."""
        self._asked_at = -IDLE_AFTER_S - time.monotonic()

    def _follow(self) -> None:
        retry_s = FIRST_RETRY_S
        while not self._is_over():
            started = time.monotonic()
            try:
                self._read_events()
            except (ClientError, OSError, ValueError) as error:
                self._set_away(error)
            except Exception as error:
                log.exception("following %s failed", self.connection.id)
                self._set_away(error)
            if time.monotonic() - started > MAX_RETRY_S:
                retry_s = FIRST_RETRY_S
            self._retry_now.wait(retry_s)
            self._retry_now.clear()
            retry_s = min(retry_s * 2, MAX_RETRY_S)

    def _is_over(self) -> bool:
        """Whether to stop following; a hook that asks from now on starts another follower."""
        with self._changed:
            if self.is_idle:
                self._is_live, self._problem = False, "the host was idle"
                self._follower = None
            return self._follower is None

    def _set_away(self, error: Exception) -> None:
        with self._changed:
            self._is_live = False
            self._problem = error.message if isinstance(error, ServerRefused) else str(error)
            self._is_refused = isinstance(error, ServerRefused | SignedOut)
            self._failures += 1
            self._changed.notify_all()

    def _read_events(self) -> None:
        """Follow one stream to its end; the session is read once the stream is open."""
        path = ("sessions", self.connection.session, "events")
        try:
            stream = self._http.open_stream(path, {}, SILENCE_TIMEOUT_S)
            with stream as response:
                self._become_live()
                self._handle_lines(response.readline)
        except ServerRefused as refusal:
            if refusal.code not in NOT_A_MEMBER_CODES:
                raise
            self.join()
            return
        self._set_away(ConnectionError("the server ended the stream"))

    def _become_live(self) -> None:
        self._read_policy()
        self.refresh()
        with self._changed:
            self._is_live, self._is_refused, self._problem = True, False, ""
            self._changed.notify_all()

    def _read_policy(self) -> None:
        policy = read_signed_policy(self._http, self.connection)
        with self._changed:
            self._policy, self._policy_read_at = policy, time.monotonic()

    def _handle_lines(self, read_line: Callable[[int], bytes]) -> None:
        kind = b""
        while not self.is_idle and (line := read_line(MAX_LINE_BYTES)):
            if time.monotonic() - self._policy_read_at > POLICY_AGE_S:
                self._read_policy()
            name, _, value = line.rstrip(b"\r\n").partition(b": ")
            if name == b"event":
                kind = value
            elif name == b"data":
                self._on_event(kind.decode(), value)

    def _on_event(self, kind: str, data: bytes) -> None:
        if kind in IGNORED_EVENTS:
            return
        if kind == INTERRUPT_EVENT:
            with suppress(msgspec.MsgspecError):
                self._remember(msgspec.json.decode(data, type=RaisedInterrupt))
        if kind in REJECT_EVENTS:
            with suppress(msgspec.MsgspecError):
                self._on_rejection(msgspec.json.decode(data, type=Rejection))
        self.refresh()

    def _remember(self, interrupt: RaisedInterrupt) -> None:
        if interrupt.payload.target in (None, self.connection.agent):
            with self._changed:
                self._interrupts[interrupt.id] = interrupt

    def _on_rejection(self, rejection: Rejection) -> None:
        said, state = rejection.payload, self.state
        gates = state.gates if state else ()
        by_gate = (each.action.id for each in gates if each.action and each.id == said.gate)
        proposal = said.tool_proposal or next(by_gate, "")
        if proposal:
            person = said.rejector or rejection.sender
            remember(self._rejections, proposal, f"{person} rejected it: {said.reason}")

    # Membership

    def join(self) -> None:
        """Join the session, or say again who this is; raises ClientError."""
        announcement = self.announcement()
        self.send(SessionJoin(participant=announcement, supported_versions=SUPPORTED_VERSIONS))

    def announcement(self) -> ParticipantAnnounce:
        """Who the agent is, and which model of which host."""
        claims = read_claims(self.token())
        metadata = {"host": self.connection.host}
        if self.model:
            metadata["model"] = self.model
        return ParticipantAnnounce(
            id=self.connection.agent,
            name=self.connection.agent,
            kind="agent",
            roles=tuple(sorted(claims.roles)) if claims else (),
            transport="http",
            metadata=metadata,
        )

    def use_model(self, model: str) -> None:
        """Tell the session which model answers, whenever that changes."""
        if not model or model == self.model:
            return
        self.model = model
        with suppress(ClientError):
            self.send(self.announcement())


def remember(known: dict[Key, str], key: Key, value: str) -> None:
    """Add an entry, and forget the oldest ones."""
    known[key] = value
    while len(known) > MAX_REMEMBERED:
        del known[next(iter(known))]
