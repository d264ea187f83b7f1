"""The registry of runtimes: in which programs an agent was seen, and what may be resumed where.

A runtime is one program of an agent, named by the `session_id` of its token (UNI-2). The vendor's
own id of the conversation is `runtime_ref`. Only changes are stored; plain heartbeats stay in
memory (`Beats`), because an agent sends one every 30 seconds.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from accord.core.kernel.messages import Instant
from accord.core.kernel.refusal import Reason, Refused

# OPEN-130: three missed intervals of 30 seconds.
OFFLINE_AFTER_MS = 90_000
# Runtimes remembered for each agent; beyond that the one not seen for longest is forgotten.
MAX_RUNTIMES = 16

SessionId = Annotated[str, Meta(min_length=1, max_length=128)]
Machine = Annotated[str, Meta(min_length=1, max_length=255)]
Directory = Annotated[str, Meta(min_length=1, max_length=4096)]

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
# The exact form of each vendor's id. A runtime that is not listed has none that we could resume.
RUNTIME_REF_FORMS: Mapping[str, re.Pattern[str]] = {
    "claude_code": _UUID,
    "codex_cli": _UUID,
    "gemini_cli": _UUID,
}


class RuntimeStatus(StrEnum):
    """What is known of a runtime, from its heartbeats (MSG 2.4)."""

    ACTIVE = "active"
    IDLE = "idle"
    OFFLINE = "offline"


class ManagementMode(StrEnum):
    """Whether a supervisor holds the terminal of the runtime."""

    MANAGED = "managed"
    UNMANAGED = "unmanaged"


class RuntimeOrigin(msgspec.Struct, frozen=True):
    """The vendor's id of a conversation, and where it was seen to start."""

    runtime_ref: str
    machine: Machine
    directory: Directory


