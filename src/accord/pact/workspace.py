"""A pact's workspace: read, validate and write its ledger and the files derived from it."""

import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from accord.core.kernel.refusal import Reason, Refused
from accord.core.work.event import EventDraft
from accord.core.work.fold import Fold, fold, seats_in_payload
from accord.core.work.foreign_events import fold_with_foreign_events
from accord.core.work.format import log_lines, state_and_task_files
from accord.core.work.ledger_validation import ValidationFinding, check_future_times, validate_log
from accord.core.work.signatures import find_unproven, with_signed_context
from accord.core.work.state import Work
from accord.core.work.verbs import check_supported
from accord.core.work.vocabulary import EventKind
from accord.engine.ports import Conflict
from accord.git import bridge_client
from accord.pact import scaffold
from accord.pact.branch_switch import MAX_LEDGER_BYTES, BranchSwitch
from accord.pact.ledger import (
    DEFAULT_MAX_LOG_BYTES,
    FileLedger,
    LedgerMark,
    MaxBytes,
    Sleep,
    check_plain_file,
    read_plain_file,
    replace_file,
)
from accord.pact.location import PactLocation

# Tools that take no lock may write between our read and our append; then we retry.
MAX_APPEND_ATTEMPTS = 100
# Clocks differ; a line further in the future than this is reported.
MAX_CLOCK_SKEW_S = 86_400.0
Decide = Callable[[Work], list[EventDraft]]


class LedgerState(NamedTuple):
    """A ledger's folded state, its mark, its latest instant, and the invalid lines."""

    fold: Fold
    work: Work
    mark: LedgerMark
    at: str
    faults: Sequence[log_lines.LineFault]


class WorkspacePorts(msgspec.Struct, frozen=True):
    """Clock, ids and settings, replaceable in tests."""

    now: Callable[[], float] = time.time
    new_id: Callable[[], str] = lambda: secrets.token_hex(16)
    sleep: Sleep = time.sleep
    env: Mapping[str, str] = {}  # environment that locates a server; empty for none
    max_log_bytes: MaxBytes = lambda: DEFAULT_MAX_LOG_BYTES  # the limit pact_log


