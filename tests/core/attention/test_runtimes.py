"""The registry of runtimes: what a heartbeat changes, and what it may not claim."""

import pytest
from msgspec.structs import replace

from accord.core.attention.runtimes import (
    MAX_RUNTIMES,
    OFFLINE_AFTER_MS,
    Beats,
    HeartbeatReport,
    HumanInput,
    ManagementMode,
    Runtime,
    RuntimeOrigin,
    RuntimeStatus,
    check_directory,
    check_runtime_ref,
    newest_live,
    observe,
    observe_all,
    registered,
    with_runtime,
)
from accord.core.kernel.refusal import Reason, Refused
from tests.spec import proves

T0 = 1_750_000_000_000
REF = "0199a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"
ORIGIN = RuntimeOrigin(REF, "build-1", "/srv/repo")
REPORT = HeartbeatReport(
    session_id="S1", runtime="codex_cli", status=RuntimeStatus.IDLE, resumable=True, origin=ORIGIN
)


def runtime(**changes: object) -> Runtime:
    known = registered(None, REPORT, T0)
    assert known is not None
    return replace(known, **changes)


@proves("MSG-2.4-1")
def test_a_heartbeat_registers_every_field_of_the_runtime() -> None:
    assert observe(runtime(), None, T0).__class__.__struct_fields__ == (
        "session_id",
        "runtime",
        "status",
        "management_mode",
        "resumable",
        "last_heartbeat_at",
        "origin",
        "human_input",
    )
    seen = observe(runtime(), Beats(T0 + 5), T0 + 5)
    assert (seen.session_id, seen.runtime, seen.resumable) == ("S1", "codex_cli", True)
    assert (seen.status, seen.last_heartbeat_at) == (RuntimeStatus.IDLE, T0 + 5)
    assert (seen.management_mode, seen.origin) == (ManagementMode.UNMANAGED, ORIGIN)


def test_a_heartbeat_that_says_nothing_new_is_not_stored() -> None:
    assert registered(runtime(), REPORT, T0 + 30_000) is None


def test_a_changed_status_is_stored_with_its_time() -> None:
    fresh = registered(runtime(), replace(REPORT, status=RuntimeStatus.ACTIVE), T0 + 7)
    assert fresh is not None
    assert (fresh.status, fresh.changed_at, fresh.origin) == (RuntimeStatus.ACTIVE, T0 + 7, ORIGIN)


def test_a_beat_without_an_origin_keeps_the_one_that_was_seen() -> None:
    assert registered(runtime(), replace(REPORT, origin=None), T0 + 7) is None


def test_another_program_in_the_same_runtime_loses_the_origin_of_the_first() -> None:
    fresh = registered(runtime(), replace(REPORT, runtime="claude_code", origin=None), T0 + 7)
    assert fresh is not None
    assert fresh.origin is None


@pytest.mark.parametrize(
    "ref",
    [
        "latest",
        "1",
        "0",
        "-1",
        "--last",
        f"-{REF}",
        f"{REF}\n",
        f" {REF}",
        REF.upper(),
        REF[:-1],
        f"{REF} --dangerously-bypass-approvals-and-sandbox",
        "",
        "٠199a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b",
    ],
)
def test_only_the_exact_form_of_the_vendor_is_a_runtime_ref(ref: str) -> None:
    with pytest.raises(Refused) as refused:
        registered(None, replace(REPORT, origin=replace(ORIGIN, runtime_ref=ref)), T0)
    assert refused.value.reason is Reason.MALFORMED
    assert "UUID" in refused.value.detail


def test_a_runtime_without_a_known_form_has_no_runtime_ref() -> None:
    with pytest.raises(Refused, match="claude_code, codex_cli, gemini_cli"):
        check_runtime_ref("cursor", REF)


@pytest.mark.parametrize("name", ["", "Codex CLI", "-p", "codex-cli", "x" * 65, "a\n"])
def test_a_runtime_has_a_plain_name(name: str) -> None:
    with pytest.raises(Refused, match="lower snake case"):
        registered(None, replace(REPORT, runtime=name, origin=None), T0)