class Runtime(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A runtime as stored; `changed_at` is the heartbeat that changed it last."""

    session_id: SessionId
    runtime: str
    status: RuntimeStatus
    changed_at: Instant
    resumable: bool = False
    supervised: bool = False
    origin: RuntimeOrigin | None = None


class HumanInput(msgspec.Struct, frozen=True):
    """What a supervisor knows about the person at the terminal, and whether the host works.

    Both of the first are needed: a person who typed half a sentence and went away is silent for
    long, and a prompt typed into that line would be sent together with the draft.
    """

    typed_at: Instant | None = None
    line_empty: bool = False
    working: bool = False  # in the middle of a turn, or asking a person something

    def with_draft(self, drafted_at: Instant | None) -> "HumanInput":
        """With a prompt that a person writes elsewhere for this agent (UNI-24)."""
        times = [at for at in (self.typed_at, drafted_at) if at is not None]
        return HumanInput(max(times, default=None), self.line_empty, self.working)

    def is_busy(self, now: Instant, quiet_ms: int) -> bool:
        """Whether typing into this terminal could meet a person's own input."""
        recent = self.typed_at is not None and now - self.typed_at < quiet_ms
        return recent or not self.line_empty


class Beats(msgspec.Struct, frozen=True):
    """When the agent itself and its supervisor were last heard, and what the latter reported."""

    seen_at: Instant
    supervised_at: Instant | None = None
    human_input: HumanInput | None = None


class ObservedRuntime(msgspec.Struct, frozen=True, kw_only=True):
    """A runtime as it is now: a row of the registry (MSG 2.4) with the time applied."""

    session_id: str
    runtime: str
    status: RuntimeStatus
    management_mode: ManagementMode
    resumable: bool
    last_heartbeat_at: Instant
    origin: RuntimeOrigin | None
    human_input: HumanInput

    @property
    def is_live(self) -> bool:
        return self.status is not RuntimeStatus.OFFLINE

    @property
    def is_managed(self) -> bool:
        return self.management_mode is ManagementMode.MANAGED


class HeartbeatReport(msgspec.Struct, frozen=True, kw_only=True):
    """One heartbeat, its sender verified: `supervises` follows from the capability alone."""

    session_id: SessionId
    runtime: str
    status: RuntimeStatus
    resumable: bool = False
    supervises: bool = False
    origin: RuntimeOrigin | None = None


# What a supervisor that has reported nothing yet knows: nothing, which counts as a line in use.
UNKNOWN_INPUT = HumanInput()


def check_runtime_name(runtime: str) -> None:
    """Refuse what is not a name such as `codex_cli`."""
    if not _NAME.fullmatch(runtime):
        raise Refused(
            Reason.MALFORMED, "runtime must be a name in lower snake case, such as codex_cli"
        )


def check_runtime_ref(runtime: str, ref: str) -> None:
    """Refuse everything but the vendor's exact form: no `latest`, no index, no option."""
    form = RUNTIME_REF_FORMS.get(runtime)
    if form is None:
        known = ", ".join(sorted(RUNTIME_REF_FORMS))
        raise Refused(
            Reason.MALFORMED,
            f"{runtime} has no runtime_ref that could be resumed; leave it out, or name one of the "
            f"runtimes {known}",
        )
    if not form.fullmatch(ref):
        raise Refused(
            Reason.MALFORMED,
            f"runtime_ref is not an id of {runtime}; send the UUID of the conversation itself, "
            "never a name such as latest or an index",
        )


def check_directory(directory: str) -> None:
    """Refuse a directory that depends on where it is read."""
    parts = directory.split("/")
    if not directory.startswith("/") or ".." in parts or "\0" in directory:
        raise Refused(
            Reason.MALFORMED, "directory must be an absolute path without `..`; send the real path"
        )


def registered(known: Runtime | None, report: HeartbeatReport, at: Instant) -> Runtime | None:
    """The runtime after this report; None if it says nothing new.

    The agent's own beats never end the supervision; its supervisor's beats alone begin it.
    """
    check_runtime_name(report.runtime)
    if report.origin is not None:
        check_runtime_ref(report.runtime, report.origin.runtime_ref)
        check_directory(report.origin.directory)
    before = known.supervised if known else False
    present = report.status is not RuntimeStatus.OFFLINE
    kept = known.origin if known and known.runtime == report.runtime else None
    fresh = Runtime(
        session_id=report.session_id,
        runtime=report.runtime,
        status=report.status,
        resumable=report.resumable,
        supervised=present and (report.supervises or before),
        origin=report.origin or kept,
        changed_at=known.changed_at if known else at,
    )
    return None if fresh == known else msgspec.structs.replace(fresh, changed_at=at)


def with_runtime(runtimes: Mapping[str, Runtime], fresh: Runtime) -> dict[str, Runtime]:
    """The registry with this runtime, bounded; the newest is last."""
    others = {id: one for id, one in runtimes.items() if id != fresh.session_id}
    newest_first = sorted(others.values(), key=lambda one: one.changed_at, reverse=True)
    kept = reversed(newest_first[: MAX_RUNTIMES - 1])
    return {one.session_id: one for one in (*kept, fresh)}


def observe(runtime: Runtime, beats: Beats | None, now: Instant) -> ObservedRuntime:
    """The runtime at `now`: offline after three missed heartbeats, managed while supervised."""
    beats = beats or Beats(runtime.changed_at)
    seen_at = max(runtime.changed_at, beats.seen_at, beats.supervised_at or 0)
    silent = now - seen_at > OFFLINE_AFTER_MS
    heard = beats.supervised_at or runtime.changed_at
    managed = runtime.supervised and now - heard <= OFFLINE_AFTER_MS
    return ObservedRuntime(
        session_id=runtime.session_id,
        runtime=runtime.runtime,
        status=RuntimeStatus.OFFLINE if silent else runtime.status,
        management_mode=ManagementMode.MANAGED if managed else ManagementMode.UNMANAGED,
        resumable=runtime.resumable,
        last_heartbeat_at=seen_at,
        origin=runtime.origin,
        human_input=beats.human_input or UNKNOWN_INPUT,
    )


def observe_all(
    runtimes: Mapping[str, Runtime], beats: Mapping[str, Beats], now: Instant
) -> tuple[ObservedRuntime, ...]:
    """Every runtime of an agent at `now`, the one heard last first."""
    observed = (observe(one, beats.get(id), now) for id, one in runtimes.items())
    return tuple(sorted(observed, key=lambda one: one.last_heartbeat_at, reverse=True))


def newest_live(runtimes: Iterable[ObservedRuntime], *, managed: bool) -> ObservedRuntime | None:
    """The newest live runtime of this mode (OPEN-126); they come newest first."""
    return next((one for one in runtimes if one.is_live and one.is_managed is managed), None)