class Workspace:
    """All operations on one pact, on behalf of one seat."""

    def __init__(
        self,
        place: PactLocation,
        seat: str,
        world: WorkspacePorts | None = None,
        home: Path | None = None,
    ) -> None:
        self.location = place
        self.seat = seat
        self.ports = world or WorkspacePorts()
        self._home = home
        self.ledger = FileLedger(
            place.log_path, place.lock_path, self.ports.sleep, self.ports.max_log_bytes
        )
        self.branch_switch = BranchSwitch(place, self.ledger)
        self.work = Work()  # the state of the last decision
        self.signature_missing = False  # the roster has a key for the seat, this machine has not
        self.render_error = ""  # why STATE.yml could not be written

    def notify_server(self) -> Mapping[str, Any]:
        """Notify the local server of a change; its response within a second, empty if none."""
        location = self.location
        if not self.ports.env or location.repository is None or not location.log_path.exists():
            return {}
        repo = location.repository.try_text("config", "--get", "accord.repo")
        if not repo:
            return {}
        facts = {"repo": repo, "directory": str(location.directory.absolute())}
        return bridge_client.request("pact-changed", self.ports.env, facts) or {}

    # Reading

    def load(self) -> LedgerState:
        """The current state, also of an unsupported protocol version."""
        data, mark = self.ledger.read()
        reading = log_lines.parse_log(data)
        fold = Fold().add(reading.entries)
        return LedgerState(fold, fold.work(), mark, reading.latest, reading.faults)

    def load_checked(self) -> LedgerState:
        """The current state; refused if there is no pact or its version is not supported."""
        self.check_exists()
        state = self.load()
        check_supported(state.work)
        return state

    def check_exists(self) -> None:
        """Refuse if there is no pact."""
        check_plain_file(self.location.log_path)
        if not self.ledger.mark().size and not self.branch_switch.is_pending():
            raise Refused(
                Reason.NOT_FOUND, "There is no pact here yet; run `accord pact init` to start one"
            )

    def work_with_foreign_events(self) -> Work:
        """The state including event kinds that only other tools define."""
        return fold_with_foreign_events(log_lines.parse_log(self.ledger.read()[0]).entries)

    def check_state_file(self) -> tuple[Work, bytes, list[str]]:
        """The state, the STATE.yml it renders to, and the problems found; nothing is written."""
        state = self.load_checked()
        expected = state_and_task_files.render_state_yml(state.work).encode()
        problems = log_damage(state) or state_file_drift(self._read_state_file(), expected)
        return state.work, expected, problems

    def _read_state_file(self) -> bytes | None:
        try:
            return read_plain_file(self.location.state_path, MAX_LEDGER_BYTES)
        except (OSError, Refused):
            return None

    def rebuild_state_file(self) -> Work:
        """Rebuild STATE.yml from the log."""
        with self.ledger.locked():
            self.branch_switch.recover()
            self.check_exists()
            check_plain_file(self.location.state_path)
            state = self.load_for_decision()
            check_supported(state.work)
            self.write_state_file(state.work)
        return state.work

    def validate(self, *, strict: bool = False) -> list[ValidationFinding]:
        """All problems of log and files; with `strict`, also what signatures do not prove."""
        self.check_exists()
        data, _ = self.ledger.read()
        reading = log_lines.parse_log(data)
        findings = [
            ValidationFinding("line", fault.line, fault.sentence) for fault in reading.faults
        ]
        findings += validate_log(
            reading.entries, list(log_lines.parse_objects(data)), log_lines.parse_instant
        )
        findings += check_future_times(
            reading.entries, f"{self._date(MAX_CLOCK_SKEW_S):%Y-%m-%dT%H:%M:%S}"
        )
        work = fold(reading.entries)
        drift = state_file_drift(
            self._read_state_file(), state_and_task_files.render_state_yml(work).encode()
        )
        findings += [ValidationFinding("a", 0, sentence) for sentence in drift]
        files = scaffold.find_contradictions(self.location, work)
        findings += [ValidationFinding("task", 0, sentence, warning=True) for sentence in files]
        if strict:
            findings += self.unproven_findings(work, data)
        if self.branch_switch.is_pending():
            sentence = "A branch switch was interrupted; the next command restores its events"
            findings.append(ValidationFinding("carry", 0, sentence))
        return findings

    def unproven_findings(self, work: Work, data: bytes) -> list[ValidationFinding]:
        """Findings for what the signatures in the log do not prove."""
        from accord.pact.seat_keys import SeatKey, verify_signature

        findings = list(
            find_unproven(
                work,
                list(log_lines.parse_objects(data)),
                log_lines.split_lines(data),
                verify_signature,
            )
        )
        own_seat = work.seat(self.seat)
        local_key = SeatKey(self._home, self.seat).public_key() if self._home else ""
        if own_seat and local_key and own_seat.key and own_seat.key != local_key:
            sentence = f"The roster's key for {own_seat.id} differs from the one on this machine"
            findings.append(ValidationFinding("key", 0, sentence))
        return findings

    # Writing

    def write(self, decide: Decide) -> list[str]:
        """Record the events that `decide` returns, all or none; the ids of the new events."""
        with self.ledger.locked():
            self.branch_switch.recover()
            return self.record_locked(decide)

    def record_locked(self, decide: Decide) -> list[str]:
        """Like `write`, for a caller that holds the lock."""
        for _ in range(MAX_APPEND_ATTEMPTS):
            state = self.load_for_decision()
            drafts = decide_on_log(state, decide)
            if not drafts:
                return []
            ids, lines = self.encode_drafts(drafts, state.at)
            try:
                self.ledger.append(state.mark, lines)
            except Conflict:
                continue
            self.work = state.fold.add(log_lines.parse_log(lines).entries).work()
            self._try_render()
            return ids
        raise Refused(
            Reason.UNAVAILABLE, "Other processes keep writing to the log; try again later"
        )

    def load_for_decision(self) -> LedgerState:
        """The state to decide on; refused if an unreadable line may hold the `init`."""
        state = self.load()
        self.work = state.work
        if not state.work.started:
            check_log_readable(state)
        return state

    def encode_drafts(self, drafts: Sequence[EventDraft], last: str) -> tuple[list[str], bytes]:
        """The drafts' new ids and their lines for the log."""
        now = self._date()
        ids = [self.ports.new_id() for _ in drafts]
        ts = log_lines.stamp(f"{now:%Y-%m-%dT%H:%M:%S}", last)
        if not (sign := self._signer(drafts)):
            return ids, log_lines.encode_events(drafts, ids, ts, self.seat)
        before = log_lines.last_line(self.ledger.read()[0])
        return ids, log_lines.encode_events(drafts, ids, ts, self.seat, sign, before)

    def _date(self, later: float = 0) -> datetime:
        return datetime.fromtimestamp(self.ports.now() + later, UTC)

    def create_key(self) -> str:
        """The public key of this seat; a new pair is created if there is none."""
        from accord.pact.seat_keys import SeatKey

        if not self._home:
            raise Refused(
                Reason.UNAVAILABLE, "There is no data directory to keep keys in; set ACCORD_HOME"
            )
        return SeatKey(self._home, self.seat).create()

    def _signer(self, drafts: Sequence[EventDraft]) -> log_lines.SignEvent | None:
        """A function that signs events; None unless the roster's key for this seat is here."""
        rosters = [
            draft.payload.get("seats", ()) for draft in drafts if draft.kind is EventKind.INIT
        ]
        seats = [
            *self.work.seats,
            *seats_in_payload([seat for roster in rosters for seat in roster]),
        ]
        key = next((seat.key for seat in seats if seat.id == self.seat), "")
        if not key or not self._home:
            return None
        from accord.pact.seat_keys import SeatKey

        seat_key = SeatKey(self._home, self.seat)
        self.signature_missing = seat_key.public_key() != key
        if self.signature_missing:
            return None
        return lambda event, before: seat_key.sign(with_signed_context(event, before, self.work))

    def _try_render(self) -> None:
        # The event is already on disk, so a failure to render is reported, not refused.
        try:
            self.write_state_file(self.work)
        except OSError as error:
            self.render_error = (
                f"{self.location.relative_path(self.location.state_path)}: {error.strerror}"
            )

    def write_state_file(self, work: Work) -> None:
        text = state_and_task_files.render_state_yml(work).encode()
        replace_file(self.location.state_path, text)


