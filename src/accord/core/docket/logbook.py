"""The probe log of an item in this run: what came back, what is shared, what is designed."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from accord.core.docket.diags import Diag
from accord.core.docket.judge import Trial
from accord.core.docket.model import Batch, Config, Item
from accord.core.docket.probes import (
    ENDED,
    Contexts,
    Entry,
    contexts,
    counted,
    dated,
    fresh,
    harness_gaps,
    merged,
    weighed,
)
from accord.core.docket.steps import Step
from accord.core.docket.text import one_line
from accord.core.docket.words import Domain, Done, Flag, Found, Kind, Trigger


class Logbook:
    """The log of one item while it is being written."""

    def __init__(self, item: Item) -> None:
        self.item = item
        self.before = list(item.prev.log) if item.prev else []
        self.entries = list(self.before)
        self.new: set[int] = set()
        self.contested: set[int] = set()
        self._places = {each.probe_id: at for at, each in enumerate(self.entries)}

    def latest(self, probe: str) -> int | None:
        """Where the newest entry of a probe stands."""
        return self._places.get(probe)

    def put(self, it: Entry) -> int:
        """Record what a probe has shown: in place of the entry that still runs, else after it."""
        at = self.latest(it.probe_id)
        if at is not None and self.entries[at].status is Found.ACTIVE:
            self.entries[at] = it
        else:
            self.entries.append(it)
            at = self._places[it.probe_id] = len(self.entries) - 1
        self.new.add(at)
        return at

    def report(self, trial: Trial) -> None:
        """A result that somebody gives."""
        name = _name(trial, self)
        at = self.latest(name)
        base = Entry(name) if at is None else self.entries[at]
        where = self.put(merged(trial, replace(base, probe_id=name)))
        if trial.contested is Flag.YES:
            self.contested.add(where)
        self.item.reported = True

    def fail(self) -> bool:
        """A failed probe step fires the kill switch of the probe that runs; False without one."""
        runs = [
            at
            for at, each in enumerate(self.entries)
            if each.status is Found.ACTIVE and each.target_driver == self.item.critical
        ]
        if runs:
            at = runs[-1]
            self.entries[at] = replace(self.entries[at], kill_switch_triggered=Flag.YES)
            self.new.add(at)
            self.item.reported = True
        return bool(runs)


def _name(trial: Trial, book: Logbook) -> str:
    return one_line(trial.probe_id or "") or f"{book.item.id}_PRB_{len(book.entries) + 1:02}"


def write(items: Iterable[Item], batch: Batch, batch_id: str, config: Config) -> None:
    """Write the log of every item."""
    books = [opened(item) for item in items]
    share(books, batch)
    for book in books:
        settle(book, batch, batch_id, config)


def opened(item: Item) -> Logbook:
    """With the results that its own judgement and steps report."""
    book = Logbook(item)
    if item.fixed:
        return book
    for trial in item.judge.probe_results or ():
        book.report(trial)
    others = [pair for pair in item.failures if not _probe_failed(pair[0])]
    if len(others) < len(item.failures) and book.fail():
        item.failures = others
    return book


def _probe_failed(step: Step) -> bool:
    return step.kind is Kind.PROBE and step.status is Done.FAILED


def share(books: list[Logbook], batch: Batch) -> None:
    """Copy what creators report to those who adopted it, and take up what is adopted now."""
    created: Created = defaultdict(dict)
    for book in sorted(books, key=lambda each: each.item.id, reverse=True):
        for at, each in enumerate(book.entries):
            if each.adopted == "-":
                created[each.probe_id][book.item.id] = book, at
    for book in books:
        if not book.item.fixed:
            _adopt(book, created, batch)
            _follow(book, created)


# Each probe, and who created it: the last by name first, each with its newest entry.
Created = defaultdict[str, dict[str, tuple[Logbook, int]]]


def _adopt(book: Logbook, created: Created, batch: Batch) -> None:
    item = book.item
    for probe in item.judge.adopt or ():
        creators = created.get(probe, {}).values()
        source = next((each for each in creators if each[0] is not book), None)
        if not source:
            batch.say(Diag("ADOPT_UNKNOWN", item.id, probe, item.inp.line))
            continue
        creator, newest = source
        book.put(replace(creator.entries[newest], adopted=creator.item.id))
        item.reported = True
    for probe in item.judge.disadopt or ():
        found = book.latest(probe)
        if found is not None and book.entries[found].adopted != "-":
            it = book.entries[found]
            book.entries[found] = replace(it, adopted=f"{ENDED}{it.adopted})")
            item.reported = True


def _follow(book: Logbook, created: Created) -> None:
    """A copy that still runs learns what its creator reports in this run."""
    for at, it in enumerate(list(book.entries)):
        if it.adopted == "-" or not it.kept or it.status is not Found.ACTIVE or at in book.new:
            continue
        creator, where = created.get(it.probe_id, {}).get(it.adopted, (book, -1))
        if where in creator.new:
            book.entries[at] = replace(creator.entries[where], adopted=it.adopted)
            book.new.add(at)
            book.item.reported = True


def settle(book: Logbook, batch: Batch, batch_id: str, config: Config) -> None:
    """Put every entry through the rules, then the probe that is designed now."""
    item = book.item
    if item.fixed:
        item.log = book.entries
        count(item)
        return
    ruled = _Ruled(item, contexts(book.before), batch, batch_id, config)
    for at, it in enumerate(book.entries):
        made = ruled.fresh(it) if at in book.new else it
        contested = item.contested or at in book.contested
        weighed_now = weighed(made, contested=contested, now=config.now)
        if weighed_now.status is not it.status and weighed_now.status is Found.EXPIRED:
            item.expired_probe = True
        book.entries[at] = weighed_now
    item.log = book.entries
    _note_change(book)
    if item.judge.probe:
        _design(item.judge.probe, book, ruled)
    count(item)


class _Ruled(NamedTuple):
    """What the entries of one item are held against."""

    item: Item
    contexts: Contexts
    batch: Batch
    batch_id: str
    config: Config

    def fresh(self, it: Entry) -> Entry:
        """An entry of this run, put through the rules for what is new."""
        dates = dated(it, self.config.now)
        made, trap = fresh(dates, self.contexts, self.item.critical, self.batch_id)
        if trap:
            self.say("REDESIGN_SIGNATURE_TRAP", it.probe_id)
        return made

    def say(self, code: str, detail: str) -> None:
        """Remark something about the item."""
        self.batch.say(Diag(code, self.item.id, detail, self.item.inp.line))


def _note_change(book: Logbook) -> None:
    """Which probe last changed what it shows."""
    was = {each.probe_id: each.status for each in book.before}
    for each in book.entries:
        if was.get(each.probe_id) not in (None, each.status):
            book.item.changed_probe = each.probe_id


def _design(trial: Trial, book: Logbook, ruled: _Ruled) -> None:
    item = book.item
    name = _name(trial, book)
    it = merged(trial, Entry(name, target_driver=item.critical, representativeness="MED"))
    contested = item.contested or trial.contested is Flag.YES
    it = weighed(ruled.fresh(it), contested=contested, now=ruled.config.now)
    gaps = harness_gaps(it, item.critical, ruled.batch_id)
    if gaps:
        ruled.say("HARNESS_INVALID", f"missing: {', '.join(gaps)}")
    if _unchanged(it, item):
        ruled.say("REDESIGN_UNCHANGED", name)
        it, item.redesign_stuck = replace(it, status=Found.INCONCLUSIVE), True
    item.designed = it
    item.harness = not gaps and not item.redesign_stuck


def _unchanged(it: Entry, item: Item) -> bool:
    """Whether a redesign after near misses is the same probe again."""
    prev = item.prev
    if (
        prev is None
        or prev.trigger is not Trigger.REDESIGN_TRIGGER
        or prev.critical != item.critical
    ):
        return False
    mine = [each for each in prev.log if each.target_driver == item.critical]
    near = counted(mine, item.critical, deterministic=False).nm
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


def count(item: Item) -> None:
    """The counters of what will be printed."""
    deterministic = item.domain is Domain.DETERMINISTIC
    item.counters = counted(item.log_out, item.critical, deterministic=deterministic)


def candidate(item: Item) -> Entry | None:
    """The probe that the item would run: the one designed now, else the last that still runs."""
    if item.designed:
        return item.designed
    runs = [each for each in item.mine if each.status is Found.ACTIVE and each.kept]
    return runs[-1] if runs else None