@pytest.mark.parametrize("directory", ["repo", "../repo", "/srv/../etc", "/srv/\0", "~/repo", ""])
def test_a_directory_must_mean_the_same_everywhere(directory: str) -> None:
    with pytest.raises(Refused) as refused:
        check_directory(directory)
    assert refused.value.reason is Reason.MALFORMED


def test_a_runtime_is_offline_after_three_missed_heartbeats() -> None:
    beats = Beats(T0 + 1000)
    assert observe(runtime(), beats, T0 + 1000 + OFFLINE_AFTER_MS).is_live
    silent = observe(runtime(), beats, T0 + 1001 + OFFLINE_AFTER_MS)
    assert silent.status is RuntimeStatus.OFFLINE
    assert not silent.is_live


def test_a_runtime_that_reports_offline_is_offline_at_once() -> None:
    gone = registered(runtime(), replace(REPORT, status=RuntimeStatus.OFFLINE), T0 + 1)
    assert gone is not None
    assert not observe(gone, None, T0 + 1).is_live


def test_only_a_supervisor_makes_a_runtime_managed_and_the_agents_beats_do_not_end_it() -> None:
    managed = registered(runtime(), replace(REPORT, supervises=True), T0 + 1)
    assert managed is not None
    assert observe(managed, None, T0 + 1).is_managed
    assert registered(managed, REPORT, T0 + 2) is None
    assert not observe(runtime(), Beats(T0 + 1), T0 + 1).is_managed


def test_a_runtime_is_unmanaged_once_its_supervisor_is_silent_although_the_agent_is_not() -> None:
    managed = runtime(supervised=True)
    late = T0 + OFFLINE_AFTER_MS + 1
    seen = observe(managed, Beats(late, T0), late)
    assert seen.is_live
    assert not seen.is_managed


def test_the_newest_live_runtime_of_a_mode_is_chosen() -> None:
    ids = {"S1": runtime(), "S2": runtime(session_id="S2"), "S3": runtime(session_id="S3")}
    ids["S3"] = replace(ids["S3"], supervised=True)
    beats = {"S1": Beats(T0 + 1), "S2": Beats(T0 + 2), "S3": Beats(T0, T0)}
    observed = observe_all(ids, beats, T0 + 2)
    assert [one.session_id for one in observed] == ["S2", "S1", "S3"]
    unmanaged, managed = newest_live(observed, managed=False), newest_live(observed, managed=True)
    assert unmanaged is not None
    assert managed is not None
    assert (unmanaged.session_id, managed.session_id) == ("S2", "S3")
    assert newest_live((), managed=True) is None


def test_the_registry_of_an_agent_is_bounded_and_forgets_the_oldest() -> None:
    runtimes: dict[str, Runtime] = {}
    for number in range(MAX_RUNTIMES + 3):
        fresh = runtime(session_id=f"S{number}", changed_at=T0 + number)
        runtimes = with_runtime(runtimes, fresh)
    assert len(runtimes) == MAX_RUNTIMES
    assert next(iter(runtimes)) == "S3"
    assert list(runtimes)[-1] == f"S{MAX_RUNTIMES + 2}"


@pytest.mark.parametrize(
    ("human", "busy"),
    [
        (HumanInput(None, line_empty=True), False),
        (HumanInput(T0 - 20_000, line_empty=True), False),
        (HumanInput(T0 - 19_999, line_empty=True), True),
        (HumanInput(T0 + 5, line_empty=True), True),  # a clock that is ahead
        (HumanInput(T0 - 3_600_000, line_empty=False), True),  # a draft left alone
        (HumanInput(None, line_empty=False), True),
        (HumanInput(), True),  # nothing is known
    ],
)
def test_a_person_is_busy_while_typing_and_while_the_line_holds_a_draft(
    human: HumanInput, busy: bool
) -> None:
    assert human.is_busy(T0, 20_000) is busy


@proves("UNI-24")
@pytest.mark.parametrize(
    ("typed_at", "drafted_at", "expected"),
    [(None, None, None), (None, 5, 5), (5, None, 5), (5, 7, 7), (7, 5, 7)],
)
def test_a_prompt_drafted_for_the_agent_counts_as_typing(
    typed_at: int | None, drafted_at: int | None, expected: int | None
) -> None:
    merged = HumanInput(typed_at, line_empty=True).with_draft(drafted_at)
    assert merged == HumanInput(expected, line_empty=True)
