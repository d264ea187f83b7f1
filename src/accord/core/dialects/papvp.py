"""PA_PVP as text: a pasted batch or command in, one response out."""

from dataclasses import dataclass
from typing import NamedTuple

from accord.core import docket
from accord.core.docket import convergence, steps
from accord.core.docket.convergence import PeerConvergence
from accord.core.docket.diagnostics import Diagnostic
from accord.core.docket.model import DecisionOutcome, KernelConfig
from accord.core.docket.parsing import judgement_parser, tag_attributes
from accord.core.docket.parsing import snapshot_parser as snapshots
from accord.core.docket.parsing.batch_parser import parse_batch, split_lines
from accord.core.docket.parsing.snapshot_parser import FENCE
from accord.core.docket.rendering import reports, snapshot_writer
from accord.core.docket.snapshot import DecisionSnapshot
from accord.core.docket.text_values import parse_ids
from accord.core.docket.validation import snapshot_check, snapshot_repair
from accord.core.docket.vocabulary import KernelPolicy, YesNo

REPORT_COMMANDS = {"REPORT": False, "REPORT LITE": True}


class TextResponse(NamedTuple):
    """The text of a response; act on it only if `is_valid`."""

    text: str
    is_valid: bool


@dataclass(slots=True)
class SnapshotReview:
    """The result of a check, and the repaired snapshot if repair was requested."""

    checked: snapshot_check.SnapshotCheckResult
    repaired: DecisionOutcome | None = None


def is_command(text: str) -> bool:
    """Whether the first line is a command instead of the start of a batch."""
    first_line = _first_line(text)
    return first_line in REPORT_COMMANDS or first_line.split(" ")[0] in {"COMPARE", "CHECK"}


def _first_line(text: str) -> str:
    return next((line.strip() for line in split_lines(text) if line.strip()), "")


def respond(text: str, config: KernelConfig | None = None) -> TextResponse:
    """The response to a text; its first line selects REPORT, COMPARE, CHECK or a batch."""
    first_line = _first_line(text)
    if first_line in REPORT_COMMANDS:
        return report(text, lite=REPORT_COMMANDS[first_line])
    if first_line == "COMPARE":
        policy = config.policy if config else KernelPolicy.UPSTREAM
        peers, hosts = compare([text], policy)
        return TextResponse(
            "\n".join([*convergence.render_convergence(peers, hosts), ""]), is_valid=hosts > 1
        )
    if first_line == "CHECK" or first_line.startswith("CHECK "):
        return _check_command(text, first_line, config)
    outcome = docket.run(parse_batch(text), config)
    return TextResponse(render_outcome(outcome), outcome.is_valid)


def render_outcome(outcome: DecisionOutcome) -> str:
    """The snapshot block followed by the tables; an invalid outcome has no tables."""
    parts = [snapshot_writer.render_fenced(outcome)]
    if outcome.is_valid:
        snap = docket.snapshot_of(outcome)
        parts += ["\n".join([*table(snap), ""]) for table in reports.TABLES]
    return "\n".join(parts)


def snapshots_in(text: str) -> list[DecisionSnapshot]:
    """All snapshots in a text, valid or not."""
    lines = split_lines(text)
    return [
        snapshots.parse_snapshot(lines[start:end], start + 1)
        for start, end in snapshots.find_snapshots(lines)
    ]


def snapshot_in(text: str) -> DecisionSnapshot | None:
    """The only snapshot in a text; None if there is none, several, or an invalid one."""
    found = snapshots_in(text)
    return found[0] if len(found) == 1 and found[0].is_usable else None


def report(text: str, *, lite: bool) -> TextResponse:
    """The REPORT command: a snapshot as plain lines."""
    snap = snapshot_in(text)
    if snap is None:
        return TextResponse(f"{reports.INVALID_SNAPSHOT_ERROR}\n", is_valid=False)
    return TextResponse("\n".join([*reports.render_report(snap, lite=lite), ""]), is_valid=True)


def compare(
    texts: list[str], policy: KernelPolicy = KernelPolicy.UPSTREAM
) -> tuple[list[PeerConvergence], int]:
    """How far the usable snapshots in these texts agree, and how many there are."""
    snaps = [snap for text in texts for snap in snapshots_in(text) if snap.is_usable]
    return (convergence.compare_snapshots(snaps, policy) if len(snaps) > 1 else []), len(snaps)


def check_snapshot(
    text: str,
    expected: tuple[str, ...] = (),
    config: KernelConfig | None = None,
    *,
    mend: bool = False,
) -> SnapshotReview:
    """Checks a snapshot that was written by hand or by a model, and repairs it on request."""
    lines = split_lines(text)
    found = snapshots_in(text)
    fences = sum(line.strip().startswith(FENCE) for line in lines)
    snap = found[0] if found else None
    review = SnapshotReview(
        snapshot_check.check_snapshot(snap, expected, max(1, (fences + 1) // 2, len(found)))
    )
    if mend and snap:
        review.repaired = _repaired(snap, expected, config)
    return review


def _repaired(
    snap: DecisionSnapshot, expected: tuple[str, ...], config: KernelConfig | None
) -> DecisionOutcome:
    outcome = docket.run(snapshot_repair.batch_from_snapshot(snap), config)
    wanted = set(expected) or {row.id for row in snap.queue}
    got = {item.id for item in outcome.items if not item.input.split_from}
    if outcome.is_valid and wanted != got:
        outcome.invalid_reason, outcome.coverage_diff = (
            "BATCH_COVERAGE",
            snapshot_check.coverage_diff(wanted, got),
        )
    return outcome


def _check_command(text: str, first_line: str, config: KernelConfig | None) -> TextResponse:
    attributes = tag_attributes.parse_pairs(first_line, 1, lambda _: None)
    repair = YesNo.parse(attributes.get("repair")) is YesNo.YES
    expected = parse_ids(attributes.get("expected", ""))[0]
    review = check_snapshot(text, expected, config, mend=repair)
    lines = [*review.checked.render(), ""]
    if review.repaired:
        lines.append(snapshot_writer.render_fenced(review.repaired))
    return TextResponse("\n".join(lines), review.checked.summary == "VALID")


def judgement_errors(text: str) -> list[Diagnostic]:
    """Diagnostics of a single judgement, including those of its proposed steps."""
    diags: list[Diagnostic] = []
    judgement = judgement_parser.parse_judgement(text, diags.append, line=1)
    for number, step in enumerate((judgement and judgement.steps) or (), 1):
        shown = step if isinstance(step, str) else step.text or ""
        diags += [
            Diagnostic(code, "-", f"step {number}: {shown}", 1)
            for code in steps.accept_proposed(step)[1]
        ]
    return diags