def state_file_drift(current: bytes | None, expected: bytes) -> list[str]:
    """The problem with STATE.yml, if any."""
    if current == expected:
        return []
    problem = (
        "is missing or not a regular file" if current is None else "does not match the log (drift)"
    )
    return [f"STATE.yml {problem}; `accord pact log --replay` rebuilds it"]


def log_damage(state: LedgerState) -> list[str]:
    """The first unreadable line of the log, if any."""
    return [
        f"log.jsonl, line {fault.line}: {fault.sentence}. Nothing is written until this is "
        "repaired; `accord pact validate` lists all problems"
        for fault in state.faults[:1]
    ]


def check_log_readable(state: LedgerState) -> None:
    """Refuse to write after an unreadable line (OPEN-106)."""
    for detail in log_damage(state):
        raise Refused(Reason.DAMAGED, detail)


def decide_on_log(state: LedgerState, decide: Decide) -> list[EventDraft]:
    """The events that a verb records; refused if the log has unreadable lines."""
    try:
        drafts = decide(state.work)
    except Refused as refusal:
        if refusal.reason is Reason.NOT_FOUND:
            check_log_readable(state)  # the missing item may be in an unreadable line
        raise
    check_log_readable(state)
    return drafts


def open_workspace(
    here: Path,
    wanted: str,
    seat: str,
    home: Path | None = None,
    max_log_bytes: MaxBytes = lambda: DEFAULT_MAX_LOG_BYTES,
) -> Workspace:
    """The workspace for a caller in directory `here`; seat keys are under `home`."""
    from accord.pact.location import find_location

    return Workspace(
        find_location(here, wanted),
        seat,
        WorkspacePorts(env=os.environ, max_log_bytes=max_log_bytes),
        home,
    )
