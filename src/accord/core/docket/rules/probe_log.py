"""The probe log of an item in this run: results, adopted probes, and the designed probe."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from accord.core.docket.diagnostics import Diagnostic
from accord.core.docket.judgement import ProbeReport
from accord.core.docket.model import Batch, DecisionItem, KernelConfig
from accord.core.docket.probes import (
    ENDED_PREFIX,
    ProbeLogEntry,
    SignatureByContext,
    count_probes,
    fill_dates,
    harness_gaps,
    merge_report,
    normalize_entry,
    normalize_new_entry,
    signature_by_context,
)
from accord.core.docket.steps import Step
from accord.core.docket.text_values import to_one_line
from accord.core.docket.triggers import Trigger
from accord.core.docket.vocabulary import DomainType, ProbeStatus, StepKind, StepStatus, YesNo


class ProbeLog:
    """The log of one item under construction."""

    def __init__(self, item: DecisionItem) -> None:
        self.item = item
        self.previous_entries = list(item.prev.probe_log) if item.prev else []
        self.entries = list(self.previous_entries)
        self.changed_positions: set[int] = set()
        self.contested_positions: set[int] = set()
        self._places = {each.probe_id: at for at, each in enumerate(self.entries)}

    def latest_position(self, probe: str) -> int | None:
        """The index of the newest entry of a probe."""
        return self._places.get(probe)

    def put_entry(self, it: ProbeLogEntry) -> int:
        """Record a result: replace the entry of the running probe, else append."""
        at = self.latest_position(it.probe_id)
        if at is not None and self.entries[at].status is ProbeStatus.ACTIVE:
            self.entries[at] = it
        else:
            self.entries.append(it)
            at = self._places[it.probe_id] = len(self.entries) - 1
        self.changed_positions.add(at)
        return at

    def add_report(self, trial: ProbeReport) -> None:
        """Add a reported result."""
        name = _probe_id(trial, self)
        at = self.latest_position(name)
        base = ProbeLogEntry(name) if at is None else self.entries[at]
        where = self.put_entry(merge_report(trial, replace(base, probe_id=name)))
        if trial.contested is YesNo.YES:
            self.contested_positions.add(where)
        self.item.probe_reported = True

    def fire_kill_switch(self) -> bool:
        """Fire the kill switch of the running probe after its step failed; False if none runs."""
        runs = [
            at
            for at, each in enumerate(self.entries)
            if each.status is ProbeStatus.ACTIVE and each.target_driver == self.item.critical_driver
        ]
        if runs:
            at = runs[-1]
            self.entries[at] = replace(self.entries[at], kill_switch_triggered=YesNo.YES)
            self.changed_positions.add(at)
            self.item.probe_reported = True
        return bool(runs)


def _probe_id(trial: ProbeReport, book: ProbeLog) -> str:
    return to_one_line(trial.probe_id or "") or f"{book.item.id}_PRB_{len(book.entries) + 1:02}"


def write_probe_logs(
    items: Iterable[DecisionItem], batch: Batch, batch_id: str, config: KernelConfig
) -> None:
    books = [open_log(item) for item in items]
    share_adopted(books, batch)
    for book in books:
        normalize_log(book, batch, batch_id, config)


def open_log(item: DecisionItem) -> ProbeLog:
    """The log with the results from the item's own judgement and steps."""
    book = ProbeLog(item)
    if item.frozen:
        return book
    for trial in item.judgement.probe_results or ():
        book.add_report(trial)
    others = [pair for pair in item.failures if not _probe_failed(pair[0])]
    if len(others) < len(item.failures) and book.fire_kill_switch():
        item.failures = others
    return book


def _probe_failed(step: Step) -> bool:
    return step.kind is StepKind.PROBE and step.status is StepStatus.FAILED


def share_adopted(books: list[ProbeLog], batch: Batch) -> None:
    """Copy the creators' results to the items that adopted a probe, and add new adoptions."""
    created: EntriesByProbe = defaultdict(dict)
    for book in sorted(books, key=lambda each: each.item.id, reverse=True):
        for at, each in enumerate(book.entries):
            if each.adopted == "-":
                created[each.probe_id][book.item.id] = book, at
    for book in books:
        if not book.item.frozen:
            _adopt(book, created, batch)
            _update_adopted(book, created)


# Each probe with its creators, the last by name first, and their newest entries.
EntriesByProbe = defaultdict[str, dict[str, tuple[ProbeLog, int]]]


def _adopt(book: ProbeLog, created: EntriesByProbe, batch: Batch) -> None:
    item = book.item
    for probe in item.judgement.adopt or ():
        creators = created.get(probe, {}).values()
        source = next((each for each in creators if each[0] is not book), None)
        if not source:
            batch.add_diagnostic(Diagnostic("ADOPT_UNKNOWN", item.id, probe, item.input.line))
            continue
        creator, newest = source
        book.put_entry(replace(creator.entries[newest], adopted=creator.item.id))
        item.probe_reported = True
    for probe in item.judgement.disadopt or ():
        found = book.latest_position(probe)
        if found is not None and book.entries[found].adopted != "-":
            it = book.entries[found]
            book.entries[found] = replace(it, adopted=f"{ENDED_PREFIX}{it.adopted})")
            item.probe_reported = True


