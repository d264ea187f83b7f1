"""PA_PVP as text: whatever is pasted in, the one message that answers it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from accord.core import docket
from accord.core.docket import (
    attributes,
    check,
    convergence,
    emit,
    reading,
    repair,
    steps,
    tables,
)
from accord.core.docket import report as reports
from accord.core.docket import snapshot as snapshots
from accord.core.docket.convergence import Peer
from accord.core.docket.diags import Diag
from accord.core.docket.grammar import lines_of, parse
from accord.core.docket.model import Config, Outcome
from accord.core.docket.snapshot import FENCE, Snapshot
from accord.core.docket.text import ids
from accord.core.docket.words import Flag, Policy

REPORTS = {"REPORT": False, "REPORT LITE": True}


@dataclass(frozen=True, slots=True)
class Ui:
    """Which tables follow the block."""

    ops: bool = True
    risk: bool = True
    diag: bool = False


class Message(NamedTuple):
    """An answer: its text, and whether it may be acted on."""

    text: str
    good: bool
    diags: list[Diag] = []  # noqa: RUF012 - a named tuple's default is never written to


@dataclass(slots=True)
class Review:
    """What a check found, and the snapshot made right where that was asked for."""

    checked: check.Checked
    repaired: Outcome | None = None
    diags: list[Diag] = field(default_factory=list)


def routed(text: str) -> bool:
    """Whether the first line asks for something else than a decision."""
    lead = _lead(text)
    return lead in REPORTS or lead.split(" ")[0] in {"COMPARE", "CHECK"}


def _lead(text: str) -> str:
    return next((line.strip() for line in lines_of(text) if line.strip()), "")


def answer(text: str, config: Config | None = None, ui: Ui | None = None) -> Message:
    """The message to a text, by its first line: REPORT, COMPARE, CHECK, or a batch."""
    lead = _lead(text)
    if lead in REPORTS:
        return report(text, lite=REPORTS[lead])
    if lead == "COMPARE":
        policy = config.policy if config else Policy.UPSTREAM
        peers, hosts = compare([text], policy)
        return Message("\n".join([*convergence.shown(peers, hosts), ""]), good=hosts > 1)
    if lead == "CHECK" or lead.startswith("CHECK "):
        return _checked(text, lead, config)
    outcome = docket.run(parse(text, config), config)
    return Message(message(outcome, ui), outcome.valid, outcome.diags)


def message(outcome: Outcome, ui: Ui | None = None) -> str:
    """The block, then the tables; an invalid outcome has none."""
    ui = ui or Ui()
    lines = [emit.fenced(outcome)]
    if outcome.valid:
        snap = docket.snapshot_of(outcome)
        lines += ["\n".join([*tables.human(snap), ""])]
        lines += ["\n".join([*tables.ops(snap), ""])] if ui.ops else []
        lines += ["\n".join([*tables.risk(snap), ""])] if ui.risk else []
    if ui.diag:
        lines += ["\n".join([*diagnostics(outcome), ""])]
    return "\n".join(lines)


def diagnostics(outcome: Outcome) -> Iterator[str]:
    """[KERNEL_DIAG]: what the run noticed."""
    yield "[KERNEL_DIAG]"
    for each in outcome.diags:
        yield f"- {each.code} {each.item} line={each.line} {each.detail}".rstrip()
    if not outcome.diags:
        yield "- (none)"


def snapshots_in(text: str) -> list[Snapshot]:
    """Every snapshot of a text, good or not."""
    lines = lines_of(text)
    found = [(start, lines[start:end]) for start, end in snapshots.find(lines)]
    return [snapshots.parse(part, start + 1) for start, part in found]


def snapshot_in(text: str) -> Snapshot | None:
    """The one snapshot of a text; None where there is none, several, or an invalid one."""
    found = snapshots_in(text)
    return found[0] if len(found) == 1 and found[0].usable else None


def report(text: str, *, lite: bool) -> Message:
    """A snapshot in plain lines."""
    snap = snapshot_in(text)
    if snap is None:
        return Message(f"{reports.ERROR}\n", good=False)
    return Message("\n".join([*reports.report(snap, lite=lite), ""]), good=True)


def compare(texts: list[str], policy: Policy = Policy.UPSTREAM) -> tuple[list[Peer], int]:
    """How far the snapshots of these texts agree, and how many there are."""
    snaps = [each for text in texts for each in snapshots_in(text) if each.usable]
    return (convergence.compare(snaps, policy) if len(snaps) > 1 else []), len(snaps)


def checked(
    text: str, expected: tuple[str, ...] = (), config: Config | None = None, *, mend: bool = False
) -> Review:
    """What is wrong with a snapshot that somebody wrote."""
    lines = lines_of(text)
    found = snapshots_in(text)
    fences = sum(line.strip().startswith(FENCE) for line in lines)
    snap = found[0] if found else None
    made = Review(check.check(snap, expected, max(1, (fences + 1) // 2, len(found))))
    if mend and snap:
        made.repaired = _mended(snap, expected, config)
    return made


def _mended(snap: Snapshot, expected: tuple[str, ...], config: Config | None) -> Outcome:
    outcome = docket.run(repair.proposal(snap), config)
    wanted = set(expected) or {row.id for row in snap.queue}
    got = {each.id for each in outcome.items if not each.inp.split_from}
    if outcome.valid and wanted != got:
        outcome.invalid, outcome.coverage = "BATCH_COVERAGE", check.diff(wanted, got)
    return outcome


def _checked(text: str, lead: str, config: Config | None) -> Message:
    said = attributes.pairs(lead, 1, lambda _: None)
    mend = Flag.read(said.get("repair")) is Flag.YES
    found = checked(text, ids(said.get("expected", ""))[0], config, mend=mend)
    lines = [*found.checked.lines(), ""]
    if found.repaired:
        lines.append(emit.fenced(found.repaired))
    return Message("\n".join(lines), found.checked.result == "VALID")


def judgement_flaws(text: str) -> list[Diag]:
    """What is wrong with a judgement on its own, its steps included."""
    found: list[Diag] = []
    judged = reading.read(text, found.append, line=1)
    for place, asked in enumerate((judged and judged.steps) or (), 1):
        said = asked if isinstance(asked, str) else asked.text or ""
        found += [Diag(code, "-", f"step {place}: {said}", 1) for code in steps.accept(asked)[1]]
    return found