def _update_adopted(book: ProbeLog, created: EntriesByProbe) -> None:
    """Update running copies with what their creator reports in this run."""
    for at, it in enumerate(list(book.entries)):
        if (
            it.adopted == "-"
            or not it.is_adopted_or_own
            or it.status is not ProbeStatus.ACTIVE
            or at in book.changed_positions
        ):
            continue
        creator, where = created.get(it.probe_id, {}).get(it.adopted, (book, -1))
        if where in creator.changed_positions:
            book.entries[at] = replace(creator.entries[where], adopted=it.adopted)
            book.changed_positions.add(at)
            book.item.probe_reported = True


def normalize_log(book: ProbeLog, batch: Batch, batch_id: str, config: KernelConfig) -> None:
    """Normalize every entry, then the probe that is designed in this run."""
    item = book.item
    if item.frozen:
        item.probe_log = book.entries
        update_counters(item)
        return
    ruled = _EntryRules(item, signature_by_context(book.previous_entries), batch, batch_id, config)
    for at, it in enumerate(book.entries):
        made = ruled.normalize_new(it) if at in book.changed_positions else it
        contested = item.contested or at in book.contested_positions
        weighed_now = normalize_entry(made, contested=contested, now=config.now)
        if weighed_now.status is not it.status and weighed_now.status is ProbeStatus.EXPIRED:
            item.probe_expired = True
        book.entries[at] = weighed_now
    item.probe_log = book.entries
    _note_change(book)
    if item.judgement.probe:
        _design_probe(item.judgement.probe, book, ruled)
    update_counters(item)


class _EntryRules(NamedTuple):
    """What normalization needs to know about the item."""

    item: DecisionItem
    contexts: SignatureByContext
    batch: Batch
    batch_id: str
    config: KernelConfig

    def normalize_new(self, it: ProbeLogEntry) -> ProbeLogEntry:
        """Normalize an entry of this run."""
        dates = fill_dates(it, self.config.now)
        made, trap = normalize_new_entry(
            dates, self.contexts, self.item.critical_driver, self.batch_id
        )
        if trap:
            self.add_diagnostic("REDESIGN_SIGNATURE_TRAP", it.probe_id)
        return made

    def add_diagnostic(self, code: str, detail: str) -> None:
        self.batch.add_diagnostic(Diagnostic(code, self.item.id, detail, self.item.input.line))


def _note_change(book: ProbeLog) -> None:
    """Record the probe whose result changed last."""
    was = {each.probe_id: each.status for each in book.previous_entries}
    for each in book.entries:
        if was.get(each.probe_id) not in (None, each.status):
            book.item.changed_probe_id = each.probe_id


def _design_probe(trial: ProbeReport, book: ProbeLog, ruled: _EntryRules) -> None:
    item = book.item
    name = _probe_id(trial, book)
    it = merge_report(
        trial, ProbeLogEntry(name, target_driver=item.critical_driver, representativeness="MED")
    )
    contested = item.contested or trial.contested is YesNo.YES
    it = normalize_entry(ruled.normalize_new(it), contested=contested, now=ruled.config.now)
    gaps = harness_gaps(it, item.critical_driver, ruled.batch_id)
    if gaps:
        ruled.add_diagnostic("HARNESS_INVALID", f"missing: {', '.join(gaps)}")
    if _is_unchanged_redesign(it, item):
        ruled.add_diagnostic("REDESIGN_UNCHANGED", name)
        it, item.redesign_unchanged = replace(it, status=ProbeStatus.INCONCLUSIVE), True
    item.designed_probe = it
    item.harness_valid = not gaps and not item.redesign_unchanged


def _is_unchanged_redesign(it: ProbeLogEntry, item: DecisionItem) -> bool:
    """Whether a redesign after near misses changes nothing."""
    prev = item.prev
    if (
        prev is None
        or prev.trigger is not Trigger.REDESIGN_TRIGGER
        or prev.critical_driver != item.critical_driver
    ):
        return False
    mine = [each for each in prev.probe_log if each.target_driver == item.critical_driver]
    near = count_probes(mine, item.critical_driver, deterministic=False).nm
    if near < 2:
        return False
    last = mine[-1]
    thresholds = (it.kill_switch_threshold, last.kill_switch_threshold)
    moved = "UNKNOWN" not in thresholds and thresholds[0] != thresholds[1]
    same = all(
        getattr(it, name) == getattr(last, name)
        for name in ("decision_context_metric", "constraint_signature", "kill_switch_condition")
    )
    return same and not moved


def update_counters(item: DecisionItem) -> None:
    """Recount over the log as it will be rendered."""
    deterministic = item.domain_type is DomainType.DETERMINISTIC
    item.counters = count_probes(
        item.full_probe_log, item.critical_driver, deterministic=deterministic
    )


def candidate_probe(item: DecisionItem) -> ProbeLogEntry | None:
    """The probe to run next: the one designed now, else the last that is still running."""
    if item.designed_probe:
        return item.designed_probe
    runs = [
        each
        for each in item.critical_driver_entries
        if each.status is ProbeStatus.ACTIVE and each.is_adopted_or_own
    ]
    return runs[-1] if runs else None
